"""Images, labels and plates of OME-NGFF by ome-zarr-py 0.18 (0.4, 0.5), bioio-ome-zarr 3.8, ngff-zarr 0.50 (0.6) and acquire-zarr 0.10.

Each expectation is what was handed to the writer; the levels are also read back with zarr.
"""
import acquire_zarr as acquire
import dask.array
import zarr
from bioio_ome_zarr.writers import Channel, OMEZarrWriter
from ngff_zarr import Methods, NgffImage, Omero, OmeroChannel, OmeroWindow, to_multiscales, to_ngff_zarr
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.writer import write_multiscale, write_multiscale_labels, write_plate_metadata, write_well_metadata

from pictureslib import Store, halved, hills, versions

TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
UNITS = {"t": "second", "z": "micrometer", "y": "micrometer", "x": "micrometer"}
BY_OME = versions("ome-zarr", "zarr")


def channel(label, color, start, end, top=65535):
    return {"label": label, "color": color, "active": True, "coefficient": 1, "family": "linear", "inverted": False,
            "window": {"min": 0, "max": top, "start": start, "end": end}}


CHANNELS = [channel("DAPI", "0000FF", 100, 3000), channel("GFP α", "00FF00", 50, 2500)]
COLOURS = [channel(name, color, 0, 255, 255) for name, color in [("Red", "FF0000"), ("Green", "00FF00"), ("Blue", "0000FF")]]


def shown(channels):
    """What is expected of a channel: its name, colour and window."""
    return [{"label": c["label"], "color": c["color"], "window": [c["window"]["start"], c["window"]["end"]]} for c in channels]


def pyramid(shape, dtype, axes, levels, seed=0):
    """Levels that are halved in y and x alone."""
    made = [hills(shape, dtype, seed)]
    while len(made) < levels:
        made.append(halved(made[-1], (axes.index("y"), axes.index("x"))))
    return made


def steps(axes, voxel, number):
    """The spacing of a level."""
    return [voxel.get(axis, 1) * (2 ** number if axis in "yx" else 1) for axis in axes]


def write_image(group, fmt, values, axes, voxel, name, chunks, channels=None, origin=None):
    """Writes an image with ome-zarr-py."""
    transformations = []
    for number in range(len(values)):
        transformations.append([{"type": "scale", "scale": steps(axes, voxel, number)}])
        if origin:
            # The centre of the first voxel of a coarser level, which is that of a finer one because every second voxel is kept.
            transformations[-1].append({"type": "translation", "translation": [origin.get(axis, 0) for axis in axes]})
    described = [{"name": axis, "type": TYPES[axis]} | ({"unit": UNITS[axis]} if axis in UNITS else {}) for axis in axes]
    write_multiscale(values, group, fmt=fmt, axes=described, coordinate_transformations=transformations, name=name,
                     storage_options=[{"chunks": chunks}] * len(values))
    if channels:
        omero = {"channels": channels, "rdefs": {"model": "color"}}
        if fmt.version == "0.5":
            group.attrs["ome"] = {**group.attrs["ome"], "omero": omero}
        else:
            group.attrs["omero"] = omero


def expect(store, path, name, axes, values, voxel, channels=None, origin=None, **said):
    """Expects an image whose levels have the paths that its writer chose, and the values that the writer was given."""
    group = zarr.open_group(str(store.path), path=path, mode="r")
    datasets = (group.attrs.get("ome") or group.attrs)["multiscales"][0]["datasets"]
    levels = {dataset["path"]: level for dataset, level in zip(datasets, values, strict=True)}
    for level, written in levels.items():
        found = group[level][...]
        assert found.dtype == written.dtype and (found == written).all(), (store.path, path, level)
    store.image(path, name, axes, levels, {axis: voxel[axis] for axis in axes if axis in voxel},
                {axis: UNITS[axis] for axis in axes if axis in voxel}, origin, shown(channels) if channels else None, **said)


