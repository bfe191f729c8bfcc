"""Faults of servers, and the results of readers: the right bytes or an error, and never other bytes.

The arrays are not compressed, and the rules hit their chunks only. If a rule hits each request, the reader gets its error within
`--timeout`. If it hits some, the reader gets the bytes.
"""
import errno
import os

import pytest

from support import remote_samples, remote_servers
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, chunk, mounted

pytestmark = pytest.mark.long
BOTH = pytest.mark.parametrize("kind", ["http", "s3"])
RIGHT = "the bytes"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder, consolidate=True)
    return folder


@pytest.fixture
def own(tmp_path):
    """A store that a test changes."""
    folder = tmp_path / "root"
    remote_samples.write(folder, consolidate=True)
    return folder


ARGS = ("--view", "chunks,arrays", "--files", "raw", "--timeout", "3")


def got(made, name, n):
    """`RIGHT`, the name of an error, or the fault of the bytes."""
    found = attempt(made.path / "chunks" / name / "c" / str(n))
    if isinstance(found, str):
        return found
    right = chunk(name, n)
    return RIGHT if found == right else f"{len(found)} wrong bytes of {len(right)}, from {first_difference(found, right)} on"


def first_difference(found, right):
    return next((i for i, (a, b) in enumerate(zip(found, right)) if a != b), min(len(found), len(right)))


# Faults that pass: the reader sees nothing of them.
PASSING = [
    ("reset before the head", {"fault": "reset"}),
    ("reset within the body", {"fault": "reset", "after": 100}),
    ("truncated", {"fault": "truncate", "bytes": 10}),
    ("truncated to nothing", {"fault": "truncate", "bytes": 1 << 30}),
    ("408", {"fault": "status", "status": 408}),
    ("429", {"fault": "status", "status": 429}),
    ("500", {"fault": "status", "status": 500}),
    ("502", {"fault": "status", "status": 502}),
    ("503 SlowDown", {"fault": "status", "status": 503, "code": "SlowDown"}),
    ("504", {"fault": "status", "status": 504}),
    ("503 with Retry-After", {"fault": "status", "status": 503, "headers": {"Retry-After": "1"}}),
]


@BOTH
@pytest.mark.parametrize("name", ["plain", "small", "big", "first"])
def test_faults_that_pass(kind, name, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS[:-1], "10", "--ttl", "0", "--cache-size", "16M")
        wrong = {}
        for number, (what, rule) in enumerate(PASSING):
            server.rules({"key": f"*/{name}/c/*", "count": 1, **rule})
            n = number % (4 if name in ("plain", "small") else 16)
            if (found := got(made, name, n)) != RIGHT:
                wrong[what] = found
            assert server.hits() == [1] or what in wrong or made.stats()["cache"]["hits"], f"{what}: nothing was asked for"
        assert not wrong, f"{wrong}\n{made.log_text()}"
        assert made.stats()["server"]["retries"] > 0
        made.unmount()


def test_retry_after_is_waited_for(root, mount):
    with FaultServer(root) as server:
        made = mounted(mount, server, "--view", "chunks", "--timeout", "10")
        server.rules({"fault": "status", "status": 503, "headers": {"Retry-After": "2"}, "key": "*/plain/c/0", "count": 1})
        server.clear()
        assert got_of_chunks(made, "plain", 0) == chunk("plain", 0)
        first, second, *_ = [r for r in server.requests() if r["key"].endswith("plain/c/0")]
        assert (first["status"], second["status"]) == (503, 200)
        # By the clock of the server, and only that the wait is no shorter than requested.
        assert second["begun"] - first["begun"] >= 2
        assert made.stats()["server"]["throttles"] == 1
        made.unmount()


def got_of_chunks(made, name, n):
    return attempt(made.path / name / "c" / str(n))


