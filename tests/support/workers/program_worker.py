"""The reports of Python's libraries on a file. Runs in .venv-arrays or .venv-heavy, and answers as `array_worker` does: a line for each
line of JSON."""
import json
import os
import sys
import warnings

# Attributes that HDF5 and NetCDF-4 use themselves.
OWN = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict"}


def netcdf4(path):
    """Raw values, and the library's interpretation of them: masked, scaled, unsigned, joined; dates by its own calendars."""
    import netCDF4

    from program_stores import flat, plain

    def walk(group, prefix):
        for name, variable in group.variables.items():
            shown = variable[...]
            attributes = {key: plain(variable.getncattr(key)) for key in variable.ncattrs()}
            entry = variables[prefix + name] = {"attributes": attributes, "dimensions": variable.dimensions}
            if "since" in str(attributes.get("units", "")):
                entry["decoded"] = [date.isoformat() for date in netCDF4.num2date(shown, attributes["units"], attributes["calendar"]).ravel()]
            else:
                entry["decoded"] = [plain(value) for value in shown.ravel().tolist()]  # None where masked
            if "_Encoding" not in attributes and "_Unsigned" not in attributes:
                variable.set_auto_maskandscale(False)
                entry["values"] = flat(variable[...])
            else:
                entry["dimensions"] = variable.dimensions[: shown.ndim]
        for name, below in group.groups.items():
            walk(below, f"{prefix}{name}/")

    variables = {}
    with netCDF4.Dataset(path) as file:
        walk(file, "")
        return {"variables": variables, "attributes": {key: plain(file.getncattr(key)) for key in file.ncattrs()}}


def scipy(path):
    from scipy.io import netcdf_file

    from program_stores import flat, plain

    with netcdf_file(path, mmap=False) as file:
        variables = {}
        for name, variable in file.variables.items():
            values = variable.data
            if values.dtype.kind == "S" and values.ndim:
                values = values.copy().view(f"S{values.shape[-1]}")[..., 0]
            variables[name] = {"values": flat(values), "dimensions": variable.dimensions[: values.ndim],
                               "attributes": {key: plain(value) for key, value in variable._attributes.items()}}
        return {"variables": variables, "attributes": {key: plain(value) for key, value in file._attributes.items()}}


def h5py(path):
    import h5py as library
    import numpy as np

    from program_stores import flat, plain

    def attributes(node):
        # Text of no length has a null dataspace, as NetCDF-4 has it.
        return {key: "" if isinstance(value, library.Empty) else plain(value) for key, value in node.attrs.items() if key not in OWN}

    def add(name, node):
        is_extent = node.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension but not")
        if not isinstance(node, library.Dataset) or node.shape is None or is_extent:  # no shape: AnnData's null
            return
        text = library.check_string_dtype(node.dtype)
        values = node.asstr()[...] if text and text.length != 1 else node[...]
        if text and text.length == 1:  # letters, one dimension more
            values = values.view(f"S{values.shape[-1]}")[..., 0]
        variables[name] = {"values": flat(np.asarray(values)), "attributes": attributes(node)}

    variables = {}
    with library.File(path) as file:
        file.visititems(add)
        return {"variables": variables, "attributes": attributes(file)}


def xarray(path, engine):
    import program_stores

    told = program_stores.told(path, engine=engine)
    for variable in told["variables"].values():
        del variable["values"], variable["dtype"]
    return told


def anndata(path, store, **how):
    """Whether the file equals the result of `read_zarr` of the store. Raises an error that names the difference."""
    import anndata as ours
    from anndata.tests.helpers import assert_equal

    found = ours.read_h5ad(path, **how)
    assert_equal(found.to_memory() if found.isbacked else found, ours.read_zarr(store), exact=True)
    return {"same": True}


def scanpy(path, store):
    """Whether an analysis of the file gives the same result as one of the store."""
    import anndata as ours
    import scanpy as library
    from anndata.tests.helpers import assert_equal

    found = []
    for data in (library.read_h5ad(path), ours.read_zarr(store)):
        library.pp.normalize_total(data, target_sum=100)
        library.pp.log1p(data)
        library.pp.pca(data, n_comps=3)
        library.pp.neighbors(data, n_neighbors=4)
        library.tl.rank_genes_groups(data, "stage", use_raw=False, groups=["early", "late"], reference="rest")
        found.append(data)
    assert_equal(*found, exact=True)
    return {"same": True}


def zarr(path):
    """The contents of the store of an AnnData object, array by array."""
    import numpy as np
    import zarr as library

    from program_stores import flat

    group = library.open_group(path, mode="r")
    members = {name: node for name, node in group.members(max_depth=None)
               if isinstance(node, library.Array) and node.attrs.get("encoding-type") != "null"}
    return {"variables": {name: {"values": flat(np.asarray(node[...])), "dtype": str(node.dtype), "shape": node.shape} for name, node in members.items()}}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # The output of libraries must not pass for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = globals()[question.pop("reader")](**question)
        except Exception as error:  # a library may refuse with any class
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer, default=str), file=answers, flush=True)
