"""The commands of a page of the manual: they are run, and what they print is compared with the page."""
import os
import re
import shlex

from support.mounting import BINARY, CHECKOUT, run

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """The code blocks of the page `docs/src/PAGE.md`: the language and the text of each, without indentation."""
    text = (CHECKOUT / "docs/src" / f"{page}.md").read_text()
    for indent, language, code in BLOCK.findall(text):
        yield language, re.sub(f"^{indent}", "", code, flags=re.MULTILINE)


def commands(block):
    """The commands of a block of `console`, and what each prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def matches(printed, expected):
    """Whether a command has printed the lines that the page says, in any order: threads find things as they come. `…` stands for anything
    in a line."""
    printed, expected = sorted(printed.splitlines()), sorted(expected.splitlines())
    return len(printed) == len(expected) and all(
        re.fullmatch(".*".join(map(re.escape, line.split("…"))), found) for found, line in zip(printed, expected))


def run_page(page, folder, python):
    """Runs the blocks of `python` and `console` of a page in `folder`. Blocks of Python that follow each other are cells of one notebook.

    Returns the number of commands that were compared, and what the cells have printed.
    """
    (folder / "bin").mkdir()
    (folder / "bin" / "zarr-mount").symlink_to(BINARY)
    work = folder / "work"
    work.mkdir()
    path = os.pathsep.join([str(folder / "bin"), str(python.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(CHECKOUT / "python")}
    cells, told, n_compared = [], "", 0

    def run_cells():
        if not cells:
            return ""
        done = run(python, "-c", "\n".join(cells), cwd=work, env=environment)
        assert done.returncode == 0, f"{page}: {done.stderr}"
        cells.clear()
        return done.stdout

    for language, code in blocks(page):
        if language == "python":
            cells.append(code)
        if language != "console":
            continue
        told += run_cells()
        for command, expected in commands(code):
            done = run("bash", "-c", f"exec 2>&1\n{command}", cwd=work, env=environment)
            assert matches(done.stdout, expected), f"{page}: {shlex.quote(command)} printed\n{done.stdout}and not\n{expected}"
            n_compared += 1
    return n_compared, told + run_cells()
