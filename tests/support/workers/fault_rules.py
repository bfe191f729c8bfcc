"""The faults of a server's answers: rules, each with one fault for some requests.

A rule is a dictionary: `fault`, and the parameters of the fault. These members select requests: `key` (a pattern of fnmatch, of the
path without its first slash), `method` (GET, HEAD or LIST), `ranged` (whether a range is requested) and `pinned` (whether one version
is demanded). The first `skip` requests are spared, and the next `count` are hit. `probability` uses a generator with a seed.
"""
import fnmatch
import gzip
import random
import threading
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime


@dataclass
class Answer:
    """An answer before it is sent. The headers describe `body`."""

    status: int
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    # How the answer is sent.
    wait: float = 0  # seconds before the first byte
    stop_after: int | None = None  # bytes of the body, after which nothing more is sent
    stop_how: str = "close"  # or "reset", or "stall"
    stall: float = 0  # seconds that the connection stays open after that
    says_nothing: bool = False  # not even the status is sent
    is_held: bool = False  # nothing is sent until the rules are replaced
    chunked: bool = False


class Rules:
    """The rules of a server, in order. All rules that select a request change its answer, one after the other."""

    def __init__(self, seed=0):
        self.lock = threading.Lock()
        self.rules, self.random = [], random.Random(seed)

    def replace(self, rules, seed=0):
        for rule in rules:
            assert rule["fault"] in FAULTS or rule["fault"] in CONDITIONS, rule
        with self.lock:
            self.rules = [dict(rule, seen=0, hit=0) for rule in rules]
            self.random = random.Random(seed)

    def about(self, method, key, headers):
        """The rules that hit a request."""
        facts = {"method": method, "ranged": "range" in headers,
                 "pinned": "if-match" in headers or "if-unmodified-since" in headers}
        with self.lock:
            return [rule for rule in self.rules if self._hits(rule, key, facts)]

    def _hits(self, rule, key, facts):
        if not fnmatch.fnmatchcase(key, rule.get("key", "*")):
            return False
        if any(rule.get(name, fact) != fact for name, fact in facts.items()):
            return False
        rule["seen"] += 1
        if rule["seen"] <= rule.get("skip", 0) or rule["hit"] >= rule.get("count", float("inf")):
            return False
        if self.random.random() >= rule.get("probability", 1):
            return False
        rule["hit"] += 1
        return True


def truncate(answer, rule):
    """The body ends early, and the connection with it."""
    answer.stop_after = max(0, len(answer.body) - rule.get("bytes", 1))


def stall(answer, rule):
    """Nothing more is sent after some bytes of the body, or nothing at all, and the connection stays open."""
    answer.stop_how, answer.stall = "stall", rule.get("seconds", 3600)
    answer.stop_after, answer.says_nothing = rule.get("after", 0), "after" not in rule


def hold(answer, _rule):
    """Nothing is sent until the rules are replaced. Then the right answer is sent."""
    answer.is_held = True


def reset(answer, rule):
    answer.stop_how, answer.stop_after = "reset", rule.get("after", 0)
    answer.says_nothing = "after" not in rule


def lengthen(answer, rule):
    """The body is longer than `Content-Range` says; `Content-Length` is true."""
    answer.body += b"\xee" * rule.get("bytes", 3)


def shorten(answer, rule):
    """The body is shorter than `Content-Range` says; `Content-Length` is true."""
    answer.body = answer.body[:max(0, len(answer.body) - rule.get("bytes", 1))]


def other_total(answer, rule):
    """`Content-Range` has another total length."""
    if "Content-Range" in answer.headers:
        span, _, total = answer.headers["Content-Range"].partition("/")
        answer.headers["Content-Range"] = f"{span}/{int(total) + rule.get('by', 1)}"


def content_range(answer, rule):
    """An answer of status 206 whose `Content-Range` is `value`; also in place of 416, for an empty object."""
    if answer.status in (206, 416):
        answer.status = 206
        answer.headers["Content-Range"] = rule["value"]


def status(answer, rule):
    code = rule.get("code", "Fault")
    answer.status = rule["status"]
    answer.headers = {"Content-Type": "application/xml", **rule.get("headers", {})}
    answer.body = f"<Error><Code>{code}</Code><Message>by a rule</Message></Error>".encode()


