"""Parses the output of `ncdump -p 9,17`."""
import re

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|[={};,()]|:(?=\s)|[^\s={};,()"]+')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}


def parse(text):
    """The answer of a program in `programs`: {"attributes", "variables": path -> {"dimensions", "attributes", "values"}}."""
    tokens = [token for token in TOKEN.findall(text) if not token.startswith("//")]
    told = {"attributes": {}, "variables": {}}
    group(tokens, tokens.index("{") + 1, "", told)
    return told


def group(tokens, at, path, told):
    """Parses up to the brace that ends the group, and returns the position behind it."""
    section = None
    while tokens[at] != "}":
        if tokens[at] in ("dimensions:", "variables:", "data:"):
            section, at = tokens[at], at + 1
        elif tokens[at] == "group:":
            at = group(tokens, at + 3, f"{path}{tokens[at + 1]}/", told)
        else:
            end = at
            while tokens[end] != ";":
                end += 1
            statement(tokens[at:end], section, path, told)
            at = end + 1
    return at + 1


def statement(tokens, section, path, told):
    if "=" not in tokens:
        if section == "variables:":
            name = path + unescaped(tokens[1])
            dimensions = [unescaped(token) for token in tokens[3:-1] if token != ","]
            told["variables"][name] = {"dimensions": dimensions, "attributes": {}, "type": tokens[0]}
        return
    equals = tokens.index("=")
    target, values = tokens[equals - 1], [value(token) for token in tokens[equals + 1:] if token != ","]
    if section == "data:":
        variable = told["variables"][path + unescaped(target)]
        fill = variable["attributes"].get("_FillValue", "" if variable["type"] == "string" else None)
        variable["values"] = [fill if item == "_" else item for item in values]
    elif ":" in target:
        owner, _, name = target.partition(":")
        attributes = told["variables"][path + unescaped(owner)]["attributes"] if owner else told["attributes"]
        if not owner and path:
            return
        # ncdump prints text of several lines as several texts.
        joined = "".join(values) if values and all(isinstance(item, str) for item in values) and tokens[0] != "string" else values
        attributes[unescaped(name)] = joined[0] if isinstance(joined, list) and len(joined) == 1 else joined


def value(token):
    if token.startswith('"'):
        return text(token[1:-1])
    number = token.rstrip("bBsSfFdDuUlL") if not token.startswith(("NaN", "Inf", "-Inf")) else token.rstrip("fd")
    if number == "NaN":
        return None
    try:
        return int(number)
    except ValueError:
        return float(number) if re.match(r"-?[\d.]|-?Inf", number) else token


def text(escaped):
    """Letters of attributes are printed as they are, bytes of arrays in octal."""
    octal = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), escaped.encode())
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), octal.decode(errors="replace"))


def unescaped(name):
    return re.sub(r"\\(.)", r"\1", name)
