"""Programs that read files: each is run on a file, and reports its contents.

A report is {"attributes": of the file, "variables": path -> {"values": flat, as stored; "decoded": flat, as the program interprets
them; "attributes"; "dimensions"}}. Members that the program cannot report are missing.
"""
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from support import mounting, program_cdl, program_scripts


class Failed(Exception):
    """The program did not open the file."""


class Crashed(Failed):
    """The program crashed over the file."""


@dataclass
class Question:
    path: str  # of the file
    names: list  # of the variables that it should have
    folder: Path  # for what the program writes
    store: str  # path of the store that the file is made of, for libraries that compare the two themselves
    ask: Callable  # asks a library of Python: `array_client.Readers.ask`


@dataclass
class Program:
    says: Callable  # gives the report for a `Question`
    heavy: bool = True  # whether it is large to install
    tolerance: float = 0  # relative: how many digits it prints, or computes with
    # The variables that the program can read, in words, and as a function of xarray's report of a variable.
    subject: str = "everything"
    is_subject: Callable = lambda variable: True


def output(*command):
    done = mounting.run(*command, timeout=120)
    if done.returncode:
        kind = Failed if 0 < done.returncode < 128 else Crashed
        raise kind(f"{command[0]}: {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def one_by_one(says):
    """Some programs crash at one variable. If such a program crashes, it is asked again for each variable by itself."""
    def patient(question):
        try:
            return says(question)
        except Crashed:
            told = {"variables": {}}
            for name in question.names:
                try:
                    one = says(question, name)
                except Failed:
                    continue
                # In a tree, several variables may be reported under a name without its path.
                told["variables"] |= {key: variable for key, variable in one["variables"].items() if key == name}
                told |= {"attributes": one["attributes"]} if "attributes" in one else {}
            if not told["variables"]:
                raise
            return told

    return patient


def script(tool, text, folder, *arguments):
    """The line of JSON that a script prints last."""
    path = folder / "script"
    path.write_text(text)
    return json.loads(output(*tool, path, *arguments).rpartition("\n")[2], strict=False)


def ncdump(question, name=None):
    return program_cdl.parse(output("ncdump", "-p", "9,17", *(["-v", f"/{name}" if "/" in name else name] if name else []), question.path))


def ncks(question, name=None):
    def walk(group, prefix):
        for name, found in group.get("variables", {}).items():
            variables[prefix + name] = {"values": flat(found["data"]), "attributes": found.get("attributes", {}), "dimensions": found.get("shape", [])}
        for name, below in group.get("groups", {}).items():
            walk(below, f"{prefix}{name}/")

    variables, told = {}, json.loads(output("ncks", "--jsn", *(["-C", "-v", name] if name else []), question.path), strict=False)
    walk(told, "")
    return {"variables": variables} | ({"attributes": told["attributes"]} if "attributes" in told else {})


def flat(values):
    return [item for part in values for item in flat(part)] if isinstance(values, list) else [values]


def cdo(question):
    """The variables that CDO takes for data on grids, unpacked, and their axes. It cannot report missing values."""
    path = question.path
    variables = {"time": {"decoded": output("cdo", "-s", "showtimestamp", path).split()}}
    for grid in output("cdo", "-s", "griddes", path).split("# gridID"):
        if "gridtype  = lonlat" in grid:
            axes = dict(re.findall(r"(\w+) *= ([-\d.]+)$", grid, re.MULTILINE))
            for axis, name in {"x": "lon", "y": "lat"}.items():
                first, step, size = (float(axes[axis + what]) for what in ("first", "inc", "size"))
                variables[name] = {"values": [first + step * n for n in range(int(size))]}
    for name in output("cdo", "-s", "showname", path).split():
        values = [float(number) for number in output("cdo", "-s", "outputf,%.17g,1", f"-selname,{name}", path).split()]
        table = output("cdo", "-s", "partab", f"-selname,{name}", path)
        variables[name] = {"decoded": [None if value in (-32767, -9e33) else value for value in values],
                           "some_attributes": {key: value for key, value in re.findall(r'(units|long_name) = "(.*)"', table)}}
    return {"variables": variables}


def gdal(question):
    """The rasters that GDAL finds with the name of the file only. GDAL's netCDF driver puts the north at the top."""
    told = json.loads(output("gdalinfo", "-json", question.path))
    rasters = [value for key, value in told["metadata"].get("SUBDATASETS", {}).items() if key.endswith("_NAME")] or [question.path]
    is_netcdf, variables = told["driverShortName"] == "netCDF", {}
    for raster in rasters:
        shown = json.loads(output("gdalinfo", "-json", raster))
        try:
            output("gdal_translate", "-q", "-of", "ENVI", raster, question.folder / "raster")
        except Failed:  # GDAL takes text for a raster of letters
            continue
        values = np.fromfile(question.folder / "raster", {"Byte": "u1"}.get(shown["bands"][0]["type"]) or shown["bands"][0]["type"].lower())
        values = values.reshape(-1, *shown["size"][::-1])
        if is_netcdf:
            values = values[:, ::-1]
        name = raster.rpartition(":")[2].strip("/")
        variables[name] = {"values": [None if value != value else value for value in values.ravel().tolist()]}
        if is_netcdf:
            said = shown["metadata"][""]
            variables[name]["attributes"] = {key.partition("#")[2]: value for key, value in said.items() if key.lstrip("/").startswith(f"{name}#")}
            if "NETCDF_DIM_time_VALUES" in said:
                variables["time"] = {"values": [float(number) for number in said["NETCDF_DIM_time_VALUES"].strip("{}").split(",")],
                                     "attributes": {key.partition("#")[2]: value for key, value in said.items() if key.startswith("time#")}}
    globals_ = {key.removeprefix("NC_GLOBAL#"): value for key, value in told["metadata"][""].items() if key.startswith("NC_GLOBAL#")}
    return {"variables": variables} | ({"attributes": globals_} if is_netcdf else {})


def r_ncdf4(question, *name):
    return script(["Rscript"], program_scripts.R_NCDF4, question.folder, question.path, *name)


def r_rhdf5(question):
    return script(["Rscript"], program_scripts.R_RHDF5, question.folder, question.path)


def octave(text):
    def says(question):
        told = script(["octave-cli", "--no-init-file"], text, question.folder, question.path, *question.names)
        found = told["variables"] if isinstance(told["variables"], list) else [told["variables"]]
        variables = {variable.pop("name"): variable for variable in found}
        if not variables:
            raise Failed("nothing was read")
        for part in [told, *variables.values()]:
            if "attributes" in part:
                part["attributes"] = {key.replace("X_Fill", "_Fill"): value for key, value in part["attributes"].items()}
        return told | {"variables": variables}

    return says


def is_raster(variable):
    return len(variable["dimensions"]) > 1 and variable["kind"] != "text"


def is_on_a_grid(variable):
    return variable["kind"] != "text" and variable["dimensions"] and set(variable["dimensions"]) <= {"time", "lat", "lon"}


def python(reader, **arguments):
    return lambda question: question.ask(reader, question.path, **arguments)


def python_of_store(reader):
    return lambda question: question.ask(reader, question.path, store=question.store)


# The names are those of the first column of the table in docs/src/programs.md.
PROGRAMS = {
    "ncdump": Program(one_by_one(ncdump), heavy=False),
    "NCO": Program(one_by_one(ncks), tolerance=1e-6),
    "CDO": Program(cdo, tolerance=1e-12, subject="fields on grids, and times", is_subject=is_on_a_grid),
    "GDAL": Program(gdal, heavy=False, subject="rasters: numbers of two dimensions or more", is_subject=is_raster),
    "R: ncdf4": Program(one_by_one(r_ncdf4), tolerance=1e-14),
    "R: rhdf5": Program(r_rhdf5, tolerance=1e-14),
    "Octave: `ncinfo`, `ncread`": Program(octave(program_scripts.OCTAVE_NETCDF), tolerance=1e-14),
    "Octave: `ncread`": Program(octave(program_scripts.OCTAVE_NCREAD), tolerance=1e-14),
    "Octave: `load`": Program(octave(program_scripts.OCTAVE_LOAD), tolerance=1e-14),
    "netCDF4-python": Program(python("netcdf4"), heavy=False, tolerance=1e-15),
    "h5py": Program(python("h5py"), heavy=False),
    "xarray: netcdf4": Program(python("xarray", engine="netcdf4"), heavy=False),
    "xarray: h5netcdf": Program(python("xarray", engine="h5netcdf"), heavy=False),
    "xarray: scipy": Program(python("xarray", engine="scipy"), heavy=False),
    "SciPy": Program(python("scipy"), heavy=False),
    "anndata": Program(python_of_store("anndata"), heavy=False),
    "scanpy": Program(python_of_store("scanpy")),
}
