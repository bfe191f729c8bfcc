"""The tests that zarr-python has for stores, with a directory of a mount that is written to as its local store."""
import itertools
import os
from pathlib import Path

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.buffer import cpu
from zarr.storage import LocalStore
from zarr.testing.stateful import ZarrHierarchyStateMachine
from zarr.testing.store import StoreTests

from support import writing_samples
from support.writing_samples import ARGS, tree

# Without the variable, each run makes the same hierarchies.
IS_DEFAULT = "ZARR_MOUNT_EXAMPLES" not in os.environ
EXAMPLES = int(os.environ.get("ZARR_MOUNT_EXAMPLES", "2"))
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def place(tmp_path_factory, module_mount):
    store = writing_samples.write(tmp_path_factory.mktemp("place") / "store")
    made = module_mount(store, *ARGS)
    yield made.path
    assert tree(made.path) == tree(store)


class TestStore(StoreTests[LocalStore, cpu.Buffer]):
    store_cls, buffer_cls = LocalStore, cpu.Buffer

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(Path(store.root, key).read_bytes())

    async def set(self, store, key, value):
        path = Path(store.root, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value.to_bytes())

    @pytest.fixture
    def store_kwargs(self, place):
        root = place / f"store{next(NUMBERS)}"
        root.mkdir()
        return {"root": str(root)}

    def test_store_repr(self, store):
        assert str(store).startswith("file://")

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


WAYS = {
    "as it is": ARGS,
    "keys": ("--rw", "--view", "keys"),
    "keys of v3": ("--rw", "--view", "keys", "--as", "v3"),
    "chunks": ("--rw", "--view", "chunks", "--missing", "hide"),
}


@pytest.mark.parametrize("way", WAYS)
def test_random_hierarchies(way, tmp_path, mount):
    store = tmp_path / "store"
    store.mkdir()
    made = mount(store, *WAYS[way])
    root = made.path / "hierarchy"
    root.mkdir()
    settings = hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=IS_DEFAULT,
                                   suppress_health_check=list(hypothesis.HealthCheck))
    run_state_machine_as_test(lambda: ZarrHierarchyStateMachine(LocalStore(str(root))), settings=settings)
