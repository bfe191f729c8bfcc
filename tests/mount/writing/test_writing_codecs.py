"""Every codec of every version, written through decoded chunk files: raw numbers go in, Zarr libraries read them back, and the encoded bytes are
those of the library that made the array, where its encoder is ours too."""
import errno
import os

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

ARGS = ("--rw", "--view", "chunks")
SHAPE, CHUNK = (40, 30), (20, 15)
# zlib and gzip are compressed by another library than Python's: other bytes, which decode to the same.
OTHER_BYTES = {"zlib", "gzip", "gzip 0", "lzma alone", "shuffle, zlib"}

V2 = {
    "none": {},
    "blosc": {"compressor": numcodecs.Blosc()},
    **{f"blosc {name} {shuffle}": {"compressor": numcodecs.Blosc(name, 5, shuffle)} for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") for shuffle in (0, 1, 2, -1)},
    "zstd": {"compressor": numcodecs.Zstd(3)},
    "zstd -5": {"compressor": numcodecs.Zstd(-5)},
    "lz4": {"compressor": numcodecs.LZ4(7)},
    "zlib": {"compressor": numcodecs.Zlib(6)},
    "gzip": {"compressor": numcodecs.GZip(6)},
    "gzip 0": {"compressor": numcodecs.GZip(0)},
    "bz2": {"compressor": numcodecs.BZ2(3)},
    "lzma": {"compressor": numcodecs.LZMA(preset=1)},
    "lzma alone": {"compressor": numcodecs.LZMA(format=2)},
    "delta": {"filters": [numcodecs.Delta("<i4")], "compressor": numcodecs.Blosc()},
    "shuffle, zlib": {"filters": [numcodecs.Shuffle(4)], "compressor": numcodecs.Zlib(1)},
    "crc32": {"filters": [numcodecs.CRC32()], "compressor": None},
    "adler32": {"filters": [numcodecs.Adler32()], "compressor": None},
    "fletcher32": {"filters": [numcodecs.Fletcher32()], "compressor": None},
    "order F": {"order": "F", "compressor": numcodecs.Zstd(1)},
}
V3 = {
    "bytes": {"compressors": None},
    "big-endian": {"serializer": BytesCodec(endian="big"), "compressors": None},
    "zstd": {"compressors": ZstdCodec(level=3)},
    "zstd checksum": {"compressors": ZstdCodec(level=1, checksum=True)},
    "gzip": {"compressors": GzipCodec(level=5)},
    "crc32c": {"compressors": [ZstdCodec(), Crc32cCodec()]},
    "transpose": {"filters": [TransposeCodec(order=(1, 0))], "compressors": ZstdCodec()},
    **{f"blosc {name} {shuffle}": {"compressors": BloscCodec(cname=name, clevel=4, shuffle=shuffle, typesize=4)}
       for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") for shuffle in ("noshuffle", "shuffle", "bitshuffle")},
}


def numbers(seed, dtype="<i4"):
    random = np.random.default_rng(seed)
    return (np.cumsum(random.integers(-50, 50, SHAPE)).reshape(SHAPE)).astype(dtype)


def make(path, version, options, data):
    options = dict(options)
    if version == 2:
        array = zarr.create(SHAPE, chunks=CHUNK, dtype=data.dtype, store=str(path), zarr_format=2, fill_value=0, **{"compressor": None, **options})
    else:
        array = zarr.create_array(str(path), shape=SHAPE, chunks=CHUNK, dtype=data.dtype, fill_value=0, **options)
    array[...] = data
    return array


def files(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file() and ".z" not in file.name and "zarr" not in file.name}


def parts(data):
    for i in range(2):
        for j in range(2):
            yield i, j, data[i * 20:i * 20 + 20, j * 15:j * 15 + 15]


@pytest.mark.parametrize("version, codec", [(2, name) for name in V2] + [(3, name) for name in V3])
def test_written_chunks_are_as_the_library_would_have_written_them(version, codec, tmp_path, mount):
    options = (V2 if version == 2 else V3)[codec]
    old, new = numbers(1), numbers(2)
    make(tmp_path / "store", version, options, old)
    make(tmp_path / "wanted", version, options, new)
    made = mount(tmp_path / "store", *ARGS)
    for i, j, chunk in parts(new):
        name = made.path / (f"{i}.{j}" if version == 2 else f"c/{i}/{j}")
        if (i, j) == (0, 0):
            name.write_bytes(chunk.tobytes())
        elif (i, j) == (0, 1):
            part = np.memmap(name, "<i4", "r+", shape=CHUNK)
            part[:] = chunk
            part.flush()
            del part
        else:
            # A part first, so that the old numbers are decoded, and then the rest.
            for begin, end in ((0, 1100), (1100, 1200)):
                fd = os.open(name, os.O_RDWR)
                os.pwrite(fd, chunk.tobytes()[begin:end], begin)
                os.close(fd)
    made.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "store"), mode="r")[...], new)
    found, wanted = files(tmp_path / "store"), files(tmp_path / "wanted")
    assert found.keys() == wanted.keys()
    if codec not in OTHER_BYTES:
        assert found == wanted
    driver = "zarr" if version == 2 else "zarr3"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/store/"}}
    try:
        opened = tensorstore.open(spec).result()
    except (ValueError, NotImplementedError):
        assert version == 2, "tensorstore has all codecs of v3"
        return
    np.testing.assert_array_equal(opened[...].read().result(), new)


