"""The files of the arrays view, and their names."""
import os
import shutil

import numpy as np
import pytest
import zarr

from support import array_view, mounting, sample

SHAPE = (4, 6, 8)
VALUES = np.arange(192, dtype="<i2").reshape(SHAPE)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """`t` (time, lat, lon), `plain` without names of dimensions, groups `g` and `g/h` with one array each."""
    root = tmp_path_factory.mktemp("names") / "data.zarr"
    group = zarr.open_group(str(root), mode="w")
    add(group, "t", dimension_names=["time", "lat", "lon"])
    add(group, "plain")
    add(group, "g/inner")
    add(group, "g/h/deep")
    return root


def add(group, name, values=VALUES, **kwargs):
    group.create_array(name, shape=values.shape, chunks=[3] * values.ndim, dtype=values.dtype, **kwargs)[...] = values


def arrays(mount, store, *arguments):
    return mount(store, "--view", "arrays", *arguments)


def test_files_mean_the_arrays_view_and_stores_of_a_directory_lose_their_suffix(mount, tmp_path):
    add(zarr.open_group(str(tmp_path / "s" / "clim.zarr"), mode="w"), "t")
    add(zarr.open_group(str(tmp_path / "s" / "plain"), mode="w"), "t")
    made = mount(tmp_path / "s", "--files", "nc,h5", "--sidecar", "no")
    assert names(made.path) == ["clim.zarr/clim.h5", "clim.zarr/clim.nc", "plain/plain.h5", "plain/plain.nc", "s.h5"]
    assert not (made.path / "clim.zarr/clim.zarr.nc").exists()
    made.unmount()
    made = mount(tmp_path / "s", "--array", "t")
    assert (made.path / "plain" / "t.npy").exists()
    made.unmount()


def names(root):
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_npy_is_shown_by_default(mount, store):
    made = arrays(mount, store)
    assert names(made.path) == [f"{a}.{e}" for a in ("g/h/deep", "g/inner", "plain", "t") for e in ("json", "npy")]
    assert (np.load(made.path / "g/h/deep.npy") == VALUES).all()


def test_sidecars_can_be_left_out(mount, store):
    made = arrays(mount, store, "--sidecar", "no")
    assert names(made.path) == [f"{a}.npy" for a in ("g/h/deep", "g/inner", "plain", "t")]
    assert not (made.path / "t.json").exists()


def test_a_group_is_a_file_in_its_own_directory(mount, store):
    made = arrays(mount, store, "--files", "nc,h5")
    found = [n for n in names(made.path) if not n.endswith(".json")]
    own = {os.path.dirname(n): [] for n in found}
    for name in found:
        own[os.path.dirname(name)].append(os.path.basename(name))
    assert set(own) == {"", "g", "g/h"}
    assert sorted(own["g"]) == ["g.h5", "g.nc"] and sorted(own["g/h"]) == ["h.h5", "h.nc"]
    assert {name.split(".")[0] for name in own[""]} == {"data"}


def test_the_json_beside_an_array(mount, store):
    told = array_view.told(arrays(mount, store).path, "t")
    assert told["shape"] == list(SHAPE) and told["data_type"] == "int16"
    assert told["dimension_names"] == ["time", "lat", "lon"] and told["attributes"] == {}
    assert told["chunk_shape"] == [3, 3, 3] and told["codecs"]


def test_array_restricts_the_shown_arrays(mount, store):
    for patterns, left in {("t",): ["t"], ("g/*",): ["g/inner"], ("g/**",): ["g/h/deep", "g/inner"], ("t", "g/h/*"): ["g/h/deep", "t"]}.items():
        made = arrays(mount, store, *[a for p in patterns for a in ("--array", p)])
        assert [n.removesuffix(".npy") for n in names(made.path) if n.endswith(".npy")] == left, patterns
        made.unmount()


def test_array_restricts_group_files_too(mount, store):
    made = arrays(mount, store, "--files", "nc", "--array", "t")
    text = mounting.ok("ncdump", "-h", array_view.file_of(made.path, "t", "nc"))
    assert " t(" in text and " plain(" not in text


def test_an_array_glob_that_matches_nothing_shows_nothing(mount, store):
    assert names(arrays(mount, store, "--files", "npy,nc", "--array", "nothing").path) == []