def no_etag(answer, _rule):
    answer.headers.pop("ETag", None)


def weak_etag(answer, _rule):
    if "ETag" in answer.headers:
        answer.headers["ETag"] = "W/" + answer.headers["ETag"]


def changing_etag(answer, rule):
    """Each answer has an `ETag` of its own."""
    if "ETag" in answer.headers:
        answer.headers["ETag"] = f'"{rule["hit"]:032x}"'


def no_last_modified(answer, _rule):
    answer.headers.pop("Last-Modified", None)


def no_length(answer, _rule):
    answer.chunked = True


def encode(answer, rule):
    """The body is compressed, as some proxies do it whatever the request asked for."""
    answer.headers["Content-Encoding"] = rule.get("coding", "gzip")
    answer.body = gzip.compress(answer.body)


def redirect(answer, rule):
    """A redirect to `location`, in which `{key}` is the requested path."""
    answer.status = rule.get("status", 302)
    answer.headers = {"Location": rule["location"].format(key=answer.headers.pop("X-Key", ""))}
    answer.body = b"moved"


def forbid_absent(answer, _rule):
    """An absent object is forbidden, as buckets answer users who may not list them."""
    if answer.status == 404:
        status(answer, {"status": 403, "code": "AccessDenied"})


def odd_names(answer, rule):
    """Pages of names have these names, too, as prefixes."""
    more = "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in rule["names"])
    answer.body = answer.body.replace(b"</ListBucketResult>", more.encode() + b"</ListBucketResult>")


def login(answer, _rule):
    """A login page, as servers that require a login and single-page applications send it."""
    answer.status, answer.body = 200, b"<html><body>Please log in.</body></html>\n"
    answer.headers = {"Content-Type": "text/html", "ETag": '"login"', "Last-Modified": "Mon, 03 Nov 2025 00:00:00 GMT"}


def empty(answer, _rule):
    """The object has no body and a true `Content-Length`, also in answers to conditional requests. Some servers answer HEAD so for all
    objects."""
    if answer.status in (200, 206, 304):
        answer.status, answer.body = 200, b""
        answer.headers.pop("Content-Range", None)


def same_page(answer, _rule):
    """Each page of names is followed by the same page."""
    answer.body = answer.body.replace(b"<IsTruncated>false", b"<IsTruncated>true").replace(
        b"</ListBucketResult>", b"<NextContinuationToken>YQ==</NextContinuationToken></ListBucketResult>")


def clock(answer, rule):
    """The clock of the server is ahead by `seconds` in all headers."""
    told = {"Date": formatdate(usegmt=True), **answer.headers}
    for name in {"Date", "Last-Modified"} & told.keys():
        shown = parsedate_to_datetime(told[name]).timestamp() + rule["seconds"]
        answer.headers[name] = formatdate(shown, usegmt=True)


def latency(answer, rule):
    answer.wait += rule["seconds"]


# These faults change the finished answer.
FAULTS = {
    "truncate": truncate, "stall": stall, "hold": hold, "reset": reset, "lengthen": lengthen, "shorten": shorten, "other_total": other_total,
    "status": status, "no_etag": no_etag, "weak_etag": weak_etag, "changing_etag": changing_etag, "latency": latency,
    "no_last_modified": no_last_modified, "no_length": no_length, "encode": encode, "redirect": redirect,
    "forbid_absent": forbid_absent, "login": login, "odd_names": odd_names, "clock": clock, "empty": empty, "same_page": same_page,
    "content_range": content_range,
}
# These faults change how the answer is made: `whole` sends 200 for a range; `shift` begins a range `by` bytes later;
# `unconditional` ignores `If-Match` and similar headers; `stale` takes the bytes of the last snapshot.
CONDITIONS = {"whole", "shift", "unconditional", "stale"}


# These faults concern bodies. An answer to HEAD keeps its length.
OF_BODIES = {"truncate", "lengthen", "shorten"}


def change(answer, rules, method):
    for rule in rules:
        if rule["fault"] in FAULTS and not (method == "HEAD" and rule["fault"] in OF_BODIES):
            FAULTS[rule["fault"]](answer, rule)
    return answer
