"""Runs in an environment of readers. Each question is a line of JSON (see `array_client.Readers`), and each answer is a line."""
import json
import os
import sys
import warnings

import numpy as np

import array_readers
import picture_readers
from canonical import canonical, digest

READERS = {**vars(picture_readers), **vars(array_readers)}


def answer(reader, with_values=False, **arguments):
    """The answer of a reader: type, shape, hash of the values, other facts, and the values themselves if requested."""
    values, said = READERS[reader](**arguments)
    values = np.asarray(values)
    found = {"dtype": spelled(values.dtype), "shape": values.shape, "sha256": digest(canonical(values)), "said": said}
    return found | ({"values": array_readers.plain(values)} if with_values else {})


def spelled(dtype):
    """The type, little-endian; for records, the fields as they are."""
    return [[name, dtype[name].str] for name in dtype.names] if dtype.names else dtype.newbyteorder("<").str


warnings.simplefilter("ignore")
# The output of libraries must not pass for an answer.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    try:
        told = answer(**json.loads(line))
    except Exception as error:  # a reader may refuse with any class
        told = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told, default=str), file=answers, flush=True)
