"""Small independent parsers of formats that consist of a text and bytes of elements: MetaImage, ENVI, VTK image data."""
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

META_TYPES = {"MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "<i2", "MET_USHORT": "<u2", "MET_INT": "<i4", "MET_UINT": "<u4",
              "MET_LONG_LONG": "<i8", "MET_ULONG_LONG": "<u8", "MET_FLOAT": "<f4", "MET_DOUBLE": "<f8"}
ENVI_TYPES = {1: "u1", 2: "<i2", 3: "<i4", 4: "<f4", 5: "<f8", 6: "<c8", 9: "<c16", 12: "<u2", 13: "<u4", 14: "<i8", 15: "<u8"}


def fields(text):
    """`key = value` lines; a value in braces may go on over lines."""
    return {key.strip(): value.strip() for key, value in re.findall(r"^([^=\n]+)=\s*(\{[^}]*\}|[^\n]*)", text, re.MULTILINE)}


def metaimage(path):
    """(values, header)"""
    header = fields(Path(path).read_text())
    assert header["BinaryDataByteOrderMSB"] == "False" and header["CompressedData"] == "False", header
    shape = [int(n) for n in header["DimSize"].split()][::-1]
    assert len(shape) == int(header["NDims"])
    channels = int(header.get("ElementNumberOfChannels", 1))
    shape += [channels] if channels > 1 else []
    assert list(header)[-1] == "ElementDataFile", "what follows it is not read"
    values = np.fromfile(Path(path).parent / header["ElementDataFile"], META_TYPES[header["ElementType"]])
    return values.reshape(shape), header


def envi(path):
    """(values, header) of NAME.raw by NAME.raw.hdr"""
    text = Path(path).read_text()
    assert text.startswith("ENVI\n")
    header = fields(text)
    assert header["byte order"] == "0" and header["interleave"] == "bsq" and header["header offset"] == "0", header
    shape = [int(header[key]) for key in ("bands", "lines", "samples")]
    values = np.fromfile(str(path).removesuffix(".hdr"), ENVI_TYPES[int(header["data type"])])
    return values.reshape(shape), header


def vti(path):
    """(values, attributes of ImageData); channels of an array are its last axis."""
    data = Path(path).read_bytes()
    start = re.search(rb'<AppendedData\s+encoding="raw"\s*>\s*_', data).end()
    end = data.rindex(b"</AppendedData>")
    root = ElementTree.fromstring(data[:start] + data[end:])
    assert root.get("byte_order") == "LittleEndian" and root.get("header_type") == "UInt64"
    image = root.find("ImageData")
    extent = [int(n) for n in image.get("WholeExtent").split()]
    assert image.find("Piece").get("Extent") == image.get("WholeExtent")
    shape = [extent[2 * n + 1] - extent[2 * n] + 1 for n in (2, 1, 0)]
    arrays = []
    for array in image.iter("DataArray"):
        kind, components = array.get("type"), int(array.get("NumberOfComponents", 1))
        dtype = np.dtype(kind.lower()).newbyteorder("<")
        at = start + int(array.get("offset"))
        count = int.from_bytes(data[at : at + 8], "little")
        values = np.frombuffer(data[at + 8 : at + 8 + count], dtype)
        arrays.append(values.reshape(shape + [components] * (components > 1)))
    return np.stack(arrays) if len(arrays) > 1 else arrays[0], dict(image.attrib)