SELECTIONS = {
    "t@3": np.s_[3], "t@-1": np.s_[-1], "t@3,:,2:4": np.s_[3, :, 2:4], "t@1:3": np.s_[1:3], "t@:,2": np.s_[:, 2], "t@0,0,0": np.s_[0, 0, 0],
    "t@time=2": np.s_[2], "t@lon=-2": np.s_[..., -2], "t@lat=1:4,time=0": np.s_[0, 1:4], "t@lon=5:": np.s_[..., 5:], "t@:2": np.s_[:2],
    "t@-3:-1": np.s_[-3:-1], "plain@2,:3": np.s_[2, :3], "g/h/deep@0": np.s_[0],
}


@pytest.fixture(scope="module")
def shown(store, module_mount):
    return module_mount(store, "--view", "arrays", "--files", "npy,raw,nii,tif,nhdr")


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_is_a_file(shown, name):
    expected = np.asarray(VALUES[SELECTIONS[name]])
    path = shown.path / f"{name}.npy"
    assert path.stat().st_size == 128 + expected.nbytes
    found = np.load(path, mmap_mode="r")
    assert found.dtype == expected.dtype and found.shape == expected.shape and (found == expected).all()
    assert (shown.path / f"{name}.raw").read_bytes() == expected.tobytes()


def test_the_header_of_a_selection_points_to_its_own_elements(shown):
    text = (shown.path / "t@3.nhdr").read_text()
    assert "data file: t@3.raw" in text and "sizes: 8 6" in text


@pytest.mark.parametrize("name", [
    "t@4", "t@-5", "t@3,3,3,3", "t@x=1", "t@time=9", "t@time=1,time=2", "t@", "t@,", "t@1;2", "t@2:1:1", "t@1e3", "t@0x1", "t@ 1", "t@:9",
    "t@99999999999999999999", "plain@time=1", "nothing@1", "t@1@1", "g@0", "@1",
])
def test_nonsense_is_no_file(shown, name):
    assert not (shown.path / f"{name}.npy").exists()
    with pytest.raises(FileNotFoundError):
        open(shown.path / f"{name}.npy", "rb")


def test_selections_are_not_listed(shown):
    assert not any("@" in name for name in names(shown.path))
    (shown.path / "t@1.npy").read_bytes()
    assert not any("@" in name for name in names(shown.path))


def test_a_format_that_is_not_asked_for_is_absent(shown):
    for name in ("t.fits", "t@1.fits", "t.xyz", "t.npy.npy", "t", "t.", ".npy"):
        assert not (shown.path / name).exists(), name


def test_clashes_get_a_tilde(mount, tmp_path):
    """An array called as the file of another, and a group called as one."""
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    add(group, "t")
    add(group, "t.npy", VALUES + 1)
    group.create_group("t.json").create_array("x", shape=3, chunks=3, dtype="u1")
    made = arrays(mount, tmp_path / "s", "--files", "npy,raw")
    found = names(made.path)
    assert len(found) == len(set(found)) and "t.json/x.npy" in found
    tilde = [n for n in found if "~" in n]
    assert tilde, found
    every = [np.load(made.path / n) for n in found if ".npy" in n and n.removesuffix("~").endswith(".npy") and not n.startswith("t.json/")]
    sums = sorted(int(a.sum()) for a in every)
    assert sums == sorted([int(VALUES.sum()), int((VALUES + 1).sum())]), found


def test_a_group_file_and_an_array_of_one_name(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "g"), mode="w")
    add(group, "g")
    made = arrays(mount, tmp_path / "g", "--files", "nc,h5,npy")
    for name in names(made.path):
        assert (made.path / name).stat().st_size == len((made.path / name).read_bytes())


@pytest.mark.parametrize("name, shown_as", [("root.zarr", "root"), ("plain", "plain"), ("two.words.zarr", "two.words")])
def test_a_root_array_takes_the_stores_name(mount, tmp_path, name, shown_as):
    zarr.create_array(str(tmp_path / name), data=VALUES, chunks=(2, 3, 4))
    made = arrays(mount, tmp_path / name)
    found = names(made.path)
    assert found in ([f"{shown_as}.json", f"{shown_as}.npy"], [f"{name}.json", f"{name}.npy"])
    assert (np.load(made.path / found[1]) == VALUES).all()


