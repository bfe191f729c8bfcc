"""Every format of the arrays view, read by its own library: types and values bit for bit."""
import json

import numpy as np
import pytest

from support import array_samples, array_view, mounting
from support.array_client import Readers
from support.array_table import CDF2, PAIRS, READ_AS, STRINGS, TYPES, in_format
from support.workers.canonical import canonical, digest
from support.readers import Refused

READER = {"npy": "npy", "nhdr": "nrrd", "mhd": "metaimage", "envi": "envi", "nc": "scipy_netcdf", "nc5": "netcdf4", "h5": "h5py",
          "tif": "tifffile", "ome.tif": "tifffile", "geo.tif": "tifffile", "nii": "nibabel", "vti": "vti", "mrc": "mrcfile", "fits": "astropy"}
# The ranks that each format must hold; others it may refuse, by name.
RANKS = {"npy": range(6), "raw": range(6), "nhdr": range(1, 6), "mhd": range(1, 6), "envi": range(2, 6), "nc": range(6), "h5": range(6),
         "tif": range(2, 6), "ome.tif": range(2, 6), "geo.tif": range(2, 6), "nii": range(1, 6), "vti": range(1, 4), "mrc": range(2, 4), "fits": range(1, 6)}
EMPTY = {"npy", "raw", "h5"}  # they hold axes of no length


@pytest.fixture(scope="module")
def readers():
    with Readers() as found:
        yield found


@pytest.fixture(scope="module", params=["little", "big"])
def types(request, module_mount, tmp_path_factory):
    """(mount, store, name -> values) of every data type."""
    store = tmp_path_factory.mktemp("types") / "types"
    expected = array_samples.write_types(store, request.param)
    array_samples.write_strings(store, array_samples.STRING_VALUES)
    return module_mount(store, *array_view.everything("nc5", "h5")), store, expected


@pytest.fixture(scope="module", params=["v3", "f_order"])
def layouts(request, module_mount, tmp_path_factory):
    store = tmp_path_factory.mktemp("layouts") / request.param
    write = {"v3": array_samples.write_layouts, "f_order": array_samples.write_f_order}[request.param]
    expected = write(store)
    return module_mount(store, *array_view.everything("nc5", "h5")), store, expected


@pytest.fixture(scope="module")
def classic(layouts, module_mount):
    """Like `layouts`, without the arrays that CDF-2 cannot hold: with them, the file would be NetCDF-4."""
    _, store, expected = layouts
    held = {name: values for name, values in expected.items() if values.size}
    chosen = [word for name in held for word in ("--array", name)]
    return module_mount(store, "--view", "arrays", "--files", "nc", *chosen), store, held


def read(readers, root, name, format, like):
    """(type, shape, hash) of an array in this format; raises `Refused`."""
    path = array_view.file_of(root, name, format)
    if not path.exists():
        raise Refused(f"no {path.name}")
    if format == "raw":
        values = np.fromfile(path, like.dtype.newbyteorder("<") if like.dtype.names is None else like.dtype)
        return values.dtype, like.shape, digest(canonical(values))
    arguments = {"name": name} if READER[format] in ("scipy_netcdf", "netcdf4", "h5py") else {}
    found = readers.ask(READER[format], path, **arguments)
    dtype = found["dtype"]
    dtype = np.dtype([tuple(f) for f in dtype]) if isinstance(dtype, list) else np.dtype(dtype)
    return dtype, tuple(found["shape"]), found["sha256"]


def without_ones(shape):
    """Image formats have fixed ranks: an axis of length 1 may come and go."""
    return [n for n in shape if n != 1]


def same_shape(format, found, expected):
    if format in ("envi", "geo.tif"):  # three axes at most: those in front are one
        return without_ones(found)[-2:] == without_ones(expected)[-2:] and np.prod(found) == np.prod(expected)
    if format == "tif" and len(expected) == 5:
        expected = [expected[axis] for axis in (0, 2, 1, 3, 4)]
    if format in ("npy", "raw", "nc", "nc5", "h5", "fits"):
        return tuple(found) == tuple(expected)
    return without_ones(found) == without_ones(expected)


def shape_in_format(format, name, values, dtype):
    """Pairs of numbers and letters of text are one axis more."""
    if name in PAIRS and dtype == PAIRS[name]:
        return (*values.shape, 2)
    if dtype == np.dtype("S1") and values.dtype != dtype:
        return (*values.shape, values.dtype.itemsize)
    return values.shape


def compare(readers, root, name, format, values, dtype):
    """The fault of an array that the format must hold as `dtype`; None if it has none."""
    try:
        found, shape, sha256 = read(readers, root, name, format, values)
    except Refused as error:
        return f"{name}: {error}"
    if found != dtype:
        return f"{name}: {found} for {dtype}"
    if not same_shape(format, shape, shape_in_format(format, name, values, dtype)):
        return f"{name}: shape {shape} for {values.shape}"
    return None if sha256 == digest(in_format(values, format, name)) else f"{name}: other values"


