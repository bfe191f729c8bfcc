"""The table of programs in the documentation: each cell is what a program makes of a mounted file, held against the library that wrote the store."""
import json
import math
import re

import numpy as np
import pytest

from support import mounting, programs
from support.array_client import Readers
from support.readers import Refused

HEADING = "## NetCDF and HDF5"
# Column -> (format of `--files`, store of `program_stores`, its file).
GRIDS = ["plain-v3", "wide-v2", "wide-v3", "wide-sharded"]
TREES = ["tree-v2", "tree-v3"]
COLUMNS = {
    "`nc` of CDF-2": [("nc", store, f"{store}.nc") for store in ("narrow-v2", "narrow-v3")],
    "other `nc`, `nc4`": [*(("nc", store, f"{store}.nc") for store in GRIDS), *(("nc4", store, f"{store}.nc") for store in [*GRIDS, *TREES])],
    "`nc5`": [("nc5", store, f"{store}.nc") for store in GRIDS],
    "`h5`": [("h5", store, f"{store}.h5") for store in [*GRIDS, *TREES]],
    "`h5ad`": [("h5ad", store, f"{file}.h5ad") for store, file in [
        *((store, store) for store in ("cells-v2", "cells-v3", "sparse-v2", "sparse-v3")), ("study-v3", "mod/rna/rna"), ("study-v3", "table/table")]],
}
# Attributes that are added by convention to those of the store.
CONVENTIONS = {"_Encoding", "_Unsigned", "dtype", "zarr_omitted", "_NCProperties"}


def table():
    """(program, column, cell) of the page."""
    text = (mounting.CHECKOUT / "docs/src/programs.md").read_text()
    section = text.split(f"{HEADING}\n")[1].split("\n#")[0]
    cells, subjects = [], {}
    for lines in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        (_, _, *columns), _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines())
        for name, subject, *row in rows:
            subjects[name] = subject
            cells += [(name, *cell) for cell in zip(columns, row, strict=True)]
    assert subjects == {name: program.subject for name, program in programs.PROGRAMS.items()}
    assert {column for _, column, _ in cells} == set(COLUMNS)
    return cells


def cells():
    for program, column, cell in table():
        marks = [pytest.mark.heavy] if programs.PROGRAMS[program].heavy else []
        yield pytest.param(program, column, cell, marks=marks, id=f"{program}-{column}".replace("`", ""))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The folder that xarray and anndata wrote."""
    folder = tmp_path_factory.mktemp("stores")
    python = mounting.CHECKOUT / ".venv-arrays" / "bin" / "python"
    mounting.ok(python, "-W", "ignore", mounting.WORKERS / "program_stores.py", folder)
    return folder


@pytest.fixture(scope="module")
def ask():
    """A library of Python: one process for those of an environment."""
    workers = {}

    def ask(reader, path, **arguments):
        environment = "heavy" if reader == "scanpy" else "arrays"
        if environment not in workers:
            workers[environment] = Readers(environment, "program_worker.py")
        return workers[environment].ask(reader, path, **arguments)

    yield ask
    for worker in workers.values():
        worker.__exit__()


@pytest.fixture(scope="module")
def mounted(module_mount, stores):
    """The root of the mount of a store in a format."""
    made = {}

    def mounted(format, store):
        if (format, store) not in made:
            made[format, store] = module_mount(stores / store, "--view", "arrays", "--files", format).path
        return made[format, store]

    return mounted


@pytest.fixture(scope="module")
def expected(stores, ask):
    """The report of the library that wrote the part of the store that a file has."""
    def expected(format, store, file):
        if format == "h5ad":
            return ask("zarr", group_of(stores / store, file))
        told = json.loads((stores / f"{store}.json").read_text())
        if format not in ("h5", "nc4"):  # the arrays directly in the group
            told["variables"] = {name: variable for name, variable in told["variables"].items() if "/" not in name}
        return told

    return expected


def group_of(store, file):
    """The group of a store that a file of its mount holds: that of the file's directory."""
    return str((store / file).parent)


@pytest.mark.parametrize("program, column, cell", cells())
def test_cell(program, column, cell, mounted, stores, expected, ask, tmp_path):
    opened, wrong = 0, {}
    for format, store, file in COLUMNS[column]:
        library_says = expected(format, store, file)
        path = mounted(format, store) / file
        assert path.is_file()
        question = programs.Question(str(path), list(library_says["variables"]), tmp_path, group_of(stores / store, file), ask)
        try:
            program_says = programs.PROGRAMS[program].says(question)
        except (programs.Failed, Refused) as error:
            has_text = any(variable.get("kind") == "text" for variable in library_says["variables"].values())
            wrong.setdefault("files with text" if has_text else "all files", []).append(f"{format}: {store}: {error}")
            continue
        opened += 1
        for kind, message in differences(program_says, library_says, programs.PROGRAMS[program]):
            wrong.setdefault(kind, []).append(f"{format}: {store}: {message}")
    said = spelled(opened, wrong)
    assert said == cell, "\n".join(f"{kind}: {message}" for kind, messages in wrong.items() for message in messages)


def spelled(opened, wrong):
    """The cell of a program that opened so many files, and got these kinds of things wrong."""
    if not opened:
        return "no"
    kinds = set(wrong)
    if "files with text" in kinds:
        kinds -= {"fixed text", "strings"}
    if {"fixed text", "strings"} <= kinds:
        kinds = kinds - {"fixed text", "strings"} | {"text"}
    return f"not {', '.join(sorted(kinds))}" if kinds else "yes"


