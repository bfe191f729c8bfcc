"""Random walks through `--as`: this program writes through the mount, in the shown version, and an outsider writes to the store, in the stored version. Both must then have all writes."""
import errno
import json
import os
import random

import numpy as np
import pytest
import zarr

from support.mounting import until

SEEDS = int(os.environ.get("ZARR_MOUNT_WRITING_SEEDS", "4"))
KEYS = {"name": "v2", "separator": "."}
SHAPE, CHUNK = (6, 5), (3, 2)
VALUES = [0, -1, 1.5, 1e300, 2**70, "text", "snow ☃", True, None, [], [1, [2, {"x": None}]], {"a": {"b": []}}, float("nan"), float("-inf"), "", {"": 1}]
NAMES = ["unit", "a b", "ключ", "_X", "attributes", "shape", "zarr_format"]


def same(one, other):
    """Equal, where NaN is itself."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def spelled(attributes):
    """Attributes as a document of the mount has them: JSON has no numbers that are not finite."""
    words = {"nan": "NaN", "-inf": "-Infinity"}
    return {name: words.get(str(value), value) if isinstance(value, float) else value for name, value in attributes.items()}


class Walk:
    def __init__(self, seed, view, version, mount, store):
        self.chosen = random.Random(seed)
        self.view, self.version, self.store, self.mount = view, version, store, mount
        self.shown = 5 - version
        group = zarr.create_group(str(store), zarr_format=version)
        options = {"chunk_key_encoding": KEYS} if version == 3 else {}
        array = group.create_array("a", shape=SHAPE, chunks=CHUNK, dtype="<i4", fill_value=3, **options)
        array[...] = 1
        self.values = np.ones(SHAPE, "<i4")
        self.attributes, self.of_group = {}, {}
        self.made = self.mounted()

    def mounted(self):
        return self.mount(self.store, "--rw", "--view", self.view, "--as", f"v{self.shown}")

    # The documents, as they are shown.
    def document(self):
        return self.made.path / "a" / ("zarr.json" if self.shown == 3 else ".zarray")

    def attributes_of(self, folder):
        """The file that has the attributes, and its content."""
        name = self.made.path / folder / ("zarr.json" if self.shown == 3 else ".zattrs")
        try:
            return name, json.loads(name.read_text())
        except FileNotFoundError:
            # Without attributes there is no such file; the kernel may know its name for a moment.
            return name, {}

    def save(self, name, value):
        """Writes a document in one of the ways of programs."""
        text = json.dumps(value, indent=self.chosen.choice([None, 1, 4]))
        how = self.chosen.randrange(4)
        if how == 0 or not name.exists():
            name.write_text(text)
        elif how == 1:
            other = name.with_name(f"{name.name}.{self.chosen.randrange(99)}.partial")
            other.write_text(text)
            os.replace(other, name)
        elif how == 2:
            file = os.open(name, os.O_RDWR)
            os.read(file, 5)
            os.ftruncate(file, 0)
            for at in range(0, len(text.encode()), 50):
                os.pwrite(file, text.encode()[at:at + 50], at)
            os.close(file)
        else:
            file = os.open(name, os.O_WRONLY | os.O_TRUNC)
            os.write(file, text.encode())
            os.fsync(file)
            os.close(file)

    def change(self, attributes):
        for _ in range(self.chosen.randrange(1, 4)):
            name = self.chosen.choice(NAMES)
            if self.chosen.random() < 0.3:
                attributes.pop(name, None)
            else:
                attributes[name] = self.chosen.choice(VALUES)

    def set_attributes(self, folder, model):
        name, found = self.attributes_of(folder)
        self.change(model)
        if self.shown == 3:
            found["attributes"] = model
            self.save(name, found)
        else:
            self.save(name, dict(model))

    def resize(self):
        shape = [self.chosen.randrange(0, 9) for _ in SHAPE]
        self.save(self.document(), json.loads(self.document().read_text()) | {"shape": shape})
        # Stored chunks outside the smaller shape would come back if the array grew again, so they are removed, as libraries do.
        after = np.full(shape, 3, "<i4")
        kept = tuple(slice(0, min(old, new)) for old, new in zip(self.values.shape, shape))
        after[kept] = self.values[kept]
        grid = [-(-length // chunk) for length, chunk in zip(shape, CHUNK)]
        for entry in os.listdir(self.store / "a"):
            index = entry.split(".")
            if entry[0] != "." and all(part.isdigit() for part in index) and any(int(part) >= count for part, count in zip(index, grid)):
                os.remove(self.store / "a" / entry)
        array = zarr.open_array(str(self.store / "a"), mode="r+")
        array[...] = after
        self.values = after

    def write_chunk(self):
        if 0 in self.values.shape:
            return
        array = zarr.open_array(str(self.made.path / "a"), mode="r+", zarr_format=self.shown)
        begin = [self.chosen.randrange(length) for length in self.values.shape]
        place = tuple(slice(at, self.chosen.randrange(at, length) + 1) for at, length in zip(begin, self.values.shape))
        array[place] = self.values[place] = self.chosen.randrange(100)

    def outsider(self):
        if self.chosen.random() < 0.5:
            self.change(self.attributes)
            zarr.open_array(str(self.store / "a"), mode="r+").attrs.put(self.attributes)
        elif 0 not in self.values.shape:
            self.values[...] = self.chosen.randrange(100)
            zarr.open_array(str(self.store / "a"), mode="r+")[...] = self.values

    def refused(self):
        name, before = self.document(), self.document().read_text()
        found = json.loads(before)
        change = self.chosen.choice([{"fill_value": 4}, {"zarr_format": 9}, {"shape": [1]}, {"mine": 1}, {"attributes": 7} if self.shown == 3 else {"order": "F"}])
        with pytest.raises(OSError) as caught:
            name.write_text(json.dumps(found | change))
        assert caught.value.errno == errno.EINVAL
        # The refused text is shown until the kernel has released the file.
        until(lambda: name.read_text() == before, "the document as it was")

    def remount(self):
        self.made.unmount()
        self.made = self.mounted()

    def nodes(self):
        """A group comes and goes."""
        group = zarr.open_group(str(self.made.path), mode="r+", zarr_format=self.shown)
        if (self.made.path / "g").exists():
            del group["g"]
            assert not (self.store / "g").exists()
        else:
            group.create_group("g", attributes={"n": 1})
            assert zarr.open_group(str(self.store / "g")).metadata.zarr_format == self.version

    def check(self):
        stored = zarr.open_array(str(self.store / "a"), mode="r")
        assert stored.metadata.zarr_format == self.version
        assert same(dict(stored.attrs), self.attributes) and stored.shape == self.values.shape
        np.testing.assert_array_equal(stored[...], self.values)
        assert same(dict(zarr.open_group(str(self.store)).attrs), self.of_group)
        for folder, model in (("a", self.attributes), ("", self.of_group)):
            _, found = self.attributes_of(folder)
            assert same(found.get("attributes", {}) if self.shown == 3 else found, spelled(model))
        assert json.loads(self.document().read_text())["shape"] == list(self.values.shape)
        shown = zarr.open_array(str(self.made.path / "a"), mode="r", zarr_format=self.shown)
        np.testing.assert_array_equal(shown[...], self.values)
        known = {".zarray", ".zattrs", ".zgroup"} if self.version == 2 else {"zarr.json"}
        for folder, _, names in os.walk(self.store):
            if ".zarr-mount" not in folder:
                assert not {name for name in names if name not in known and not name.replace(".", "").isdigit()}

    def step(self):
        steps = [
            (6, lambda: self.set_attributes("a", self.attributes)), (3, lambda: self.set_attributes("", self.of_group)),
            (3, self.resize), (4, self.write_chunk), (3, self.outsider), (2, self.refused), (1, self.remount), (1, self.nodes),
        ]
        self.chosen.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_walks(view, version, seed, tmp_path, mount):
    walk = Walk(seed * 7 + version, view, version, mount, tmp_path / "store")
    for _ in range(25):
        walk.step()
        walk.check()
