"""Reads files with libraries for maps and for microscope images; each reader returns (values, other facts). Runs in .venv-pictures.

A library is imported when its reader is first called. Values are in the library's own order of axes, whose letters are in the facts.
"""
import numpy as np


def rasterio(path, level=None, same_as=None):
    """`same_as` is the coordinate system, as WKT, that the file should have."""
    import rasterio as library

    with library.open(path, **({} if level is None else {"overview_level": level})) as file:
        said = {"transform": file.transform.to_gdal(), "nodata": file.nodata, "names": file.descriptions, "units": file.units,
                "scales": file.scales, "offsets": file.offsets, "overviews": file.overviews(1),
                "structure": file.tags(ns="IMAGE_STRUCTURE"), "colours": [colour.name for colour in file.colorinterp]}
        if file.crs:
            said |= {"wkt": file.crs.to_wkt(), "epsg": file.crs.to_epsg(),
                     "is_same": file.crs == library.crs.CRS.from_wkt(same_as) if same_as else None}
        return file.read(), said


def rio_cogeo(path):
    """Whether the file is a cloud-optimised GeoTIFF, and the reasons why not."""
    from rio_cogeo.cogeo import cog_validate

    valid, errors, warnings = cog_validate(path, strict=True, quiet=True)
    return [], {"valid": valid, "against": [*errors, *warnings]}


def ome_types(path):
    import ome_types as library

    image = library.from_tiff(path, validate=True).images[0]
    pixels = image.pixels
    sizes = {axis: [getattr(pixels, f"physical_size_{axis}"), getattr(pixels, f"physical_size_{axis}_unit").value] for axis in "zyx"}
    channels = [[channel.name, channel.color and channel.color.as_hex("long")] for channel in pixels.channels]
    return [], {"name": image.name, "sizes": sizes, "channels": channels, "step": pixels.time_increment}


def bioio(path):
    from bioio import BioImage
    import bioio_ome_tiff

    image = BioImage(path, reader=bioio_ome_tiff.Reader)
    sizes = image.physical_pixel_sizes
    return image.data, {"axes": image.dims.order, "names": image.channel_names, "sizes": [sizes.Z, sizes.Y, sizes.X],
                        "levels": list(image.resolution_levels)}


def bioio_tifffile(path):
    from bioio import BioImage
    import bioio_tifffile as library

    image = BioImage(path, reader=library.Reader)
    return image.data, {"axes": image.dims.order}


def tiffslide(path, level=0):
    import tiffslide as library

    with library.TiffSlide(path) as slide:
        said = {"sizes": slide.level_dimensions, "steps": slide.level_downsamples, "mpp": [slide.properties.get(f"tiffslide.mpp-{a}") for a in "xy"]}
        return np.asarray(slide.read_region((0, 0), level, slide.level_dimensions[level], as_array=True)), said


def pyvips(path, level=0):
    import pyvips as library

    image = library.Image.tiffload(path, **({"subifd": level - 1} if level else {}))
    levels = image.get("n-subifds") if image.get_typeof("n-subifds") else 0
    return image.numpy(), {"subifds": levels, "steps": [1000 / image.xres, 1000 / image.yres]}
