"""Fixtures of the tests through real mounts."""
import gc
import itertools
import os
import shutil
import signal

import pytest

from support import file_systems, mounting, rings

FIGURES = []
LOCAL_PATH = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption("--stores-on", metavar="KIND|DIRECTORY",
                     help=f"put the stores that tests make on a file system of this kind ({', '.join(file_systems.KINDS)}), "
                          "or in this directory of any file system")
    parser.addoption("--transport", choices=("ring",),
                     help="with ring, mounts of local stores take rings, for which the switch of the kernel is set for this run (needs root)")


def pytest_configure(config):
    if not os.access(mounting.BINARY, os.X_OK):
        raise pytest.UsageError(f"{mounting.BINARY} is missing: cargo build --release, or set ZARR_MOUNT_BINARY")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise pytest.UsageError("/dev/fuse is missing or closed to this user: no mount, no test")
    if config.getoption("--transport"):
        mounting.TRANSPORT.extend(["--transport", "auto"])
        # With several processes of pytest, the first one sets the switch.
        if not hasattr(config, "workerinput"):
            if not rings.is_there():
                raise pytest.UsageError(f"--transport: {rings.SWITCH} is missing or closed to this user")
            config.add_cleanup(lambda before=rings.get(): rings.put(before))
            rings.put("Y")
    mounting.adopt_orphans()
    # Under nohup(1), daemons would ignore the hangups that tests send them, as they should.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config, items):
    others = [item for item in items if not is_about(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if is_about(item)]
    if config.getoption("--stores-on"):
        for item in items:
            if item.get_closest_marker("local"):
                item.add_marker(pytest.mark.skip(reason="needs a local file system"))
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root"))


def is_about(item):
    """Whether the case that a test got is one that the test is about: it may be marked with a predicate on (store, view)."""
    marker = item.get_closest_marker("about")
    return marker is None or marker.kwargs["when"](*item.callspec.params["shown"])


def pytest_collection_finish():
    # The garbage collector would visit the objects of thousands of tests and of their modules again and again.
    gc.freeze()


def pytest_sessionfinish(session):
    # A process that runs a part of the tests passes its figures on to the process that prints them.
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["figures"] = FIGURES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    FIGURES.extend(getattr(node, "workeroutput", {}).get("figures", []))


def pytest_terminal_summary(terminalreporter):
    if FIGURES:
        terminalreporter.section("figures")
        for line in FIGURES:
            terminalreporter.write_line(line)


@pytest.fixture
def disk(tmp_path):
    """disk(size): an empty directory on a tmpfs of this many bytes ("2M"), which fills up soon."""
    mounts = []

    def make(size):
        path = tmp_path / f"disk{len(mounts)}"
        path.mkdir()
        mounting.ok("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path)
        mounts.append(path)
        return path

    yield make
    for path in mounts:
        # The daemon of a failed test may still have files open there.
        mounting.ok("umount", "--lazy", path)


@pytest.fixture(scope="session")
def figure():
    """figure(line): a measured value or a remark, which is printed at the end of the run. No test fails because of it."""
    return FIGURES.append


def factory(folder):
    """mount(store, *args, path=, prefix=, binary=) and a function that ends all of them."""
    mounts, numbers = [], itertools.count()

    def mount(store, *args, path=None, **kwargs):
        number = next(numbers)
        if path is None:
            path = folder / f"m{number}"
            path.mkdir()
        try:
            made = mounting.Mount(store, path, *args, log=folder / f"m{number}.log", **kwargs)
        except BaseException:
            mounting.force_away(path)
            raise
        mounts.append(made)
        return made

    def finish():
        wrong = []
        for made in reversed(mounts):
            try:
                made.clean_up()
            except AssertionError as error:
                wrong.append(str(error))
        assert not wrong, "\n".join(wrong)

    return mount, finish


@pytest.fixture
def tmp_path(tmp_path, request):
    """A directory for the stores of one test, on the file system that `--stores-on` names."""
    request.node.stash[LOCAL_PATH] = tmp_path
    kind = request.config.getoption("--stores-on")
    if kind is None:
        yield tmp_path
        return
    with file_systems.place(kind, tmp_path) as path:
        yield path


@pytest.fixture
def mount(tmp_path, request):
    # Mounts and logs are on a local file system, wherever the stores are.
    make, finish = factory(request.node.stash[LOCAL_PATH])
    yield make
    finish()


@pytest.fixture(scope="module")
def module_mount(tmp_path_factory):
    """Like `mount`, for mounts that several tests of a module share."""
    folder = tmp_path_factory.mktemp("module")
    make, finish = factory(folder)
    yield make
    finish()
    shutil.rmtree(folder, ignore_errors=True)
