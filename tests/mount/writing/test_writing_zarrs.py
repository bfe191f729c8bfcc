"""The library zarrs and mounts with `--rw`: zarrs reads chunks from the store that other programs have written through a mount, and zarr-python
and tensorstore read chunks from the store that zarrs has written through a mount."""
import json
import os

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
import zarr.codecs.numcodecs as of_numcodecs
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_codec

import test_writing_codecs
from support import zarrs_client
from test_writing_codecs import CHUNK, LOSSY, SHAPE, make, numbers, parts
from support.writing_samples import ARGS, tree

CHUNKS = ("--rw", "--view", "chunks")

# (version, name) -> the options that make the array, and its type. The codecs of numcodecs that have a separate name in v3, and lossy codecs,
# are here, too.
CODECS = {
    **{(2, name): (options, "<i4") for name, options in test_writing_codecs.V2.items()},
    **{(3, name): (options, "<i4") for name, options in test_writing_codecs.V3.items()},
    **{(2, name): (options, "<f4") for name, (options, _) in LOSSY.items()},
    (2, "packbits"): ({"filters": [numcodecs.PackBits()]}, "|b1"),
    (2, "base64"): ({"filters": [numcodecs.Base64()], "compressor": None}, "<i4"),
    (2, "jenkins_lookup3"): ({"filters": [numcodecs.JenkinsLookup3()], "compressor": None}, "<i4"),
    (3, "numcodecs.bz2"): ({"compressors": of_numcodecs.BZ2(level=3)}, "<i4"),
    (3, "numcodecs.zlib"): ({"compressors": of_numcodecs.Zlib(level=6)}, "<i4"),
    (3, "numcodecs.gzip"): ({"compressors": of_numcodecs.GZip(level=6)}, "<i4"),
    (3, "numcodecs.zstd"): ({"compressors": of_numcodecs.Zstd(level=3)}, "<i4"),
    (3, "numcodecs.blosc"): ({"compressors": of_numcodecs.Blosc(cname="lz4", shuffle=1)}, "<i4"),
    (3, "numcodecs.lz4"): ({"compressors": of_numcodecs.LZ4(acceleration=7)}, "<i4"),
    (3, "numcodecs.lzma"): ({"compressors": of_numcodecs.LZMA(preset=1)}, "<i4"),
    (3, "numcodecs.shuffle"): ({"compressors": [of_numcodecs.Shuffle(elementsize=4), of_numcodecs.Zlib(level=1)]}, "<i4"),
    (3, "numcodecs.crc32"): ({"compressors": of_numcodecs.CRC32()}, "<i4"),
    (3, "numcodecs.crc32c"): ({"compressors": of_numcodecs.CRC32C()}, "<i4"),
    (3, "numcodecs.adler32"): ({"compressors": of_numcodecs.Adler32()}, "<i4"),
    (3, "numcodecs.fletcher32"): ({"compressors": of_numcodecs.Fletcher32()}, "<i4"),
    (3, "numcodecs.jenkins_lookup3"): ({"compressors": of_numcodecs.JenkinsLookup3()}, "<i4"),
    (3, "numcodecs.delta"): ({"filters": of_numcodecs.Delta(dtype="<i4")}, "<i4"),
    (3, "numcodecs.packbits"): ({"filters": of_numcodecs.PackBits()}, "|b1"),
    (3, "numcodecs.fixedscaleoffset"): ({"filters": of_numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f4", astype="<i4")}, "<f4"),
    (3, "numcodecs.quantize"): ({"filters": of_numcodecs.Quantize(digits=1, dtype="<f4")}, "<f4"),
    (3, "numcodecs.bitround"): ({"filters": of_numcodecs.BitRound(keepbits=4)}, "<f4"),
    (3, "numcodecs.astype"): ({"filters": of_numcodecs.AsType(encode_dtype="<f2", decode_dtype="<f4")}, "<f4"),
    **{(version, f"type {name}"): ({}, name) for version in (2, 3)
       for name in ("|b1", "<i1", ">i2", "<u8", "<f2", ">f8", "<c8", "<c16", "<M8[s]", "<m8[ns]", "|S5", "<U3")},
}
# The arrays that zarrs cannot read, and its message.
REFUSED = {
    **{(2, name): f"unsupported codec {name.split()[0]} with" for name in
       ("lz4", "lzma", "lzma alone", "delta", "crc32", "adler32", "fletcher32", "jenkins_lookup3", "base64", "packbits", "quantize", "bitround", "astype")},
    **{(3, f"numcodecs.{name}"): f"codec numcodecs.{name} is not supported" for name in
       ("gzip", "zstd", "blosc", "lz4", "lzma", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3", "delta", "packbits", "quantize",
        "bitround", "astype")},
    **{(2, f"type {name}"): f'unsupported data type Simple("{name}")' for name in ("<M8[s]", "<m8[ns]", "|S5", "<U3")},
    **{(3, f"type {name}"): "UnsupportedDataTypeError" for name in ("<M8[s]", "<m8[ns]")},
    (3, "type |S5"): "data type null_terminated_bytes is not supported",
    (3, "type <U3"): "data type fixed_length_utf32 is not supported",
}


def sample(seed, dtype):
    """Numbers of the type, also as letters, dates and truth values."""
    data = numbers(seed, "<i8")
    return (data % 2 if dtype == "|b1" else data).astype(dtype)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory, module_mount):
    """For each version: a store that has an array of each codec, and a mount of it."""
    found = {}
    for version in (2, 3):
        store = tmp_path_factory.mktemp("arrays") / "store"
        zarr.create_group(str(store), zarr_format=version)
        for (of, name), (options, dtype) in CODECS.items():
            if of == version:
                make(store / name, version, options, sample(1, dtype))
        found[version] = store, module_mount(store, *CHUNKS).path
    return found


@pytest.mark.parametrize("version, codec", CODECS)
def test_zarrs_reads_chunks_that_programs_wrote(version, codec, arrays, tmp_path):
    options, dtype = CODECS[version, codec]
    store, path = arrays[version]
    # Lossy codecs change values. Zarr-python stores them by the same codecs, to know the values after that.
    wanted = make(tmp_path / "wanted", version, options, sample(2, dtype))[...]
    for i, j, chunk in parts(wanted.astype(wanted.dtype.newbyteorder("<"))):
        name = path / codec / (f"{i}.{j}" if version == 2 else f"c/{i}/{j}")
        data = chunk.tobytes()
        if (i, j) == (0, 0):
            name.write_bytes(data)
        elif (i, j) == (0, 1):
            other = name.with_name("x.partial")
            other.write_bytes(data)
            os.replace(other, name)
        else:
            # A part first, so that the old numbers are decoded, and then the rest.
            for begin, end in ((len(data) // 3, len(data)), (0, len(data) // 3)):
                fd = os.open(name, os.O_RDWR)
                os.pwrite(fd, data[begin:end], begin)
                os.close(fd)
    np.testing.assert_array_equal(zarr.open_array(str(store / codec), mode="r")[...], wanted)
    if (version, codec) in REFUSED:
        assert REFUSED[version, codec] in zarrs_client.refusal(store / codec)
    else:
        np.testing.assert_array_equal(zarrs_client.values(store / codec), wanted)


@pytest.fixture
def known():
    """known(name, kind) registers a codec that zarr-python does not have, so far that zarr-python opens the array for zarrs, until the test ends."""
    names = []

    def register(name, kind):
        class Known(kind):
            is_fixed_size = True

            def __init__(self, configuration):
                self.configuration = configuration

            @classmethod
            def from_dict(cls, data):
                return cls(data.get("configuration", {}))

            def to_dict(self):
                return {"name": name, "configuration": self.configuration}

            def compute_encoded_size(self, length, spec):
                raise NotImplementedError

        names.append(name)
        register_codec(name, Known)

    yield register
    for name in names:
        getattr(zarr.registry, "__codec_registries").pop(name)


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
# Codecs of v3 that zarr-python does not have: the class of the codec, the codecs of the array, its type, and the error of zarrs if it cannot read them.
UNKNOWN = {
    "packbits": (ArrayBytesCodec, [{"name": "packbits", "configuration": {}}], "bool", None),
    "reshape": (ArrayArrayCodec, [{"name": "reshape", "configuration": {"shape": [10, 30]}}, LITTLE], "int32", None),
    "bitround": (ArrayArrayCodec, [{"name": "bitround", "configuration": {"keepbits": 20}}, LITTLE], "float32", "codec bitround is not supported"),
    "scale_offset": (ArrayArrayCodec, [{"name": "scale_offset", "configuration": {"offset": 5, "scale": 2}}, LITTLE], "float32",
                     "codec scale_offset is not supported"),
    "cast_value": (ArrayArrayCodec, [{"name": "cast_value", "configuration": {"data_type": "int16"}}, LITTLE], "int32", "codec cast_value is not supported"),
}


@pytest.mark.parametrize("codec", UNKNOWN)
def test_zarrs_reads_codecs_that_zarr_python_does_not_have(codec, known, tmp_path, mount):
    kind, codecs, dtype, said = UNKNOWN[codec]
    known(codec, kind)
    store = tmp_path / "store"
    store.mkdir()
    (store / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": dtype, "fill_value": 0 if dtype != "bool" else False,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}}, "chunk_key_encoding": {"name": "default"}, "codecs": codecs}))
    made = mount(store, *CHUNKS)
    wanted = sample(2, "|b1" if dtype == "bool" else f"<{dtype[0]}4")
    for i, j, chunk in parts(wanted):
        (made.path / f"c/{i}/{j}").write_bytes(chunk.tobytes())
    if said:
        assert said in zarrs_client.refusal(store)
    else:
        np.testing.assert_array_equal(zarrs_client.values(store), wanted)


# Elements that differ in length, or are words: the type, the fill value, and what zarrs says, or zarr-python, which opens arrays for it.
WORDS = {
    (2, "vlen-utf8"): ("|O", "", "UnsupportedDataTypeError"),
    (2, "vlen-bytes"): ("|O", "", "UnsupportedDataTypeError"),
    (2, "vlen-array"): ("|O", None, "No Zarr data type found"),
    (2, "json2"): ("|O", None, "No Zarr data type found"),
    (2, "msgpack2"): ("|O", None, "No Zarr data type found"),
    (2, "categorize"): ("<U1", "", 'unsupported data type Simple("<U1")'),
    (3, "vlen-utf8"): ("string", "", "UnsupportedDataTypeError"),
    (3, "vlen-bytes"): ("variable_length_bytes", "", "UnsupportedDataTypeError"),
}
PARAMETERS = {"vlen-array": {"dtype": "<i4"}, "categorize": {"dtype": "<U1", "astype": "|u1", "labels": ["a", "b"]}}


@pytest.mark.parametrize("version, codec", WORDS)
def test_zarrs_does_not_read_words(version, codec, tmp_path):
    dtype, fill_value, said = WORDS[version, codec]
    if version == 2:
        (tmp_path / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": dtype, "fill_value": fill_value, "order": "C",
            "filters": [{"id": codec, **PARAMETERS.get(codec, {})}], "compressor": None}))
    else:
        (tmp_path / "zarr.json").write_text(json.dumps({
            "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": dtype, "fill_value": fill_value, "codecs": [{"name": codec}],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}, "chunk_key_encoding": {"name": "default"}}))
    assert said in zarrs_client.refusal(tmp_path)


def test_it_is_zarrs_that_reads_and_writes(tmp_path, mount, monkeypatch):
    zarr.create_group(str(tmp_path / "store"))
    made = mount(tmp_path / "store", *ARGS)

    async def refused(*_, **__):
        raise AssertionError("zarr-python was asked for chunks")

    monkeypatch.setattr(BatchedCodecPipeline, "read", refused)
    monkeypatch.setattr(BatchedCodecPipeline, "write", refused)
    with zarrs_client.pipeline():
        array = zarr.create_array(str(made.path / "a"), shape=SHAPE, chunks=CHUNK, dtype="<i4", fill_value=0)
    array[...] = numbers(1)
    assert (zarrs_client.values(made.path / "a") == numbers(1)).all()
    with pytest.raises(AssertionError, match="zarr-python was asked"):
        zarr.open_array(str(made.path / "a"), mode="r")[...]


def check(path, version, wanted):
    """The array in the store has these elements, as zarr-python and tensorstore read it."""
    np.testing.assert_array_equal(zarr.open_array(str(path), mode="r")[...], wanted)
    spec = {"driver": "zarr" if version == 2 else "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
    np.testing.assert_array_equal(tensorstore.open(spec).result()[...].read().result(), wanted)


LARGE, PART, SHARD = (100, 90), (24, 16), (48, 48)  # not a multiple: chunks at the edges are cut off
# The arguments of a mount, and of a new array in it. Decoded chunks have no codec but `bytes`.
NEW = {
    "keys, v2": (ARGS, {"compressors": numcodecs.Blosc()}),
    "keys, v2, order F": (ARGS, {"compressors": numcodecs.Zstd(1), "order": "F"}),
    "keys, bytes": (ARGS, {"compressors": None}),
    "keys, zstd": (ARGS, {"compressors": [ZstdCodec(), Crc32cCodec()]}),
    "keys, blosc": (ARGS, {"compressors": BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4)}),
    "keys, gzip": (ARGS, {"compressors": GzipCodec(level=1), "filters": TransposeCodec(order=(1, 0))}),
    "keys, shards": (ARGS, {"compressors": ZstdCodec(), "shards": SHARD}),
    "chunks, v2": (CHUNKS, {"compressors": None}),
    "chunks, v3": (CHUNKS, {"compressors": None}),
}


@pytest.mark.parametrize("case", NEW)
def test_zarrs_writes_an_array(case, tmp_path, mount):
    arguments, options = NEW[case]
    version, store = 2 if "v2" in case else 3, tmp_path / "store"
    zarr.create_group(str(store), zarr_format=version)
    made = mount(store, *arguments)
    group = zarr.open_group(str(made.path), mode="r+")
    with zarrs_client.pipeline():
        array = zarrs_client.of_zarrs(group.create_array("a", shape=LARGE, chunks=PART, dtype="<f4", fill_value=0, **options))
    wanted, other = (np.random.default_rng(seed).random(LARGE, dtype="f4") for seed in (1, 2))
    array[...] = wanted
    check(store / "a", version, wanted)
    # Parts of chunks, and whole ones among them.
    array[7:83, 11:80] = wanted[7:83, 11:80] = other[7:83, 11:80]
    array[3:4] = wanted[3:4] = 5
    check(store / "a", version, wanted)
    # Fill value: chunks, or a shard, are removed.
    before = tree(store)
    array[:48, :48] = wanted[:48, :48] = 0
    check(store / "a", version, wanted)
    gone = {(0, 0)} if "shards" in options else {(i, j) for i in range(2) for j in range(3)}
    assert before.keys() - tree(store).keys() == {f"a/{i}.{j}" if version == 2 else f"a/c/{i}/{j}" for i, j in gone}
    array.attrs["about"] = "x" * 5000
    assert zarr.open_array(str(store / "a"), mode="r").attrs["about"] == "x" * 5000
    array.resize((70, 90))
    check(store / "a", version, wanted[:70])
    array.resize((120, 90))
    array[110:] = 7
    again = zarr.open_array(str(store / "a"), mode="r")[...]
    assert (again[:70] == wanted[:70]).all() and (again[96:110] == 0).all() and (again[110:] == 7).all()
    check(store / "a", version, again)
    np.testing.assert_array_equal(zarrs_client.values(made.path / "a"), again)
    del group["a"]
    assert not (store / "a").exists()


@pytest.mark.parametrize("version, codec", [(2, "blosc"), (2, "lzma"), (2, "delta"), (3, "zstd checksum"), (3, "transpose"), (3, "numcodecs.lz4")])
def test_zarrs_writes_arrays_of_any_codec_through_their_decoded_chunks(version, codec, tmp_path, mount):
    """The mount shows arrays without codecs: zarrs writes those too whose codec it does not have."""
    options, dtype = CODECS[version, codec]
    make(tmp_path / "store", version, options, numbers(1, dtype))
    document = tree(tmp_path / "store")["zarr.json" if version == 3 else ".zarray"]
    made = mount(tmp_path / "store", *CHUNKS)
    array, wanted = zarrs_client.opened(made.path, "r+"), numbers(1, dtype)
    np.testing.assert_array_equal(array[...], wanted)
    array[5:33, 4:28] = wanted[5:33, 4:28] = numbers(2, dtype)[5:33, 4:28]
    array[20:, :15] = wanted[20:, :15] = numbers(3, dtype)[20:, :15]
    np.testing.assert_array_equal(zarrs_client.values(made.path), wanted)
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "store"), mode="r")[...], wanted)
    assert tree(tmp_path / "store")["zarr.json" if version == 3 else ".zarray"] == document


@pytest.mark.parametrize("arguments", [ARGS, CHUNKS], ids=["keys", "chunks"])
def test_zarrs_writes_without_the_page_cache(arguments, tmp_path, mount):
    """With O_DIRECT, in chunks of whole pages."""
    zarr.create_group(str(tmp_path / "store"))
    made = mount(tmp_path / "store", *arguments)
    with zarrs_client.pipeline(direct_io=True):
        array = zarr.create_array(str(made.path / "a"), shape=(128, 128), chunks=(32, 64), dtype="<f4", compressors=None, fill_value=0)
    zarrs_client.of_zarrs(array)
    wanted = np.random.default_rng(1).random((128, 128), dtype="f4")
    array[...] = wanted
    array[5:77, 9:99] = wanted[5:77, 9:99] = 3
    np.testing.assert_array_equal(array[...], wanted)
    check(tmp_path / "store/a", 3, wanted)
