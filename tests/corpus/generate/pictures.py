"""Join what the generators of pictures expect, and pack it with their stores into pictures.tar.gz.

The archive depends on the content alone: sorted names, fixed times, owners and modes. Its first member is expect.json.
"""
import gzip
import json
import tarfile
from pathlib import Path

from pictureslib import OUT

ARCHIVE = Path(__file__).resolve().parents[1] / "pictures.tar.gz"


def plain(info):
    info.mtime, info.uid, info.gid, info.uname, info.gname = 1577836800, 0, 0, "", ""  # 2020-01-01
    info.mode = 0o755 if info.isdir() else 0o644
    return info


def main():
    entries = [json.loads(path.read_text()) for path in sorted((OUT / "_expect").iterdir())]
    expect = OUT / "expect.json"
    expect.write_text(json.dumps({"stores": entries}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    names = {path.relative_to(OUT) for entry in entries for path in (OUT / entry["name"]).rglob("*")}
    with open(ARCHIVE, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for name in [Path("expect.json"), *sorted(names)]:
                tar.add(OUT / name, str(name), recursive=False, filter=plain)
    print(ARCHIVE, ARCHIVE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
