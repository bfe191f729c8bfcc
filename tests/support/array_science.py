"""A climate-like group and an OME-NGFF image, as their communities write them, with zarr-python alone."""
import numpy as np
import zarr

TIMES, LATITUDES, LONGITUDES = 6, 10, 20
SCALE, OFFSET, MISSING = 0.01, 273.15, -32768

IMAGE_SHAPE = (2, 3, 4, 5, 6)
IMAGE_AXES = [("t", "time", "second"), ("c", "channel", None),
              ("z", "space", "micrometer"), ("y", "space", "micrometer"), ("x", "space", "micrometer")]
# The step of each axis at level 0 is the product of these: the dataset has one factor, and the whole image the other.
DATASET_SCALE, IMAGE_SCALE = [5.0, 1.0, 1.0, 0.25, 0.125], [2.0, 1.0, 2.0, 2.0, 2.0]
VOXEL = (0.25, 0.5, 2.0)  # x, y, z in micrometers
INTERVAL = 10.0
TRANSLATION = [0.0, 0.0, 4.0, 1.0, 3.0]


def packed():
    """Temperatures as int16, some missing."""
    dice = np.random.default_rng(11)
    values = dice.integers(-4000, 4000, (TIMES, LATITUDES, LONGITUDES), "<i2")
    values[dice.random(values.shape) < 0.05] = MISSING
    return values


def unpacked():
    values = packed()
    return np.where(values == MISSING, np.nan, values * SCALE + OFFSET)


def coordinates():
    return {"time": np.arange(TIMES, dtype="<i4") * 6, "lat": np.linspace(-85.5, 85.5, LATITUDES).astype("<f4"),
            "lon": np.arange(LONGITUDES, dtype="<f4") * 18}


ATTRIBUTES = {
    "time": {"units": "hours since 2001-02-03 00:00:00", "calendar": "standard", "standard_name": "time", "axis": "T"},
    "lat": {"units": "degrees_north", "standard_name": "latitude", "axis": "Y"},
    "lon": {"units": "degrees_east", "standard_name": "longitude", "axis": "X"},
    "t2m": {"units": "K", "standard_name": "air_temperature", "scale_factor": SCALE, "add_offset": OFFSET,
            "_FillValue": MISSING, "valid_range": [-30000, 30000], "flags": ["a", "b"], "grid": {"kind": "regular"}},
}


def write_climate(root, zarr_format):
    """The group that a climate program would write. In v2, an attribute has the dimensions, and the fill value marks missing values."""
    group = zarr.open_group(str(root), mode="w", zarr_format=zarr_format, attributes={"Conventions": "CF-1.8", "title": "températures", "runs": 3})
    every = {**coordinates(), "t2m": packed()}
    for name, values in every.items():
        dimensions = ["time", "lat", "lon"] if name == "t2m" else [name]
        attributes = dict(ATTRIBUTES[name])
        kwargs = {"dimension_names": dimensions} if zarr_format == 3 else {}
        if zarr_format == 2:
            attributes["_ARRAY_DIMENSIONS"] = dimensions
            attributes.pop("_FillValue", None)
        chunks = (2, 4, 7) if name == "t2m" else values.shape
        array = group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, attributes=attributes,
                                   fill_value=MISSING if name == "t2m" else (0 if zarr_format == 3 else None), **kwargs)
        array[...] = values
    return root


def image():
    return np.random.default_rng(12).integers(0, 1 << 16, IMAGE_SHAPE, "<u2")


# Name, colour and window of each channel.
CHANNELS = [("DAPI", "0000FF", (0.0, 1500.0)), ("GFP é", "00FF00", (12.5, 900.0)), ("<TRITC>", "FF8000", (100.0, 65535.0))]


def write_image(root, version):
    """OME-NGFF 0.4 (Zarr v2) or 0.5 (v3), two levels."""
    axes = [{"name": name, "type": kind} | ({"unit": unit} if unit else {}) for name, kind, unit in IMAGE_AXES]
    datasets = [{"path": str(level), "coordinateTransformations": [
        {"type": "scale", "scale": [s * (2 ** level if n > 2 else 1) for n, s in enumerate(DATASET_SCALE)]},
        {"type": "translation", "translation": TRANSLATION}]} for level in range(2)]
    multiscale = {"name": "image", "axes": axes, "datasets": datasets, "coordinateTransformations": [{"type": "scale", "scale": IMAGE_SCALE}]}
    omero = {"channels": [{"label": label, "color": color, "window": {"start": start, "end": end, "min": 0, "max": 65535}, "active": True}
                          for label, color, (start, end) in CHANNELS]}
    if version == "0.4":
        attributes, zarr_format = {"multiscales": [{"version": "0.4", **multiscale}], "omero": omero}, 2
    else:
        attributes, zarr_format = {"ome": {"version": "0.5", "multiscales": [multiscale], "omero": omero}}, 3
    group = zarr.open_group(str(root), mode="w", zarr_format=zarr_format, attributes=attributes)
    for level, values in enumerate((image(), image()[..., ::2, ::2])):
        kwargs = {"dimension_names": [a[0] for a in IMAGE_AXES]} if zarr_format == 3 else {}
        group.create_array(str(level), shape=values.shape, chunks=(1, 1, 2, 3, 4), dtype="<u2", fill_value=0,
                           chunk_key_encoding={"name": "v2" if zarr_format == 2 else "default", "separator": "/"}, **kwargs)[...] = values
    return root