# Faults that stay: (name, rule, the results that a read may have if a chunk takes one request, and if it takes several).
LASTING = [
    ("reset before the head", {"fault": "reset"}, {"EIO"}, {"EIO"}),
    ("reset within the body", {"fault": "reset", "after": 100}, {"EIO"}, {"EIO"}),
    ("stall before the head", {"fault": "stall"}, {"EIO"}, {"EIO"}),
    ("stall within the body", {"fault": "stall", "after": 100}, {"EIO"}, {"EIO"}),
    ("truncated", {"fault": "truncate", "bytes": 10}, {"EIO"}, {"EIO"}),
    ("408", {"fault": "status", "status": 408}, {"EIO"}, {"EIO"}),
    ("429", {"fault": "status", "status": 429}, {"EIO"}, {"EIO"}),
    ("500", {"fault": "status", "status": 500}, {"EIO"}, {"EIO"}),
    ("503", {"fault": "status", "status": 503}, {"EIO"}, {"EIO"}),
    ("501", {"fault": "status", "status": 501}, {"EIO"}, {"EIO"}),
    ("400", {"fault": "status", "status": 400}, {"EIO"}, {"EIO"}),
    ("418", {"fault": "status", "status": 418}, {"EIO"}, {"EIO"}),
    ("204", {"fault": "status", "status": 204}, {"EIO"}, {"EIO"}),
    # A range that is longer or shorter than it says, or another one.
    ("longer", {"fault": "lengthen"}, {"EIO"}, {"EIO"}),
    ("much longer", {"fault": "lengthen", "bytes": 100_000}, {"EIO"}, {"EIO"}),
    ("shorter", {"fault": "shorten"}, {"EIO"}, {"EIO"}),
    ("another range", {"fault": "shift", "by": 4, "ranged": True}, {RIGHT}, {"EIO"}),
    ("another range, before", {"fault": "shift", "by": -4, "ranged": True}, {RIGHT}, {"EIO"}),
    ("no range", {"fault": "whole", "ranged": True}, {RIGHT}, {RIGHT}),
    ("a range that is none", {"fault": "content_range", "value": "bytes"}, {RIGHT}, {"EIO"}),
    ("a range of nothing", {"fault": "content_range", "value": "bytes 0--1/0"}, {RIGHT}, {"EIO", "ESTALE"}),
    ("a range beyond all numbers", {"fault": "content_range", "value": "bytes 0-18446744073709551615/10"}, {RIGHT}, {"EIO"}),
    # Versions.
    ("412", {"fault": "status", "status": 412, "pinned": True}, {RIGHT}, {"ESTALE"}),
    ("404 of what was there", {"fault": "status", "status": 404, "pinned": True}, {RIGHT}, {"ESTALE"}),
    ("another length of the whole", {"fault": "other_total", "pinned": True}, {RIGHT}, {"ESTALE"}),
    ("another ETag in each answer", {"fault": "changing_etag"}, {RIGHT}, {"ESTALE"}),
    ("416 of what is there", {"fault": "status", "status": 416, "pinned": True}, {RIGHT}, {"ESTALE", "EIO"}),
    ("weak ETags", {"fault": "weak_etag"}, {RIGHT}, {RIGHT}),
    # Denied.
    ("403", {"fault": "status", "status": 403, "code": "AccessDenied"}, {"EACCES"}, {"EACCES"}),
    ("401", {"fault": "status", "status": 401}, {"EACCES"}, {"EACCES"}),
    # Other bytes.
    ("compressed", {"fault": "encode"}, {"EIO"}, {"EIO"}),
    ("compressed otherwise", {"fault": "encode", "coding": "br"}, {"EIO"}, {"EIO"}),
    ("a page for logging in", {"fault": "login"}, {"EIO", "ESTALE"}, {"EIO", "ESTALE"}),
    ("no length", {"fault": "no_length"}, {RIGHT, "EIO"}, {RIGHT, "EIO"}),
]


