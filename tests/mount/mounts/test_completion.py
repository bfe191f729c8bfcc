"""Completion in real shells: the mountpoints of this user, after `--unmount` and `--status`."""
import os
import shutil

import pytest

from support.mounting import BINARY, ok

# Completes COMP_WORDS, as bash does after a Tab, and prints one completion on each line.
BASH = """
source <("$1" --completions bash)
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_zarr_mount_values "$2" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""
# A shell in its own terminal gets a Tab, and then a key for a widget that prints the completed line.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
see() { local text; while zpty -r shell text "*$1*"; do [[ $text == *$1* ]] && break; done; print -r -- "$text" }
zpty -w shell 'PS1=; autoload -U compinit; compinit -D -u; source <('"${(q)1}"' --completions zsh); print -r begun-$((1+1))'
see begun-2 >/dev/null
zpty -w shell "tell() { print -r -- \\"<\\$BUFFER>\\" }; zle -N tell; bindkey '^T' tell; print -r ready-\\$((1+1))"
see ready-2 >/dev/null
zpty -w -n shell "$2"$'\\t\\x14'
see '>'
"""


@pytest.fixture
def mounts(mount, tmp_path):
    """Two mounts in one directory, and beside them a directory that is no mount. Names may have any characters."""
    (tmp_path / "zm points").mkdir()
    (tmp_path / "zm points" / "other").mkdir()
    points = [tmp_path / "zm points" / name for name in ("first one", "second$(touch made)")]
    for point in points:
        mount("demo:", path=point)
    return points


def test_the_list_of_mountpoints_is_quiet(mounts):
    listed = ok(BINARY, "--list", "--quiet").splitlines()
    assert [point for point in listed if "/zm points/" in point] == list(map(str, mounts))


def test_bash(mounts, tmp_path):
    def completed(*words):
        lines = ok("bash", "-c", BASH, "bash", BINARY, BINARY, *words, cwd=tmp_path).split("\n")
        return [line for line in lines if line]

    for option in ("--unmount", "--status"):
        found = completed(option, "")
        assert {str(point) for point in mounts} <= set(found) and all(point.startswith("/") for point in found)
    begin = str(mounts[0])[:-3]
    assert completed("--unmount", begin) == [str(mounts[0])]
    # The path is typed with backslashes, or after an equals sign, which is a separate word in bash.
    assert completed("--unmount", begin.replace(" ", "\\ ")) == [str(mounts[0])]
    assert completed("--status", "=", begin) == [str(mounts[0])]
    assert completed("--unmount", str(tmp_path / "none")) == []
    assert completed("--view", "arr") == ["arrays"] and completed("--view", "keys,ch") == ["keys,chunks"]
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish(mounts, tmp_path):
    command = f"{BINARY} --completions fish | source; complete -C 'zarr-mount --unmount {str(mounts[0])[:len(str(tmp_path)) + 3]}'"
    (tmp_path / "zarr-mount").symlink_to(BINARY)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    found = ok("fish", "-c", command, env=environment).splitlines()
    assert {str(point) for point in mounts} <= {line.split("\t")[0] for line in found}


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh(mounts, tmp_path):
    (tmp_path / "zarr-mount").symlink_to(BINARY)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"}
    typed = "zarr-mount --status " + str(mounts[0])[:-3].replace(" ", "\\ ")
    shown = ok("zsh", "-f", "-c", ZSH, "zsh", BINARY, typed, env=environment, timeout=60)
    assert "<zarr-mount --status " + str(mounts[0]).replace(" ", "\\ ") in shown, shown
