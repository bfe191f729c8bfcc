"""`.zarr-mount/metrics`: the counters of `stats.json`, in a format that Prometheus' own parser reads."""
import json

import numpy as np
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support.remote_fault_server import FaultServer


def samples(mounted):
    """The value of each sample, by its name and labels."""
    text = (mounted.path / ".zarr-mount" / "metrics").read_text()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families) > 15
    assert all(family.documentation and family.type in ("counter", "gauge", "summary") for family in families)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_counters_are_those_of_the_other_file(mount):
    mounted = mount("demo:", "--view", "arrays")
    np.load(mounted.path / "air" / "temperature.npy")
    before = json.loads((mounted.path / ".zarr-mount" / "stats.json").read_text())
    found = samples(mounted)
    for name, member in [(("zarr_mount_decodes_total",), before["chunks"]["decodes"]), (("zarr_mount_store_read_bytes_total",), before["store"]["bytes"]),
                         (("zarr_mount_errors_total", "EIO"), before["errors"]["EIO"]), (("zarr_mount_memory_limit_bytes",), before["cache"]["budget_bytes"]),
                         (("zarr_mount_cache_lookups_total", "miss"), before["cache"]["misses"])]:
        assert found[name] == member, name
    assert found["zarr_mount_decodes_total",] > 0
    assert found["zarr_mount_requests_total", "read"] >= before["requests"]["read"] > 0
    assert not any(name[0].startswith("zarr_mount_server") for name in found)
    assert (mounted.path / ".zarr-mount" / "metrics").stat().st_size > 2000


def test_requests_to_a_server_are_counted(mount, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}')
    with FaultServer(tmp_path / "root") as server:
        mounted = mount(server.url)
        (mounted.path / "zarr.json").read_bytes()
        found = samples(mounted)
        assert found["zarr_mount_server_requests_total", "get"] >= 1
        assert found["zarr_mount_server_received_bytes_total",] >= 64
        assert 0 < found["zarr_mount_server_first_byte_seconds", "0.5"] < 60