@BOTH
@pytest.mark.parametrize("name", ["plain", "big"])
@pytest.mark.parametrize("what, rule, one, several", LASTING, ids=[case[0] for case in LASTING])
def test_faults_that_stay(kind, name, what, rule, one, several, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        server.rules({"key": f"*/{name}/c/*", **rule})
        found = got(made, name, 1)
        assert found in (one if name == "plain" else several), f"{found}: {made.log_text()}"
        # An error is not remembered, nor what a wrong answer said; no fill value was read. What was opened before may be ESTALE.
        server.rules()
        again = got(made, name, 1)
        if again == "ESTALE":
            again = got(made, name, 1)
        assert again == RIGHT, f"{again}, after {found}: {made.log_text()}"
        assert made.alive()
        made.unmount()


def test_an_object_that_is_sent_whole_must_be_small(root, mount):
    """A server that knows no ranges sends whole objects, of any size; more than `--max-chunk` is not taken."""
    with FaultServer(root) as server:
        made = mounted(mount, server, *ARGS, "--max-chunk", "1M")
        server.rules({"fault": "whole", "key": "*/big/c/*"})
        assert got(made, "big", 1) == "EIO"
        made.unmount()
        # The documents of the root show that the server sends no parts.
        server.rules({"fault": "whole"})
        made = mounted(mount, server, *ARGS, "--max-chunk", "1M")
        assert got(made, "plain", 1) == RIGHT and got(made, "big", 1) == "EIO"
        made.unmount()


@BOTH
def test_ranges_of_a_server_without_versions(kind, root, mount):
    """Several requests cannot be of one version. With --immutable there is only one."""
    rules = [{"fault": "no_etag", "key": "*/c/*"}, {"fault": "no_last_modified", "key": "*/c/*"}]
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        server.rules(*rules)
        if kind == "http":
            assert got(made, "plain", 1) == RIGHT
        assert got(made, "big", 1) == "EIO"
        assert "big/c/0" in made.log_text()
        made.unmount()
        server.rules()
        if kind == "http":
            made = mounted(mount, server, *ARGS, "--immutable")
            server.rules(*rules)
            assert got(made, "big", 1) == RIGHT
            made.unmount()


@pytest.mark.parametrize("ignored", [False, True], ids=["If-Match", "If-Match ignored"])
@BOTH
def test_an_object_that_changed_between_two_requests(kind, ignored, own, mount):
    """One open file is of one version: what comes after a change is ESTALE, whether or not the server knows `If-Match`."""
    with FaultServer(own, kind) as server:
        made = mounted(mount, server, *ARGS, "--readahead", "0", "--ttl", "0")
        if ignored:
            server.rules({"fault": "unconditional"})
        with open(made.path / "arrays" / "big.raw", "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            size = len(chunk("big", 0))
            assert os.pread(file.fileno(), size, 0) == chunk("big", 0)
            for n in (0, 1):
                replace(own, "big", n, version=1)
            try:
                later = os.pread(file.fileno(), size, 5 * size)
            except OSError as error:
                assert error.errno == errno.ESTALE, error
            else:
                assert later == chunk("big", 5), "bytes of two versions in one file"
        assert attempt(made.path / "arrays" / "big.raw") == remote_samples.values(remote_samples.BIG, 1).tobytes()
        made.unmount()


def replace(root, name, n, version):
    """Puts the object of another version in the place of one."""
    other = root.parent / f"version-{version}"
    if not other.exists():
        remote_samples.write(other, version=version)
    path = root / remote_samples.BUCKET / "z" / name / "c" / str(n)
    fresh = path.with_name(f"{n}.new")
    fresh.write_bytes((other / path.relative_to(root)).read_bytes())
    os.replace(fresh, path)


def test_credentials_that_expired(root, mount, tmp_path):
    """New credentials are fetched once, however many readers need them."""
    program, calls = tmp_path / "program", tmp_path / "calls"
    program.write_text(f"""#!/bin/sh
echo call >>{calls}
echo '{{"Version": 1, "AccessKeyId": "AKIATEST", "SecretAccessKey": "secret", "SessionToken": "t'$(wc -l <{calls})'"}}'
""")
    program.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[default]\nregion = us-east-1\ncredential_process = {program}\n")
    env = remote_servers.clean_environment(AWS_CONFIG_FILE=str(config))
    with FaultServer(root, "s3") as server:
        # Without prefetches, which could bring a chunk before its rule is set.
        made = mount("s3://bucket/z", "--endpoint", server.url, *ARGS, "--readahead", "0", env=env)
        assert len(calls.read_text().splitlines()) == 1
        for number, rule in enumerate(({"status": 400, "code": "ExpiredToken"}, {"status": 401}, {"status": 403, "code": "RequestExpired"})):
            rule = {"fault": "status", "key": "*/plain/c/*", "count": 1, **rule}
            # Headers that the answer to HEAD lacks, the answer to GET has.
            methods = ["GET"] if rule["status"] == 401 else ["HEAD", "GET"]
            server.rules(*({**rule, "method": method} for method in methods))
            assert got(made, "plain", number) == RIGHT, (rule, made.log_text())
            assert len(calls.read_text().splitlines()) == number + 2, rule
        server.rules({"fault": "status", "key": "*/plain/c/*", "status": 400, "code": "ExpiredToken"})
        assert got(made, "plain", 3) == "EACCES"
        assert len(calls.read_text().splitlines()) == 5
        made.unmount()


def test_a_clock_that_is_wrong(root, mount):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, *ARGS)
        server.rules({"fault": "status", "status": 403, "code": "RequestTimeTooSkewed", "key": "*/c/*"})
        assert got(made, "plain", 1) == "EIO"
        assert "clock" in made.log_text()
        made.unmount()


# Absent or denied

@BOTH
@pytest.mark.parametrize("status", [404, 410])
def test_absent_chunks_are_of_fill_value(kind, status, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        server.rules({"fault": "status", "status": status, "code": "NoSuchKey", "key": "*/hole/c/0"})
        assert attempt(made.path / "chunks" / "hole" / "c" / "0") == b"\7\0\0\0" * remote_samples.PLAIN_CHUNK
        assert attempt(made.path / "chunks" / "hole" / "c" / "1") == chunk("plain", 1)
        made.unmount()


@BOTH
def test_a_refused_method_is_no_absence(kind, root, mount):
    """The client library takes 405 for absence."""
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        server.rules({"fault": "status", "status": 405, "code": "MethodNotAllowed", "key": "*/hole/c/*"})
        assert attempt(made.path / "chunks" / "hole" / "c" / "1") == "EIO"
        made.unmount()


@BOTH
def test_stores_that_hide_absence(kind, root, mount):
    """A denied chunk is not taken for an absent one, unless the option says it. One line says so."""
    with FaultServer(root, kind) as server:
        server.rules({"fault": "forbid_absent"}, {"fault": "status", "status": 403, "method": "LIST"})
        made = mounted(mount, server, *ARGS)
        assert made.said.count("--absent-403") + made.log_text().count("--absent-403") == 1
        assert got(made, "plain", 1) == RIGHT
        assert attempt(made.path / "chunks" / "hole" / "c" / "0") == "EACCES"
        assert attempt(made.path / "arrays" / "hole.raw") == "EACCES"
        assert attempt(made.path / "chunks" / "hole" / "c" / "1") == chunk("plain", 1)
        made.unmount()
        made = mounted(mount, server, *ARGS, "--absent-403")
        assert attempt(made.path / "chunks" / "hole" / "c" / "0") == b"\7\0\0\0" * remote_samples.PLAIN_CHUNK
        assert got(made, "plain", 1) == RIGHT
        made.unmount()


@BOTH
def test_a_denied_chunk_of_a_store_that_reports_absence(kind, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        server.rules({"fault": "status", "status": 403, "code": "AccessDenied", "key": "*/hole/c/0"})
        assert attempt(made.path / "chunks" / "hole" / "c" / "0") == "EACCES"
        assert attempt(made.path / "arrays" / "hole.raw", 0, 64) == "EACCES"
        made.unmount()


@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.parametrize("denied", ["LIST denied", "no LIST"])
def test_stores_that_cannot_be_listed(consolidated, denied, tmp_path, mount):
    """Names are found by a request for each; with consolidated metadata, all names are known."""
    root = tmp_path / "root"
    remote_samples.write(root, consolidate=consolidated)
    with FaultServer(root, "s3" if denied == "LIST denied" else "http") as server:
        if denied == "LIST denied":
            server.rules({"fault": "status", "status": 403, "code": "AccessDenied", "method": "LIST"})
        made = mounted(mount, server, *ARGS)
        assert got(made, "plain", 1) == RIGHT and got(made, "big", 3) == RIGHT
        assert attempt(made.path / "arrays" / "plain.raw") == remote_samples.values(remote_samples.PLAIN).tobytes()
        assert attempt(made.path / "chunks" / "none" / "c" / "0") == "ENOENT"
        names = set(os.listdir(made.path / "chunks"))
        assert "zarr.json" in names
        if consolidated:
            assert {"plain", "hole", "small", "big", "first"} <= names
            assert {"plain.raw", "big.raw"} <= set(os.listdir(made.path / "arrays"))
        else:
            # Names that were looked up are listed, and the log says that others may be missing.
            assert {"plain", "big"} <= names
            assert made.log_text().count("incomplete") == 1, made.log_text()
        assert {str(n) for n in range(4)} <= set(os.listdir(made.path / "chunks" / "plain" / "c"))
        made.unmount()


def test_names_that_no_path_has(root, mount):
    """Such names are left out, and one line of the log says how many there are. The other names are shown."""
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "odd_names", "method": "LIST", "names": ["z//", "z/../", "z/./"]})
        made = mounted(mount, server, "--view", "keys", "--timeout", "3")
        assert {"zarr.json", "plain", "hole", "small", "big", "first"} <= set(os.listdir(made.path))
        assert sorted(os.listdir(made.path / "plain")) == ["c", "zarr.json"]
        said = [line for line in made.log_text().splitlines() if "left out" in line]
        assert len(said) == 1 and "3 of the names" in said[0], made.log_text()
        made.unmount()
