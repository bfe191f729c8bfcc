"""Prints the licence texts of everything that is linked into the binary, for the packages.

usage: third_party_licenses.py TARGET ZIG_FOLDER

The crates are those that `cargo metadata` resolves for TARGET, without build tools and macros. Their texts come from their sources,
which also hold those of the C libraries that they build, or from `packaging/licenses/CRATE.txt`. If a crate has no text, but offers
MIT or Apache-2.0, it gets the text of that licence from this repository, with the names of its authors. Any other crate without a text
is an error. The standard library and libc++ are linked, too; their texts are in the toolchains.
"""
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

Crate = dict[str, Any]  # as `cargo metadata` describes it
CHECKOUT = Path(__file__).resolve().parents[1]
NAMES = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
# Sources that no build script compiles, and a licence that zstd and xz offer beside the one that they are taken under.
UNUSED = re.compile(r"/(tests?|testdata|examples?|programs|contrib|build-aux|fuzz|benches)/|\.(rs|sh|c|h|def)$|GPL|notestdata")
SHARED = {"MIT": "LICENSE-MIT", "Apache-2.0": "LICENSE-APACHE"}


def linked_crates(target: str) -> list[Crate]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    data = json.loads(subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = data["resolve"]["root"]
    found, waiting = set(), [root]
    while waiting:
        for dep in nodes[waiting.pop()]["deps"]:
            name = dep["pkg"]
            is_macro = any("proc-macro" in t["kind"] for t in packages[name]["targets"])
            is_linked = any(kind["kind"] is None for kind in dep["dep_kinds"])
            if is_linked and not is_macro and name not in found:
                found.add(name)
                waiting.append(name)
    return sorted((packages[name] for name in found), key=lambda p: (p["name"], p["version"]))


def texts_of(crate: Crate) -> list[str]:
    folder = Path(crate["manifest_path"]).parent
    files = sorted(p for p in folder.rglob("*") if p.is_file() and NAMES.match(p.name)
                   and not UNUSED.search(str(p.relative_to(folder.parent))))
    ours = CHECKOUT / "packaging/licenses" / f"{crate['name']}.txt"
    found = [path.read_text(errors="replace") for path in [*files, ours] if path.exists()]
    return [text for text in found if not text.lstrip().startswith("GNU GENERAL PUBLIC") and " GPLv2\n" not in text[:80]]


def substitute(crate: Crate) -> list[str]:
    """The text of a licence that the crate offers, with the authors that the crate names. For a crate without a text."""
    offered = re.split(r" OR |/", crate["license"] or "")
    name = next((n for n in SHARED if n in offered), None)
    if name is None:
        raise SystemExit(f"error: {crate['name']} ({crate['license']}) has no licence text: "
                         f"please add packaging/licenses/{crate['name']}.txt")
    text = (CHECKOUT / SHARED[name]).read_text()
    if name == "MIT":
        authors = ", ".join(crate["authors"]) or f"the authors of {crate['name']}"
        text = re.sub(r"(?m)^Copyright.*$", lambda _: f"Copyright (c) {authors}", text, count=1)
    return [text]


def plain(page: str) -> str:
    """The words of an HTML page."""
    page = re.sub(r"(?s)<head>.*?</head>", "", page)
    return re.sub(r"\n\s*\n+", "\n\n", html.unescape(re.sub(r"<[^>]*>", "", page)))


def toolchains(zig: Path) -> list[tuple[str, list[str]]]:
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    rust = [plain(p.read_text()) for p in [Path(sysroot, "share/doc/rust/COPYRIGHT-library.html")] if p.exists()]
    libraries = [zig / "lib" / name / "LICENSE.TXT" for name in ("libcxx", "libcxxabi", "libunwind")]
    return [("The Rust standard library (MIT OR Apache-2.0)", rust or [(CHECKOUT / "LICENSE-APACHE").read_text()]),
            ("libc++, libc++abi and libunwind (Apache-2.0 WITH LLVM-exception)", [p.read_text() for p in libraries]),
            ("The runtime library of Zig (MIT)", [(zig / "LICENSE").read_text()])]


def main() -> None:
    target, zig = sys.argv[1], Path(sys.argv[2])
    parts = [(f"{c['name']} {c['version']} ({c['license']})", texts_of(c) or substitute(c)) for c in linked_crates(target)]
    parts += toolchains(zig)
    # A text that several have is printed once, below the names of them all.
    users: dict[str, tuple[str, list[str]]] = {}
    for name, texts in parts:
        for text in texts:
            names = users.setdefault(" ".join(text.split()), (text.strip(), []))[1]
            if name not in names:
                names.append(name)
    print("The binary zarr-mount contains the following libraries. Their licence texts are below, each once.\n")
    print("\n".join(name for name, _ in parts))
    for text, names in users.values():
        print("\n" + "=" * 80 + "\n" + "\n".join(names) + "\n" + "-" * 80 + "\n\n" + text)


main()