def test_the_demo_store(mount):
    made = arrays(mount, "demo:", "--files", "npy,nc,png")
    assert (made.path / "demo.nc").exists() or (made.path / "air/air.nc").exists()
    assert np.load(made.path / "air/temperature.npy", mmap_mode="r").shape == (8, 48, 96)
    fine, coarse = (np.load(made.path / f"cells/{level}.npy").astype(int) for level in (0, 1))
    assert (coarse == fine.reshape(2, 64, 2, 96, 2).sum(axis=(2, 4)) // 4).all()
    channels, *space = array_view.told(made.path, "cells/0")["axes"]
    assert [channel["label"] for channel in channels["channels"]] == ["nuclei", "membranes"]
    assert [(axis["spacing"], axis["unit"]) for axis in space] == 2 * [(0.5, "micrometer")]
    assert array_view.told(made.path, "cells/cells")["attributes"]["ome"]["omero"]["name"] == "cells"
    picture = mounting.CHECKOUT / "docs/src/cells.png"
    assert (made.path / "cells/0.png").read_bytes() == picture.read_bytes(), f"copy the new picture to {picture}"
    assert "UTM zone 28N" in array_view.told(made.path, "legacy/spatial_ref")["attributes"]["crs_wkt"]


def test_a_node_inside_a_hierarchy(mount, store):
    made = arrays(mount, store / "g")
    assert names(made.path) == ["h/deep.json", "h/deep.npy", "inner.json", "inner.npy"]
    assert (np.load(arrays(mount, store / "t").path / "t.npy") == VALUES).all()


def test_a_zip_store(mount, store, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "s"), "zip", store)
    made = arrays(mount, archive)
    assert (np.load(made.path / "t.npy") == VALUES).all()


def test_views_stand_side_by_side(mount, store):
    made = mount(store, "--view", "keys,chunks,arrays")
    assert sorted(os.listdir(made.path)) == ["arrays", "chunks", "keys"]
    assert (np.load(made.path / "arrays/t.npy") == VALUES).all()
    assert (zarr.open_array(str(made.path / "chunks"), path="t", mode="r")[...] == VALUES).all()


@pytest.mark.parametrize("arguments, word", [
    (["--files", "xyz"], "xyz"), (["--files", "npy,"], "files"), (["--files", "NPY"], "NPY"), (["--files", ""], "files"),
])
def test_usage_errors(store, tmp_path, arguments, word):
    done = mounting.run(mounting.BINARY, store, tmp_path / "point", "--view", "arrays", *arguments)
    assert done.returncode != 0 and word in done.stderr
    assert not (tmp_path / "point").exists()


def test_nc_and_nc5_cannot_both_be_shown(store, tmp_path):
    """The files of both formats would have the same names."""
    point = tmp_path / "point"
    done = mounting.run(mounting.BINARY, store, point, "--view", "arrays", "--files", "nc,nc5")
    if done.returncode == 0:
        found = [n for n in os.listdir(point) if ".nc" in n]
        mounting.run(mounting.BINARY, "--unmount", point)
        assert len(found) == 2, "one of the two is silently gone"
    else:
        assert "nc5" in done.stderr


def test_odd_names(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    for name in ("a b", "日本", "a@b", "x~", "1", "-a"):
        add(group, name)
    made = arrays(mount, tmp_path / "s", "--files", "npy,nc,h5")
    for name in ("a b", "日本", "a@b", "x~", "1", "-a"):
        assert (np.load(made.path / f"{name}.npy") == VALUES).all(), name
    assert (np.load(made.path / "a@b@1.npy") == VALUES[1]).all()
    mounting.ok("ncdump", "-h", array_view.file_of(made.path, "x", "nc"))


def test_unlimited(mount, store):
    made = arrays(mount, store, "--files", "nc", "--unlimited", "time")
    text = mounting.ok("ncdump", "-h", array_view.file_of(made.path, "t", "nc"))
    assert "time = UNLIMITED ; // (4 currently)" in text


def test_mount_options_take_the_same(mount, store):
    made = mount(store, "-o", "view=arrays,files=raw")
    assert "t.raw" in os.listdir(made.path)


def test_times_do_not_depend_on_the_format(mount, tmp_path):
    root = sample.write(tmp_path / "s.zarr")
    made = arrays(mount, root, "--files", "npy,nii")
    for name in ("plain", "sharded"):
        assert len({os.stat(made.path / f"{name}.{e}").st_mtime_ns for e in ("npy", "json")}) == 1