LOSSY = {
    "fixedscaleoffset": ({"filters": [numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f4", astype="<i4")]}, 0.1),
    "quantize": ({"filters": [numcodecs.Quantize(digits=1, dtype="<f4")]}, None),
    "bitround": ({"filters": [numcodecs.BitRound(keepbits=4)]}, None),
    "astype": ({"filters": [numcodecs.AsType("<f2", "<f4")]}, None),
}


@pytest.mark.parametrize("codec", LOSSY)
def test_values_that_a_codec_would_change_are_refused_and_saved_with_lossy(codec, tmp_path, mount):
    options, _ = LOSSY[codec]
    values = np.random.default_rng(3).random(SHAPE).astype("<f4") * 100
    array = make(tmp_path / "store", 2, options, values)
    rounded = array[...]
    before = files(tmp_path / "store")
    made = mount(tmp_path / "store", *ARGS)
    with pytest.raises(OSError) as caught:
        (made.path / "0.0").write_bytes(values[:20, :15].tobytes())
    assert caught.value.errno == errno.EINVAL and files(tmp_path / "store") == before
    assert "would be stored as another value" in (made.path / ".zarr-mount/refused").read_text()
    # Numbers that are rounded already pass.
    (made.path / "0.0").write_bytes(rounded[20:, 15:].tobytes())
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "store"), mode="r")[:20, :15], rounded[20:, 15:])
    made.unmount()
    made = mount(tmp_path / "store", *ARGS, "--lossy")
    (made.path / "0.0").write_bytes(values[:20, :15].tobytes())
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "store"), mode="r")[...][:20, :15], rounded[:20, :15])
    np.testing.assert_array_equal(np.fromfile(made.path / "0.0", "<f4").reshape(CHUNK), rounded[:20, :15])


TYPES = ["|b1", "<i1", ">i2", "<u8", "<f2", ">f8", "<c8", "<M8[s]", "<m8[ns]", "|S5", "<U3", ">U3", [("a", "<i4"), ("b", "<f8")]]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_every_type_is_written(dtype, tmp_path, mount):
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(4).integers(0, 2 if dtype.kind == "b" else 100, 600 * dtype.itemsize, dtype="u1")
    if dtype.kind == "U":
        raw = np.random.default_rng(4).integers(1, 100, 600 * 3, dtype="u4").view("u1")
    data = np.tile(raw.view(dtype.newbyteorder("<"))[:300].reshape(CHUNK), (2, 2))
    make(tmp_path / "store", 2, {"compressor": numcodecs.Zstd(1)}, np.zeros(SHAPE, dtype))
    made = mount(tmp_path / "store", *ARGS)
    (made.path / "1.0").write_bytes(data[20:, :15].tobytes())
    made.unmount()
    found = zarr.open_array(str(tmp_path / "store"), mode="r")[20:, :15]
    assert found.astype(dtype.newbyteorder("<")).tobytes() == data[20:, :15].tobytes()


