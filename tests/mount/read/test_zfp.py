"""Arrays of zfp, whose chunks the library itself made (zfpy 1.0.1)."""

import json

import numpy as np
import pytest

SHAPE = (5, 6)
SMOOTH = (np.arange(30) ** 2 % 97 - 40).reshape(SHAPE)
# zfpy.compress_numpy(SMOOTH.astype(TYPE), write_header=True) and with tolerance=0.5; without a header, the blocks are the same.
REVERSIBLE = bytes.fromhex("7a66700554000040000000881f000008000000072027202b2140014801e40087211321f800008000400052201245526f003b004c00141216521f0000081044120c14c10000441051041f0000202405900440120000000000")
BARE = bytes.fromhex("1f000008000000072027202b2140014801e40087211321f800008000400052201245526f003b004c00141216521f0000081044120c14c10000441051041f00002024059004401200")
ROUGH = bytes.fromhex("7a66700556000040000020cb0b49ccdcc83d278319983f18280007030e9b069808180bc94045ae88110551841019408d4090411c11901011c0421b904002093001040309240000002c1482802802a2080000000000000000")
ROUGH_DECODED = bytes.fromhex("002420c2000c1cc200f40fc200b8f7c10000c0c1000070c1006080c000f00f410008c041000c2442000014c2000080c10060e04000040042000418c2003010c10000b04100005c4200e0dec00018f0410018e0c100704f41000060420000804000004c42000040400000584200002041000000c20000c841")


def v3(store, name, data_type, codec, chunk):
    (store / name / "c/0").mkdir(parents=True)
    (store / name / "c/0/0").write_bytes(chunk)
    (store / name / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": data_type, "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": SHAPE}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [codec],
    }))


@pytest.fixture
def store(tmp_path):
    store = tmp_path / "store"
    v3(store, "zfp", "int32", {"name": "zfp", "configuration": {"mode": "reversible"}}, BARE)
    v3(store, "zfpy", "float32", {"name": "numcodecs.zfpy", "configuration": {"mode": 4, "tolerance": 0.5}}, ROUGH)
    v3(store, "other", "float32", {"name": "numcodecs.zfpy", "configuration": {"mode": 4, "tolerance": 0.5}}, REVERSIBLE)
    (store / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    return store


def test_chunks_of_zfp_are_decoded(store, mount):
    shown = mount(store, "--view", "chunks").path
    assert np.array_equal(np.frombuffer((shown / "zfp/c/0/0").read_bytes(), "<i4").reshape(SHAPE), SMOOTH)
    assert (shown / "zfpy/c/0/0").read_bytes() == ROUGH_DECODED
    # Its header says int32.
    with pytest.raises(OSError):
        (shown / "other/c/0/0").read_bytes()


def test_chunks_of_zfp_are_written(store, mount):
    shown = mount(store, "--view", "chunks", "--rw").path
    (shown / "zfp/c/0/0").write_bytes((SMOOTH * 3).astype("<i4").tobytes())
    assert (store / "zfp/c/0/0").read_bytes() != BARE
    (shown / "zfp/c/0/0").write_bytes(SMOOTH.astype("<i4").tobytes())
    assert (store / "zfp/c/0/0").read_bytes() == BARE
