"""How each format's own library reads a file: (values, other facts). Runs in .venv-arrays or .venv-heavy.

A library is imported when its reader is first called, because no environment has all of them. Values are in C order, the slowest axis
first, in whatever order the library has them.
"""
import io

import numpy as np

import array_parsers


def npy(path):
    return np.load(path), {}


def npy_mapped(path):
    return np.load(path, mmap_mode="r"), {}


def scipy_netcdf(path, name):
    from scipy.io import netcdf_file

    with netcdf_file(path, mmap=False) as file:
        variable = file.variables[name]
        return np.array(variable.data), {"dimensions": variable.dimensions}


def netcdf4(path, name, converted=False):
    """`converted` gives the values as the library prefers them: masked, scaled, unsigned, text joined."""
    import netCDF4

    with netCDF4.Dataset(path) as file:
        variable = file[name]
        if not converted:
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
        said = {key: plain(variable.getncattr(key)) for key in variable.ncattrs()}
        said |= {"dimensions": variable.dimensions, "data_model": file.data_model,
                 "unlimited": [d.name for d in file.dimensions.values() if d.isunlimited()],
                 "global": {key: plain(file.getncattr(key)) for key in file.ncattrs()}}
        return np.asarray(variable[...]), said


def h5py(path, name):
    import h5py as library

    with library.File(path) as file:
        dataset = file[name]
        said = {key: plain(value) for key, value in dataset.attrs.items()}
        return np.asarray(dataset[()]), said


def tifffile(path):
    import tifffile as library

    with library.TiffFile(path) as file:
        series = file.series[0]
        said = {"axes": series.axes, "imagej": plain(file.imagej_metadata or {}), "ome": file.ome_metadata}
        tags = file.pages[0].tags
        said["resolution"] = [tags[tag].value for tag in ("XResolution", "YResolution") if tag in tags]
        return series.asarray(), said


def tifffile_levels(path):
    """The levels of a pyramid. `said` has the shape, the type and the digest of each, and whether its planes are tiled."""
    import tifffile as library

    from canonical import canonical, digest

    with library.TiffFile(path) as file:
        series = file.series[0]
        levels = [(level, level.asarray()) for level in series.levels]
        said = [{"shape": values.shape, "dtype": values.dtype.str, "sha256": digest(canonical(values)),
                 "is_tiled": level.keyframe.is_tiled, "axes": level.axes} for level, values in levels]
        tags = file.pages[0].tags
        resolution = [tags[tag].value for tag in ("XResolution", "YResolution", "ResolutionUnit") if tag in tags]
        return levels[0][1], {"levels": said, "ome": file.ome_metadata, "n_series": len(file.series), "resolution": plain(np.array(resolution[:2], float))}


def pillow(path):
    from PIL import Image

    with Image.open(path) as image:
        frames = []
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image))
        said = {"mode": image.mode, "text": plain(getattr(image, "text", {})), "palette": image.getpalette(), "clear": plain(image.info.get("transparency"))}
        return np.stack(frames), said


def tifffile_mapped(path):
    import tifffile as library

    return library.memmap(path, mode="r"), {}


def nibabel(path):
    import nibabel as library

    image = library.load(path)
    header = image.header
    values = np.asarray(image.dataobj.get_unscaled()).T
    said = {"zooms": [float(z) for z in header.get_zooms()], "units": header.get_xyzt_units(), "class": type(image).__name__,
            "affine": image.affine.tolist(), "slope": plain(np.array(header.get_slope_inter(), float))}
    return values, said


def mrcfile(path):
    import mrcfile as library

    with library.mmap(path, mode="r") as file:
        size = file.voxel_size
        return np.array(file.data), {"voxel": [float(size.x), float(size.y), float(size.z)], "valid": library.validate(path, print_file=io.StringIO())}


def astropy(path):
    from astropy.io import fits

    with fits.open(path, memmap=False) as units:
        units.verify("exception")
        return np.array(units[0].data), {key: plain(value) for key, value in units[0].header.items() if key}


def nrrd(path):
    import nrrd as library

    values, header = library.read(path, index_order="C")
    return np.asarray(values), {key: plain(value) for key, value in header.items()}


def metaimage(path):
    return array_parsers.metaimage(path)


def envi(path):
    return array_parsers.envi(path)


def vti(path):
    return array_parsers.vti(path)


def simpleitk(path):
    import SimpleITK

    image = SimpleITK.ReadImage(path)
    return SimpleITK.GetArrayFromImage(image), {"spacing": image.GetSpacing(), "origin": image.GetOrigin()}


def vtk(path):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOXML import vtkXMLImageDataReader

    reader = vtkXMLImageDataReader()
    reader.SetFileName(path)
    reader.Update()
    image = reader.GetOutput()
    data = image.GetPointData()
    arrays = [vtk_to_numpy(data.GetArray(n)) for n in range(data.GetNumberOfArrays())]
    shape = image.GetDimensions()[::-1]
    arrays = [a.reshape(*shape, *a.shape[1:]) for a in arrays]
    said = {"spacing": image.GetSpacing(), "origin": image.GetOrigin()}
    return np.stack(arrays) if len(arrays) > 1 else arrays[0], said


def plain(value):
    """The value as JSON can have it."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