def test_a_boolean_is_0_or_1(tmp_path, mount):
    make(tmp_path / "store", 2, {}, np.zeros(SHAPE, "?"))
    made = mount(tmp_path / "store", *ARGS)
    with pytest.raises(OSError) as caught:
        (made.path / "0.0").write_bytes(bytes([0, 1, 2]) * 100)
    assert caught.value.errno == errno.EINVAL
    (made.path / "0.0").write_bytes(bytes([0, 1, 1]) * 100)


@pytest.mark.parametrize("kind", ["vlen-utf8 v2", "vlen-bytes v2", "string v3", "vlen-array v2"])
def test_elements_of_any_length_are_their_codecs_bytes(kind, tmp_path, mount):
    """The file has the bytes of the codec without compression: what one array decodes to can be written to another one."""
    words = [["a", "bc", ""], ["déf", "g" * 300, "h"]]
    if kind.endswith("v2"):
        codec = {"vlen-utf8 v2": numcodecs.VLenUTF8(), "vlen-bytes v2": numcodecs.VLenBytes(), "vlen-array v2": numcodecs.VLenArray("<i4")}[kind]
        value = {"vlen-utf8 v2": words, "vlen-bytes v2": [[word.encode() for word in row] for row in words],
                 "vlen-array v2": [[np.arange(n, dtype="<i4") for n in range(3)], [np.arange(n, dtype="<i4") for n in range(3, 6)]]}[kind]
        data = np.empty((2, 3), object)
        data[...] = [[None] * 3] * 2
        for i in range(2):
            for j in range(3):
                data[i, j] = value[i][j]
        encoded = bytes(codec.encode(data.reshape(-1)))
        (tmp_path / "store").mkdir()
        import json
        (tmp_path / "store/.zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "|O", "fill_value": None, "order": "C",
            "filters": [codec.get_config()], "compressor": {"id": "zstd", "level": 1}}))
        (tmp_path / "store/0.0").write_bytes(numcodecs.Zstd(1).encode(bytes(codec.encode(data.reshape(-1)[::-1]))))
        name, read = "0.0", lambda: codec.decode(numcodecs.Zstd(1).decode((tmp_path / "store/0.0").read_bytes()))
    else:
        array = zarr.create_array(str(tmp_path / "store"), shape=(2, 3), chunks=(2, 3), dtype=str)
        array[...] = np.array(words, dtype=object)[::-1]
        encoded = bytes(numcodecs.VLenUTF8().encode(np.array(words, dtype=object).reshape(-1)))
        data = np.array(words, dtype=object)
        name, read = "c/0/0", lambda: zarr.open_array(str(tmp_path / "store"), mode="r")[...].reshape(-1)
    made = mount(tmp_path / "store", *ARGS)
    assert (made.path / name).read_bytes() != encoded
    (made.path / name).write_bytes(encoded)
    assert all(np.array_equal(one, other) for one, other in zip(read(), data.reshape(-1)))
    assert (made.path / name).read_bytes() == encoded
    stored = (tmp_path / "store" / name).read_bytes()
    for wrong in (encoded[:-1], encoded + b"x", b"\x05\0\0\0" + encoded[4:], b""):
        fd = os.open(made.path / name, os.O_WRONLY | os.O_TRUNC)
        os.write(fd, wrong)
        with pytest.raises(OSError) as caught:
            os.fsync(fd)
        assert caught.value.errno == errno.EINVAL
        try:
            os.close(fd)
        except OSError as error:
            assert error.errno == errno.EINVAL
        assert (tmp_path / "store" / name).read_bytes() == stored
