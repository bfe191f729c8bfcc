"""Prints `streams.txt`, with which `tests.rs` compares streams of zfp. The argument is `libzfp.so` of zfp 1.0.1.

Each line has a type, a kind of numbers, a shape, a mode with its parameters, the length of the stream, and the CRC-32
of the stream and of the numbers that it decodes to.
"""

import ctypes
import sys
import zlib

import numpy as np

zfp = ctypes.CDLL(sys.argv[1])
for name in ("zfp_stream_open", "zfp_field_alloc", "stream_open"):
    getattr(zfp, name).restype = ctypes.c_void_p
for name in ("zfp_stream_maximum_size", "zfp_compress", "zfp_decompress", "zfp_write_header", "zfp_read_header"):
    getattr(zfp, name).restype = ctypes.c_size_t
POINTER, UINT, DOUBLE = ctypes.c_void_p, ctypes.c_uint, ctypes.c_double
TYPES = {"int32": 1, "int64": 2, "float32": 3, "float64": 4}
SHAPES = [(4,), (7,), (8, 8), (5, 6), (4, 4, 4), (3, 5, 6), (4, 4, 4, 4), (2, 3, 5, 6)]
MODES = [("Rate", 3.0), ("Rate", 11.0), ("Precision", 9), ("Precision", 64), ("Accuracy", 0.02), ("Accuracy", 0.0),
         ("Expert", 30, 200, 20, -3), ("Expert", 1, 70, 64, -1074), ("Reversible",)]


def stream_of(array, mode, parameters):
    def field(array):
        found = zfp.__getattr__(f"zfp_field_{array.ndim}d")
        found.restype = POINTER
        return POINTER(found(POINTER(array.ctypes.data), TYPES[array.dtype.name], *(ctypes.c_size_t(n) for n in array.shape[::-1])))

    zfp_stream, source = POINTER(zfp.zfp_stream_open(None)), field(array)
    if mode == "Rate":
        zfp.zfp_stream_set_rate(zfp_stream, DOUBLE(parameters[0]), TYPES[array.dtype.name], array.ndim, 0)
    elif mode == "Precision":
        zfp.zfp_stream_set_precision(zfp_stream, UINT(parameters[0]))
    elif mode == "Accuracy":
        zfp.zfp_stream_set_accuracy(zfp_stream, DOUBLE(parameters[0]))
    elif mode == "Expert":
        assert zfp.zfp_stream_set_params(zfp_stream, *parameters)
    else:
        zfp.zfp_stream_set_reversible(zfp_stream)
    room = np.zeros(zfp.zfp_stream_maximum_size(zfp_stream, source) + 64, "u1")
    bits = POINTER(zfp.stream_open(POINTER(room.ctypes.data), ctypes.c_size_t(room.size)))
    zfp.zfp_stream_set_bit_stream(zfp_stream, bits)
    zfp.zfp_stream_rewind(zfp_stream)
    assert zfp.zfp_write_header(zfp_stream, source, 7)
    length = zfp.zfp_compress(zfp_stream, source)
    zfp.zfp_stream_rewind(zfp_stream)
    decoded = np.zeros_like(array)
    assert zfp.zfp_read_header(zfp_stream, POINTER(zfp.zfp_field_alloc()), 7)
    assert zfp.zfp_decompress(zfp_stream, field(decoded)) == length
    return room[:length].tobytes(), decoded.tobytes()


def values(dtype, kind, count):
    random, state = [], 7
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        random.append(state ^ (state >> 32))
    random = np.array(random, "u8")
    width = 8 * np.dtype(dtype).itemsize
    if kind == "any":
        return (random >> np.uint64(64 - width)).astype(f"u{width // 8}").view(dtype)
    i = np.arange(count)
    whole = i * i % 97 - 40 if kind == "smooth" else (random >> np.uint64(44)).astype("i8") - 2**19
    if np.dtype(dtype).kind == "i":
        return whole.astype(dtype)
    # These are exact in a float32.
    return (whole * 2.0 ** (i % 5 * 3 - 10)).astype(dtype)


for dtype in TYPES:
    for kind in ("smooth", "noise", "any"):
        for shape in SHAPES:
            array = values(dtype, kind, int(np.prod(shape))).reshape(shape)
            for mode, *parameters in MODES:
                # Only the reversible mode stores infinities and NaN.
                if kind == "any" and dtype.startswith("float") and parameters:
                    continue
                stream, decoded = stream_of(array, mode, parameters)
                print(dtype, kind, *shape, mode, *parameters, len(stream), f"{zlib.crc32(stream):08x} {zlib.crc32(decoded):08x}")
