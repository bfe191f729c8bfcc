"""Runs with the Python of the system: GDAL makes an array, or changes one, through a mount. usage: writing_gdal.py WAY STORE MOUNTPOINT COMPRESSOR"""
import sys
from array import array

from osgeo import gdal

HEIGHT, WIDTH = 50, 70
VALUES = list(range(HEIGHT * WIDTH))


def create(path, compressor):
    root = gdal.GetDriverByName("Zarr").CreateMultiDimensional(path, options=["FORMAT=ZARR_V2"]).GetRootGroup()
    shape = [root.CreateDimension(name, None, None, length) for name, length in (("y", HEIGHT), ("x", WIDTH))]
    options = ["BLOCKSIZE=16,16"] + [f"COMPRESS={compressor}"] * (compressor != "none")
    made = root.CreateMDArray("v", shape, gdal.ExtendedDataType.Create(gdal.GDT_Int16), options)
    made.Write(array("h", VALUES).tobytes())
    made.CreateAttribute("note", [], gdal.ExtendedDataType.CreateString()).Write("as it was")


def opened(path, *flags):
    return gdal.OpenEx(path, gdal.OF_MULTIDIM_RASTER | sum(flags))


if __name__ == "__main__":
    gdal.UseExceptions()
    way, store, shown = sys.argv[1], f"{sys.argv[2]}/made.zarr", f"{sys.argv[3]}/made.zarr"
    create(shown if way == "create" else store, sys.argv[4])
    # Handles are closed when the functions return. GDAL writes when the last one is closed.
    data = opened(shown, gdal.OF_UPDATE)
    values = data.GetRootGroup().OpenMDArray("v")
    values.Write(array("h", [-5] * (25 * 30)).tobytes(), array_start_idx=[10, 20], count=[25, 30])
    values.GetAttribute("note").Write("changed")
    del values, data
    wanted = [-5 if 10 <= n // WIDTH < 35 and 20 <= n % WIDTH < 50 else n for n in VALUES]
    data = opened(store)
    values = data.GetRootGroup().OpenMDArray("v")
    assert list(array("h", bytes(values.Read()))) == wanted
    assert values.GetAttribute("note").Read() == "changed"
