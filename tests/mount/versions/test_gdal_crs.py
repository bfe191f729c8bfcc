"""GDAL's attribute `_CRS` through `--as`: added to the documents that are shown of a map, and never stored."""
import json

import numpy as np
import pytest
import zarr

WKT = 'PROJCS["WGS 84 / UTM zone 32N",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]]]]'
URL = {"url": "http://www.opengis.net/def/crs/EPSG/0/32632"}
VIEWS = ["keys", "chunks"]
VERSIONS = [2, 3]


def store(path, version, consolidated=False):
    """Maps by CF (`cf`), by the group (`geo`) and by GDAL itself (`gdal`), and an array without a place (`line`)."""
    root = zarr.create_group(str(path), zarr_format=version, attributes={"proj:code": "EPSG:32632"})
    names = {"dimension_names": ["y", "x"]} if version == 3 else {}
    for name, own in (("cf", {"grid_mapping": "utm"}), ("geo", {}), ("gdal", {"_CRS": {"wkt": "LOCAL_CS[]"}})):
        array = root.create_array(name, shape=(4, 4), chunks=(2, 2), dtype="u2", attributes=own, **names)
        array[...] = np.arange(16).reshape(4, 4)
    root.create_array("utm", shape=(), dtype="i4", attributes={"crs_wkt": WKT})[...] = 0
    root.create_array("line", shape=(4,), chunks=(2,), dtype="u2")[...] = 1
    if consolidated:
        zarr.consolidate_metadata(str(path), zarr_format=version)
    return path


def attributes(folder, version):
    """The attributes in a document whose size is as listed; `None` if there is no such document."""
    path = folder / (".zattrs" if version == 2 else "zarr.json")
    if not path.exists():
        return None
    text = path.read_bytes()
    assert path.stat().st_size == len(text)
    assert path.name in [found.name for found in folder.iterdir()]
    said = json.loads(text)
    return said if version == 2 else said.get("attributes", {})


def crs(folder, version):
    return (attributes(folder, version) or {}).get("_CRS")


def copies(made, version):
    """`_CRS` by the path of the node in consolidated metadata."""
    if version == 2:
        copied = json.loads((made / ".zmetadata").read_text())["metadata"]
        return {name.removesuffix("/.zattrs"): said.get("_CRS") for name, said in copied.items() if name.endswith("/.zattrs")}
    copied = json.loads((made / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    return {name: said.get("attributes", {}).get("_CRS") for name, said in copied.items()}


@pytest.mark.parametrize("stored", VERSIONS)
@pytest.mark.parametrize("shown", VERSIONS)
@pytest.mark.parametrize("view", VIEWS)
def test_maps_have_the_attribute(tmp_path, mount, view, stored, shown):
    path = store(tmp_path / "s", stored, consolidated=True)
    made = mount(path, "--view", view, "--as", f"v{shown}", "--ttl", "0").path
    expected = {"cf": {"wkt": WKT}, "geo": URL, "gdal": {"wkt": "LOCAL_CS[]"}, "utm": None, "line": None}
    if stored == shown == 2:
        # Its document of attributes is not there, and the mount makes no documents of this version.
        (path / "geo/.zattrs").exists() or expected.update(geo=None)
    found = {name: crs(made / name, shown) for name in expected}
    assert found == expected
    copied = copies(made, shown)
    assert {name: copied.get(name) for name in expected} == expected
    assert np.array_equal(zarr.open_array(str(made / "cf"), mode="r")[...], np.arange(16).reshape(4, 4))
    # The coordinate system is in the documents of other nodes, whose changes are seen.
    zarr.open_array(str(path / "utm"), mode="r+").attrs["crs_wkt"] = WKT.replace("32N", "33N")
    zarr.consolidate_metadata(str(path), zarr_format=stored)
    assert crs(made / "cf", shown) == {"wkt": WKT.replace("32N", "33N")}
    # Without --as, all is as it is stored.
    assert crs(mount(path, "--view", view).path / "cf", stored) is None


@pytest.mark.parametrize("stored", VERSIONS)
@pytest.mark.parametrize("shown", VERSIONS)
@pytest.mark.parametrize("view", VIEWS)
def test_the_attribute_is_not_stored(tmp_path, mount, view, stored, shown):
    path = store(tmp_path / "s", stored)
    made = mount(path, "--rw", "--view", view, "--as", f"v{shown}", "--ttl", "0").path

    def open_map():
        return zarr.open_array(str(made / "cf"), mode="r+", zarr_format=shown)

    assert open_map().attrs["_CRS"] == {"wkt": WKT}
    open_map().attrs["units"] = "m"
    assert attributes(path / "cf", stored)["units"] == "m" and crs(path / "cf", stored) is None
    assert open_map().attrs["_CRS"] == {"wkt": WKT}
    # If a program sets the attribute, it is stored; if the program deletes it, it is removed from the store.
    open_map().attrs["_CRS"] = URL
    assert crs(path / "cf", stored) == URL
    assert open_map().attrs["_CRS"] == URL
    del open_map().attrs["_CRS"]
    assert crs(path / "cf", stored) is None
    assert open_map().attrs["_CRS"] == {"wkt": WKT}
    # The map's own attribute is no one of the mount's.
    zarr.open_array(str(made / "gdal"), mode="r+", zarr_format=shown).attrs["units"] = "m"
    assert attributes(path / "gdal", stored) == {**attributes(path / "gdal", stored), "_CRS": {"wkt": "LOCAL_CS[]"}, "units": "m"}