@pytest.mark.parametrize("format", [f for f in READ_AS if f != "jsonl"])
def test_types(types, readers, format):
    made, _, expected = types
    wrong = []
    for name, dtype in READ_AS[format].items():
        wrong.append(compare(readers, made.path, name, format, expected[name], dtype))
    assert not any(wrong), [w for w in wrong if w]


@pytest.mark.parametrize("format", list(READ_AS))
def test_arrays_that_a_format_cannot_hold_are_absent_and_named(types, readers, format):
    made, store, expected = types
    refused = {*TYPES, STRINGS} - set(READ_AS[format])
    said = array_view.info(store, files=format)
    for name in sorted(refused):
        with pytest.raises(Refused):
            if format == "jsonl":
                raise Refused if not (made.path / f"{name}.jsonl").exists() else AssertionError(name)
            read(readers, made.path, name, format, expected.get(name, np.empty(0)))
        reason = array_view.left_out(made.path, name).get(format)
        assert reason, f"{name}.json does not say why there is no {format}"
        # One sentence there for all formats that have the same reason.
        shared = reason.rpartition(" in ")[0] if "cannot be expressed in" in reason else reason
        assert name in said and shared in said, f"--info does not say of {name}: {reason}"
    for name in set(READ_AS[format]) & {*TYPES, STRINGS}:
        assert format not in array_view.left_out(made.path, name), name


def test_strings(types):
    made, _, _ = types
    text = (made.path / f"{STRINGS}.jsonl").read_text()
    # Not `splitlines`: Python splits at U+2028 too.
    assert [json.loads(line) for line in text.removesuffix("\n").split("\n")] == array_samples.STRING_VALUES.ravel().tolist()
    assert text.endswith("\n") and (made.path / f"{STRINGS}.jsonl").stat().st_size == len(text.encode())


@pytest.mark.parametrize("format", list(RANKS))
def test_layouts(layouts, classic, readers, format):
    made, _, expected = classic if format == "nc" else layouts
    wrong, held = [], 0
    for name, values in expected.items():
        dtype = np.dtype(CDF2[values.dtype.name]) if format == "nc" else values.dtype.newbyteorder("<")
        must = values.ndim in RANKS[format] and (values.size or format in EMPTY)
        must = must and not (format == "vti" and values.ndim > 3)
        if not must and array_view.left_out(made.path, name).get(format):
            try:
                read(readers, made.path, name, format, values)
                wrong.append(f"{name}: said to be left out, and it is there")
            except Refused:
                pass
            continue
        wrong.append(compare(readers, made.path, name, format, values, dtype))
        held += 1
    assert not any(wrong), [w for w in wrong if w]
    assert held >= min(2, len(expected))


def test_npy_and_raw_are_numpys_own_files(types, layouts, tmp_path):
    for made, _, expected in (types, layouts):
        for name, values in expected.items():
            if values.dtype.names is None:
                values = values.astype(values.dtype.newbyteorder("<"))
            np.save(tmp_path / "own.npy", values)
            values.tofile(tmp_path / "own.raw")
            for kind in ("npy", "raw"):
                mounting.ok("cmp", tmp_path / f"own.{kind}", made.path / f"{name}.{kind}")


def test_memory_maps(types, layouts, readers):
    for made, _, expected in (types, layouts):
        for name, values in expected.items():
            if values.size and values.dtype.kind != "O":
                mapped = np.load(made.path / f"{name}.npy", mmap_mode="r")
                assert canonical(mapped) == canonical(values), name
                assert canonical(mapped[..., -1:] if mapped.ndim else mapped) == canonical(values[..., -1:] if values.ndim else values)
    made, _, expected = types
    for name in READ_AS["tif"]:
        found = readers.ask("tifffile_mapped", made.path / f"{name}.tif")
        assert found["sha256"] == digest(in_format(expected[name], "tif", name)), name


def test_hdf5_is_netcdf4_too(layouts, readers):
    made, _, expected = layouts
    path = array_view.file_of(made.path, "x", "h5")
    for name, values in expected.items():
        found = readers.ask("netcdf4", path, name=name)
        assert found["said"]["data_model"] == "NETCDF4"
        assert found["dtype"] == values.dtype.newbyteorder("<").str and tuple(found["shape"]) == values.shape, name
        assert found["sha256"] == digest(canonical(values)), name


@pytest.mark.parametrize("format", ["nc5", "h5"])
def test_types_that_netcdf_lacks_are_marked_by_convention(types, readers, format):
    made, _, expected = types
    path = array_view.file_of(made.path, "x", format)

    def ask(name, **kwargs):
        return readers.ask("netcdf4", path, name=name, **kwargs)

    assert ask("datetime")["said"]["units"] == "seconds since 1970-01-01" and ask("timedelta")["said"]["units"] == "milliseconds"
    assert np.array_equal(ask("text", converted=True, with_values=True)["values"], expected["text"])
    if format == "nc5":  # of HDF5 these are types
        assert ask("bool")["said"]["dtype"] == "bool"
        assert ask("complex128")["said"]["dimensions"][-1] in ("ri", "complex")
        assert np.array_equal(ask("bytes", converted=True, with_values=True)["values"], np.char.decode(expected["bytes"], "utf-8"))