def by_ome_zarr():
    voxel = {"t": 2.5, "z": 0.5, "y": 0.25, "x": 0.125}
    for fmt, name in [(FormatV04(), "ome04_5d.zarr"), (FormatV05(), "ome05_5d.zarr")]:
        store = Store(name, f"{BY_OME}, OME-Zarr {fmt.version}", "v%d" % fmt.zarr_format)
        group = zarr.open_group(str(store.path), mode="w", zarr_format=fmt.zarr_format)
        values = pyramid((2, 2, 2, 48, 64), "u2", "tczyx", 3)
        origin = {"z": 10.0, "y": 20.0, "x": 30.0}
        write_image(group, fmt, values, "tczyx", voxel, "two cells", (1, 1, 1, 32, 32), CHANNELS, origin)
        labels = [(v[:, 0] // 1000).astype("u1") for v in values]
        described = [{"name": axis, "type": TYPES[axis], "unit": UNITS[axis]} for axis in "tzyx"]
        write_multiscale_labels(labels, group, name="cells", fmt=fmt, axes=described, storage_options=[{"chunks": (1, 1, 32, 32)}] * 3,
                                coordinate_transformations=[[{"type": "scale", "scale": steps("tzyx", voxel, n)}] for n in range(3)],
                                label_metadata={"colors": [{"label-value": 1, "rgba": [255, 0, 0, 255]}]})
        expect(store, "", "two cells", "tczyx", values, voxel, CHANNELS, origin, labels=["labels/cells"])
        expect(store, "labels/cells", "cells", "tzyx", labels, voxel, is_label=True)
        store.save()
    fmt = FormatV05()
    store = Store("ome05_flat.zarr", BY_OME + ", OME-Zarr 0.5", "v3")
    root = zarr.open_group(str(store.path), mode="w", zarr_format=3)
    # Side by side in one store: a plane, a volume of floats, a picture of three colours, and a pyramid that also shrinks in z.
    plane = pyramid((70, 90), "u1", "yx", 3, 1)
    write_image(root.create_group("plane"), fmt, plane, "yx", {"y": 0.5, "x": 0.5}, "plane", (32, 32))
    expect(store, "plane", "plane", "yx", plane, {"y": 0.5, "x": 0.5})
    volume = pyramid((5, 40, 50), "f4", "zyx", 2, 2)
    write_image(root.create_group("volume"), fmt, volume, "zyx", voxel, "volume", (2, 16, 16))
    expect(store, "volume", "volume", "zyx", volume, voxel)
    colours = pyramid((3, 64, 64), "u1", "cyx", 2, 3)
    write_image(root.create_group("colours"), fmt, colours, "cyx", voxel, "colours", (3, 32, 32), COLOURS)
    expect(store, "colours", "colours", "cyx", colours, voxel, COLOURS)
    deep = [hills((8, 48, 64), "u2", 4)]
    deep.append(halved(deep[0], (0, 1, 2)))
    described = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    write_multiscale(deep, root.create_group("deep"), fmt=fmt, axes=described, name="deep", storage_options=[{"chunks": (4, 32, 32)}] * 2,
                     coordinate_transformations=[[{"type": "scale", "scale": [s, s, s]}] for s in (1.0, 2.0)])
    expect(store, "deep", "deep", "zyx", deep, {axis: 1.0 for axis in "zyx"}, left_out_levels=[1])
    store.save()


def plates():
    for fmt, name in [(FormatV04(), "ome04_plate.zarr"), (FormatV05(), "ome05_plate.zarr")]:
        store = Store(name, f"{BY_OME}, OME-Zarr {fmt.version}", "v%d" % fmt.zarr_format)
        root = zarr.open_group(str(store.path), mode="w", zarr_format=fmt.zarr_format)
        wells = ["A/1", "B/2"]
        write_plate_metadata(root, ["A", "B"], ["1", "2"], wells, fmt=fmt, name="plate 7", field_count=2)
        for number, well in enumerate(wells):
            group = root.require_group(well)
            write_well_metadata(group, ["0", "1"], fmt=fmt)
            for field in "01":
                values = pyramid((2, 32, 32), "u2", "cyx", 2, 10 * number + int(field))
                image = group.require_group(field)
                write_image(image, fmt, values, "cyx", {"y": 0.5, "x": 0.5}, f"{well}/{field}", (1, 32, 32), CHANNELS)
                expect(store, f"{well}/{field}", f"{well}/{field}", "cyx", values, {"y": 0.5, "x": 0.5}, CHANNELS)
        store.entry["plate"] = {"name": "plate 7", "wells": wells, "fields": ["0", "1"]}
        store.save()


def by_bioio():
    for zarr_format, name in [(2, "bioio_04.zarr"), (3, "bioio_05.zarr")]:
        store = Store(name, versions("bioio-ome-zarr", "zarr"), "v%d" % zarr_format)
        values = pyramid((1, 2, 3, 48, 64), "u2", "tczyx", 2, 5)
        writer = OMEZarrWriter(
            store=str(store.path), level_shapes=[v.shape for v in values], dtype="uint16", zarr_format=zarr_format, image_name="of bioio",
            chunk_shape=[(1, 1, 1, 32, 32)] * 2, axes_names=list("tczyx"), axes_types=[TYPES[a] for a in "tczyx"],
            channels=[Channel(label=c["label"], color=c["color"], window=c["window"]) for c in CHANNELS],
            axes_units=[UNITS.get(a) for a in "tczyx"], physical_pixel_size=[2.0, 1.0, 0.75, 0.25, 0.25])
        writer.write_full_volume(values[0])
        # It chooses other elements for the second level than the expectation.
        values[1] = zarr.open_group(str(store.path), mode="r")["1"][...]
        expect(store, "", "of bioio", "tczyx", values, {"t": 2.0, "z": 0.75, "y": 0.25, "x": 0.25}, CHANNELS)
        store.save()


def by_ngff_zarr():
    store = Store("ngff_06.zarr", versions("ngff-zarr", "zarr") + ", OME-Zarr 0.6", "v3")
    voxel, origin = {"z": 0.5, "y": 0.25, "x": 0.25}, {"z": 1.0, "y": 2.0, "x": 4.0}
    image = NgffImage(dask.array.from_array(hills((2, 3, 48, 64), "u2", 6), chunks=(1, 2, 16, 32)), list("czyx"), {"c": 1.0, **voxel},
                      {"c": 0.0, **origin}, "in 0.6", {axis: UNITS[axis] for axis in "zyx"})
    made = to_multiscales(image, scale_factors=[{"y": 2, "x": 2, "z": 1}], chunks=(1, 2, 16, 32), method=Methods.ITKWASM_BIN_SHRINK)
    made.metadata.omero = Omero([OmeroChannel(c["color"], OmeroWindow(**c["window"]), c["label"]) for c in CHANNELS])
    to_ngff_zarr(str(store.path), made, version="0.6", consolidate_metadata=False)
    values = [image.data.compute(), made.images[1].data.compute()]
    expect(store, "", "in 0.6", "czyx", values, voxel, CHANNELS, origin)
    store.save()


def by_acquire():
    """A stream of frames of a camera: times are its first dimension, and its shards hold several chunks."""
    store = Store("acquire_05.zarr", versions("acquire-zarr"), "v3")
    values = pyramid((3, 2, 64, 64), "u2", "tcyx", 2, 8)
    space, kinds = acquire.DimensionType.SPACE, acquire.DimensionType
    dimensions = [
        acquire.Dimension(name="t", kind=kinds.TIME, array_size_px=0, chunk_size_px=2, shard_size_chunks=2, unit="second", scale=2.5),
        acquire.Dimension(name="c", kind=kinds.CHANNEL, array_size_px=2, chunk_size_px=1, shard_size_chunks=1),
        acquire.Dimension(name="y", kind=space, array_size_px=64, chunk_size_px=32, shard_size_chunks=2, unit="micrometer", scale=0.5),
        acquire.Dimension(name="x", kind=space, array_size_px=64, chunk_size_px=32, shard_size_chunks=2, unit="micrometer", scale=0.5)]
    settings = acquire.ArraySettings(
        dimensions=dimensions, data_type="uint16", downsampling_method=acquire.DownsamplingMethod.DECIMATE, max_levels=1,
        compression=acquire.CompressionSettings(compressor=acquire.Compressor.BLOSC1, codec=acquire.CompressionCodec.BLOSC_LZ4, level=1, shuffle=1))
    stream = acquire.ZarrStream(acquire.StreamSettings(arrays=[settings], store_path=str(store.path), overwrite=True))
    stream.append(values[0])
    stream.close()
    expect(store, "", None, "tcyx", values, {"t": 2.5, "y": 0.5, "x": 0.5})
    store.save()


if __name__ == "__main__":
    by_ome_zarr()
    plates()
    by_bioio()
    by_ngff_zarr()
    by_acquire()
