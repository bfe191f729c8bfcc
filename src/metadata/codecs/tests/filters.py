"""Encoded and decoded chunks of filters, as numcodecs has them: writes filters.json.

    python filters.py [CHUNKS_PER_FILTER] > filters.json

`decoded` is null where NumPy leaves a cast undefined. Elementwise filters make `made` of
`source`.
"""

import json
import random
import sys
import warnings

import numcodecs
import numpy as np

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
NAMES = {"i": "int", "u": "uint", "f": "float"}
LENGTH = 11


def spelled(dtype):
    dtype = np.dtype(dtype)
    return "bool" if dtype.kind == "b" else f"{NAMES[dtype.kind]}{8 * dtype.itemsize}"


def numbers(random_, dtype):
    """Small numbers, and sometimes any bits at all."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([random_.random() < 0.5 for _ in range(LENGTH)])
    if random_.random() < 0.3:
        found = np.frombuffer(random_.randbytes(LENGTH * dtype.itemsize), dtype).copy()
        return np.nan_to_num(found) if dtype.kind == "f" else found
    low = 0 if dtype.kind == "u" else -100
    values = [random_.randint(low, 100) for _ in range(LENGTH)]
    if dtype.kind == "f":
        values = [value / random_.choice([1, 4, 7, 3000]) for value in values]
    return np.array(values).astype(dtype)


def fits(values, own):
    """Whether C says what a cast to the type gives."""
    if values.dtype.kind != "f" or np.dtype(own).kind not in "iu":
        return True
    least, most = np.iinfo(own).min, np.iinfo(own).max
    return all(np.isfinite(value) and least <= int(value) <= most for value in values)


def configurations(random_):
    any_type = lambda types: random_.choice(types)
    number = any_type(INTEGERS + FLOATS)
    yield "delta", {"dtype": f"<{number}"}, number, number
    wide = any_type(INTEGERS)
    narrow = any_type(INTEGERS)
    yield "delta", {"dtype": f"<{wide}", "astype": f"<{narrow}"}, wide, narrow
    wide, narrow = any_type(FLOATS), any_type(FLOATS)
    yield "delta", {"dtype": f"<{wide}", "astype": f"<{narrow}"}, wide, narrow
    own, made = any_type(INTEGERS + FLOATS), any_type(INTEGERS + FLOATS)
    offset = random_.choice([0, 10, 0.5, -1000.25, 1e3, 7])
    scale = random_.choice([1, 2, 10, 0.1, 0.01, 1.5, -3])
    config = {"offset": offset, "scale": scale, "dtype": f"<{own}", "astype": f"<{made}"}
    yield "fixedscaleoffset", config, own, made
    own, made = any_type(FLOATS), any_type(FLOATS)
    yield "quantize", {"digits": 2, "dtype": f"<{own}", "astype": f"<{made}"}, own, made
    own = any_type(FLOATS)
    yield "bitround", {"keepbits": random_.randint(0, 10)}, own, own
    own, made = any_type(INTEGERS + FLOATS + ["b1"]), any_type(INTEGERS + FLOATS + ["b1"])
    yield "astype", {"encode_dtype": f"<{made}", "decode_dtype": f"<{own}"}, own, made
    yield "packbits", {}, "b1", None


def main(count):
    random_ = random.Random(7)
    warnings.simplefilter("ignore")
    chunks = []
    for _ in range(count):
        for id_, config, own, made in configurations(random_):
            codec = numcodecs.get_codec({"id": id_, **config})
            if made is None:
                encoded = codec.encode(numbers(random_, own))
            else:
                encoded = numbers(random_, made)
            try:
                decoded = codec.decode(encoded)
            except TypeError:
                continue
            if id_ == "delta" and np.result_type(own, made).kind == "f" and np.dtype(own).kind in "iu":
                # Sums by way of floats are not what was encoded.
                continue
            if id_ == "fixedscaleoffset" and not fits(encoded / codec.scale + codec.offset, own):
                decoded = None
            if id_ == "astype" and not fits(encoded, own):
                decoded = None
            source, made_of = numbers(random_, own), None
            # What a cast after arithmetic gives is undefined as well.
            try:
                if id_ == "fixedscaleoffset":
                    is_defined = fits(np.around((source - codec.offset) * codec.scale), made)
                else:
                    is_defined = id_ in ("quantize", "bitround", "astype") and fits(source, made)
                made_of = codec.encode(source) if is_defined else None
            except OverflowError:
                # An offset that the type lacks.
                pass
            chunks.append({
                "source": None if made_of is None else source.tobytes().hex(),
                "made": None if made_of is None else made_of.tobytes().hex(),
                "codec": {"name": f"numcodecs.{id_}", "configuration": config},
                "data_type": spelled(own),
                "encoded": encoded.tobytes().hex(),
                "decoded": None if decoded is None else np.asarray(decoded).view(own).tobytes().hex(),
            })
    codecs = [chunk.pop("codec") for chunk in chunks]
    chunks = [{"codec": codec, **chunk} for codec, chunk in zip(codecs, chunks)]
    print("[")
    print(",\n".join(json.dumps(chunk) for chunk in chunks))
    print("]")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