def test_cdf2_keeps_its_unsigned_bits(classic, readers):
    """SciPy reads these variables as signed. netCDF4 reads the same bits as unsigned."""
    made, _, expected = classic
    path = array_view.file_of(made.path, "x", "nc")
    for name in ("rank3", "sharded", "big_endian", "missing"):
        if name in expected:
            found = readers.ask("netcdf4", path, name=name, converted=True)
            assert found["said"]["data_model"] == "NETCDF3_64BIT_OFFSET"
            assert (found["dtype"], found["sha256"]) == ("<u2", digest(canonical(expected[name]))), name


@pytest.mark.parametrize("format", ["nc", "nc4", "nc5", "h5"])
def test_strings_of_any_length_in_files_of_groups(tmp_path, readers, module_mount, format):
    store = tmp_path / "words"
    values = array_samples.STRING_VALUES.copy()
    values[values == "\0\u2028"] = "\u2028"  # no NUL: see below
    array_samples.write_strings(store, values)
    made = module_mount(store, "--view", "arrays", "--files", format)
    path = array_view.file_of(made.path, "x", format)
    found = readers.ask("netcdf4", path, name=STRINGS, converted=True, with_values=True)
    assert np.array_equal(np.array(found["values"], object).ravel(), values.ravel())
    assert array_view.left_out(made.path, STRINGS) == {}


@pytest.mark.parametrize("format", ["nc4", "nc5", "h5"])
def test_strings_with_nul_are_left_out(types, module_mount, format):
    _, store, _ = types
    made = module_mount(store, "--view", "arrays", "--files", format)
    assert "NUL" in array_view.left_out(made.path, STRINGS)[format]


@pytest.mark.parametrize("name, magic", [("rank3", b"CDF\2"), ("no_columns", b"\x89HDF")])
def test_nc_is_netcdf4_where_cdf2_does_not_fit(layouts, readers, module_mount, name, magic):
    _, store, expected = layouts
    if name not in expected:
        pytest.skip("another store")
    made = module_mount(store, "--view", "arrays", "--files", "nc", "--array", name)
    path = array_view.file_of(made.path, "x", "nc")
    assert path.read_bytes()[:4] == magic
    found = readers.ask("netcdf4", path, name=name, converted=True)
    assert (found["dtype"], found["sha256"]) == ("<u2", digest(canonical(expected[name])))


def test_nc5_is_cdf5_whatever_the_types(layouts, readers, module_mount):
    _, store, expected = layouts
    made = module_mount(store, "--view", "arrays", "--files", "nc5")
    path = array_view.file_of(made.path, "x", "nc5")
    assert path.read_bytes()[:4] == b"CDF\5"
    for name, values in expected.items():
        if values.size:
            found = readers.ask("netcdf4", path, name=name)
            assert (found["dtype"], found["sha256"]) == (values.dtype.newbyteorder("<").str, digest(canonical(values))), name
    made.unmount()


def gdal(path, dtype, folder):
    """All bands, in GDAL's own idea of the file."""
    mounting.ok("gdal_translate", "-q", "-of", "ENVI", path, folder / "out")
    return np.fromfile(folder / "out", dtype)


@pytest.mark.parametrize("format, names", [
    ("envi", ["uint8", "int16", "uint32", "float64", "complex64"]), ("tif", ["bool", "uint16", "int32", "uint32"]), ("fits", ["int16", "float64"]),
])
def test_gdal(types, tmp_path, format, names):
    made, store, expected = types
    shown = json.loads(mounting.ok("gdalinfo", "-json", made.path / ("uint8.raw" if format == "envi" else f"int16.{format}")))
    assert shown["size"] == [7, 5] and len(shown["bands"]) == (1 if format == "tif" else 3)
    for name in names:
        values, shape = expected[name], expected[name].shape
        got = gdal(made.path / f"{name}.{'raw' if format == 'envi' else format}", values.dtype.newbyteorder("<"), tmp_path)
        if format == "fits":  # whose first row GDAL takes for the lowest
            got = got.reshape(shape)[:, ::-1]
        if format == "tif":  # whose first plane is all that it sees
            values = values[0]
        assert canonical(got) == canonical(values), name


def test_ncdump(layouts):
    made, _, expected = layouts
    for format in ("nc", "h5"):
        text = mounting.ok("ncdump", "-h", array_view.file_of(made.path, "x", format))
        assert all(f" {name}(" in text or f" {name} ;" in text for name, values in expected.items() if values.size)
