"""The switch of the kernel for FUSE over io_uring, which holds for the whole system."""
import fcntl
import os
from contextlib import contextmanager

SWITCH = "/sys/module/fuse/parameters/enable_uring"


def is_there():
    """Whether this user may set the switch of this kernel."""
    return os.access(SWITCH, os.W_OK)


def get():
    with open(SWITCH) as switch:
        return switch.read().strip()


def put(value):
    with open(SWITCH, "w") as switch:
        switch.write(value)


@contextmanager
def switched(value):
    """The switch has this value, "Y" or "N", until the end. Tests that set it wait for each other."""
    if not is_there():
        import pytest  # which only tests have

        pytest.skip(f"{SWITCH} is missing (Linux 6.14 has it), or this user may not set it")
    with open(SWITCH) as switch:
        fcntl.flock(switch, fcntl.LOCK_EX)
        before = get()
        put(value)
        try:
            yield
        finally:
            put(before)
