"""Runs in an environment of readers: a line of JSON asks (see `array_client.Readers`), a line answers."""
import json
import os
import sys
import warnings

import numpy as np

import array_readers
from canonical import canonical, digest


def answer(reader, with_values=False, **arguments):
    """What a reader gives: type, shape, hash of the values, what else it says, and the values themselves if asked."""
    values, said = getattr(array_readers, reader)(**arguments)
    values = np.asarray(values)
    found = {"dtype": spelled(values.dtype), "shape": values.shape, "sha256": digest(canonical(values)), "said": said}
    return found | ({"values": array_readers.plain(values)} if with_values else {})


def spelled(dtype):
    """The type, little-endian; of records the fields as they are."""
    return [[name, dtype[name].str] for name in dtype.names] if dtype.names else dtype.newbyteorder("<").str


warnings.simplefilter("ignore")
# What libraries print must not pass for an answer.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    try:
        told = answer(**json.loads(line))
    except Exception as error:  # whatever class it refuses with
        told = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told, default=str), file=answers, flush=True)