def differences(found, expected, program):
    """(kind, difference) between the reports of a program and a library. A member that the program does not report counts as a difference,
    too."""
    if found.get("same"):  # it compared all by itself
        return
    for name, variable in expected["variables"].items():
        kind = kind_of(name, variable)
        if name not in found["variables"]:
            if program.is_subject(variable):
                yield kind, f"{name} is missing"
            continue
        for what, message in of_variable(found["variables"][name], variable, program.tolerance):
            yield what or kind, f"{name}: {message}"
    for name in set(found["variables"]) - set(expected["variables"]):
        yield "names", f"{name} is not in the store"
    if "attributes" in found and "attributes" in expected:
        for message in of_attributes(found["attributes"], expected["attributes"], program.tolerance):
            yield "attributes", message


def kind_of(name, variable):
    """The word for it on the page."""
    dtype, dimensions = variable["dtype"], variable.get("dimensions", [])
    if "dimensions" not in variable:
        return {"S": "strings", "O": "strings", "<": "strings", "|": "strings", "[": "records", "c": "complex numbers"}.get(dtype[0], "numbers")
    if dtype.startswith("StringDType"):
        return "strings"
    if variable["kind"] == "text":
        return "fixed text"
    if "/" in name:
        return "groups"
    if variable["kind"] == "bool":
        return "truth values"
    if name == "time":
        return "times"
    if dtype.endswith("int64"):
        return "64-bit integers"
    if dtype.startswith("u"):
        return "unsigned integers"
    return ["scalars", "series", "fields"][min(len(dimensions), 2)]


def of_variable(found, expected, tolerance):
    if expected["dtype"] == "float32":
        found, expected = ({**said, **{m: [short(item) for item in said[m]] for m in ("values", "decoded") if m in said}} for said in (found, expected))
    for member in ("values", "decoded"):
        if member not in found or all_close(joined(found[member], expected[member]), expected[member], tolerance):
            continue
        # Programs without dates show their counts.
        if member == "values" or not is_time(expected) or not all_close(found[member], expected["values"], tolerance):
            yield None, f"{member}: {found[member]!r:.200} for {expected[member]!r:.200}"
    for member in ("kind", "calendar"):
        if member in found and found[member] != expected[member]:
            yield None, f"{member}: {found[member]} for {expected[member]}"
    if "dimensions" in found and without_widths(found["dimensions"]) != expected["dimensions"]:
        yield "dimensions", f"{found['dimensions']} for {expected['dimensions']}"
    if "attributes" in found and "attributes" in expected:
        for message in of_attributes(found["attributes"], expected["attributes"], tolerance):
            yield "attributes", message
    for name, value in found.get("some_attributes", {}).items():
        if value != expected["attributes"].get(name):
            yield "attributes", f"{name}: {value} for {expected['attributes'].get(name)}"


def joined(found, like):
    """The texts whose letters are an array of one dimension more."""
    width = len(found) // max(len(like), 1)
    if width < 2 or not all(isinstance(letter, str) and len(letter) < 2 for letter in found):
        return found
    return ["".join(found[at:at + width]) for at in range(0, len(found), width)]


def short(value):
    """The number of 32 bits that is printed as this one."""
    return float(np.float32(value)) if isinstance(value, (int, float)) else value


def is_time(variable):
    return variable.get("calendar") or variable.get("kind", "").startswith("timedelta")


def without_widths(dimensions):
    """The dimensions of text, without that of its letters; some programs name their groups."""
    return [name.rpartition("/")[2] for name in dimensions if not re.fullmatch(r"string\d+", name)]


def all_close(found, expected, tolerance):
    return len(found) == len(expected) and all(close(one, other, tolerance) for one, other in zip(found, expected))


def close(found, expected, tolerance):
    """Numbers are equal up to the tolerance, and truth values are 0 and 1. Missing values are None."""
    found, expected = (None if item in ("NaN", "NA", "nan") or item != item else item for item in (found, expected))
    if isinstance(found, str) and isinstance(expected, (int, float)):
        return close(number(found), expected, tolerance)
    if isinstance(found, (int, float)) and isinstance(expected, (int, float)):
        return found == expected or math.isclose(found, expected, rel_tol=tolerance)
    return found == expected


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def of_attributes(found, expected, tolerance):
    for name, value in expected.items():
        value = in_file(value)
        if name not in found:
            yield f"attribute {name} is missing"
        elif not all_close(listed(found[name], value), listed(value), tolerance):
            yield f"attribute {name}: {found[name]!r:.200} for {value!r:.200}"
    for name in set(found) - set(expected) - CONVENTIONS:
        yield f"attribute {name} is not in the store"


def in_file(value):
    """An attribute as NetCDF and HDF5 have it: text, or numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) or isinstance(value, list) and not all(isinstance(item, (int, float, type(None))) for item in value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value


def listed(value, like=None):
    """A single value is a list of one, and text that stands for numbers is taken apart."""
    if isinstance(value, str) and like is not None and not isinstance(like, str):
        value = value.strip("{}").split(",")
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("store, file", [
    ("cells-v2", "cells-v2"), ("sparse-v3", "sparse-v3"), ("study-v3", "table/table"),
])
def test_anndata_leaves_a_matrix_in_the_file(mounted, stores, ask, store, file):
    """`backed` reads X when it is needed."""
    assert ask("anndata", mounted("h5ad", store) / f"{file}.h5ad", store=group_of(stores / store, file), backed="r")["same"]
