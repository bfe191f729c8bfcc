"""Programs that read files of a mount all the time.

    python dying_readers.py kill DIRECTORY COUNT SEED DAEMON    kills readers at random moments, COUNT in all, and replaces each of them.
                                                                For every second kill, the process DAEMON is stopped
    python dying_readers.py await DIRECTORY                     says "reading", and waits until each reader got an error

Prints JSON: how many readers have ended, how many of them waited for a reply just before they were killed, which errors they got, and
whether one is stuck.
"""
import errno
import json
import mmap
import os
import random
import select
import signal
import sys
from contextlib import suppress

READERS = 24  # more than the daemon has threads
AT_ONCE = 8  # readers are killed together
PATIENCE = 60  # seconds until a killed reader is called stuck
LONGEST = 128 << 10


def read_for_ever(directory, files, chosen):
    """Reads files in the ways of different programs, until there is an error."""
    memory = mmap.mmap(-1, LONGEST)
    while True:
        path = chosen.choice(files)
        how = chosen.randrange(8)
        if how == 0:
            os.listdir(directory)
        elif how == 1:
            # Each absent name is a request.
            with suppress(FileNotFoundError):
                os.stat(f"{path}.{chosen.randrange(1 << 30)}")
        else:
            # Direct reads find nothing in the page cache.
            file = os.open(path, os.O_RDONLY | (os.O_DIRECT if how < 6 else 0))
            os.preadv(file, [memory], 4096 * chosen.randrange(8))
            os.close(file)


class Reader:
    def __init__(self, directory, files, seed):
        self.pid = os.fork()
        if self.pid == 0:
            # The process that kills the readers must not wait until they leave it a core.
            os.nice(10)
            try:
                read_for_ever(directory, files, random.Random(seed))
            except OSError as error:
                os._exit(error.errno)
            finally:
                os._exit(255)
        self.descriptor = os.pidfd_open(self.pid)

    def waits_for_a_reply(self):
        """Whether the reader is in a request."""
        with open(f"/proc/{self.pid}/wchan") as place:
            return place.read() == "request_wait_answer"

    def end(self):
        """Waits for the end. Returns the number of the error that the reader got, -9 if it was killed, or None if it is stuck."""
        ended = select.poll()
        ended.register(self.descriptor, select.POLLIN)
        if not ended.poll(1000 * PATIENCE):
            return None
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main(what, directory, count="0", seed="0", daemon="0"):
    files = [os.path.join(directory, name) for name in os.listdir(directory)]
    chosen = random.Random(int(seed))
    start = lambda: Reader(directory, files, chosen.random())
    readers = [start() for _ in range(READERS)]
    results, waited, is_stopped = [], 0, False
    if what == "await":
        print("reading", flush=True)
        results = [reader.end() for reader in readers]
    while what == "kill" and len(results) < int(count) and None not in results[-AT_ONCE:]:
        select.select([], [], [], chosen.random() / 500)
        is_stopped = not is_stopped
        if is_stopped:
            os.kill(int(daemon), signal.SIGSTOP)
            select.select([], [], [], chosen.random() / 100)
        chosen.shuffle(readers)
        dying = readers[:AT_ONCE]
        for reader in dying:
            waited += reader.waits_for_a_reply()
            os.kill(reader.pid, signal.SIGKILL)
        if is_stopped:
            os.kill(int(daemon), signal.SIGCONT)
        results += [reader.end() for reader in dying]
        readers[:AT_ONCE] = [start() for _ in dying]
    for reader in readers if what == "kill" else ():
        os.kill(reader.pid, signal.SIGKILL)
        reader.end()
    errors = sorted({errno.errorcode.get(result, str(result)) for result in results if result not in (None, -signal.SIGKILL)})
    print(json.dumps({"ended": len(results), "waited": waited, "errors": errors, "stuck": None in results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
