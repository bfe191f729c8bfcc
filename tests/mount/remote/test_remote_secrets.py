"""Secrets stay where they were given: none is in a log, an argument, a file of the mount, the table of mounts or a message."""
import errno
import os
import re
from pathlib import Path

import pytest

from support import mounting, remote_samples, remote_servers
from support.remote_fault_server import FaultServer

SECRET = "Hunter2SecretThatNobodyMaySee0123456789ab"
TOKEN = "TokenThatNobodyMaySee0123456789"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder, consolidate=True)
    # An array that cannot be decoded has an ERROR.txt.
    bad = folder / remote_samples.BUCKET / "z" / "bad"
    bad.mkdir()
    (bad / "zarr.json").write_text((folder / remote_samples.BUCKET / "z" / "plain" / "zarr.json").read_text().replace('"bytes"', '"unheard-of"'))
    return folder


def exposed(made):
    """Name -> text: everything that other users see of a mount, and its log."""
    seen = {"said": made.said, "log": made.log_text(), "cmdline": Path(f"/proc/{made.pid}/cmdline").read_bytes().decode("latin-1"),
            "mounts": Path("/proc/mounts").read_text(), "mountinfo": Path("/proc/self/mountinfo").read_text()}
    for path in (made.path / ".zarr-mount").iterdir():
        seen[path.name] = path.read_bytes().decode("latin-1")
    for path, _, names in os.walk(made.path):
        for name in names:
            if name.endswith((".txt", ".json")):
                seen[os.path.join(path, name)] = Path(path, name).read_bytes().decode("latin-1")
        for name in (path, *(os.path.join(path, n) for n in names)):
            for attribute in attributes(name):
                seen[f"{name} {attribute}"] = os.getxattr(name, attribute).decode("latin-1")
    return seen


def attributes(path):
    try:
        return os.listxattr(path)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP  # they are an option of the mount
        return []


def check(made, *secrets):
    seen = exposed(made)
    assert seen["log"] and seen["stats.json"]
    wrong = [name for name, text in seen.items() if any(secret in text for secret in secrets)]
    assert not wrong, {name: [line for line in seen[name].splitlines() if any(s in line for s in secrets)][:3] for name in wrong}


def provoke(made, server):
    """Reads, and errors of every kind, which are logged."""
    for fault in ({"fault": "status", "status": 403, "code": "AccessDenied"}, {"fault": "status", "status": 500},
                  {"fault": "status", "status": 400, "code": "ExpiredToken"}, {"fault": "reset"}, {"fault": "encode"},
                  {"fault": "redirect", "location": "http://127.0.0.1:1/{key}?secret=1"}):
        server.rules({"key": "*/plain/c/1", **fault})
        assert isinstance(remote_samples.attempt(made.path / "chunks" / "plain" / "c" / "1"), str), fault
    server.rules()
    assert remote_samples.attempt(made.path / "chunks" / "plain" / "c" / "0") == remote_samples.chunk("plain", 0)


VIEWS = ("--view", "chunks,arrays,keys", "--timeout", "2", "--log-level", "trace", "--ttl", "0")


def test_keys_of_s3(root, mount):
    with FaultServer(root, "s3") as server:
        env = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
        made = mount("s3://bucket/z", "--endpoint", server.url, "--region", "us-east-1", *VIEWS, env=remote_servers.clean_environment(**env))
        provoke(made, server)
        sent = server.requests(method="GET")
        assert all("AKIATEST" in r["headers"]["authorization"] for r in sent), "the requests are not signed"
        assert all(r["headers"]["x-amz-security-token"] == TOKEN for r in sent)
        signatures = {r["headers"]["authorization"].rpartition("=")[2] for r in sent}
        check(made, SECRET, TOKEN, *signatures)
        made.unmount()
        assert SECRET not in made.log_text() and TOKEN not in made.log_text()


def test_a_profile(root, mount, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text(f"[other]\naws_access_key_id = no\naws_secret_access_key = no\n[mine]\naws_access_key_id = AKIATEST\n"
                           f"aws_secret_access_key = {SECRET}\naws_session_token = {TOKEN}\n")
    with FaultServer(root, "s3") as server:
        made = mount("s3://bucket/z", "--endpoint", server.url, "--region", "us-east-1", "--profile", "mine", *VIEWS,
                     env=remote_servers.clean_environment(AWS_SHARED_CREDENTIALS_FILE=str(credentials)))
        provoke(made, server)
        assert all("AKIATEST" in r["headers"]["authorization"] for r in server.requests(method="GET"))
        check(made, SECRET, TOKEN)
        made.unmount()


def test_a_header_from_a_file(root, mount, tmp_path):
    file = tmp_path / "header"
    file.write_text(f"Bearer {SECRET}\n")
    with FaultServer(root) as server, FaultServer(root) as other:
        made = mount(f"{server.url}/bucket/z", "--header", f"Authorization: @{file}", *VIEWS, env=remote_servers.clean_environment())
        provoke(made, server)
        assert all(r["headers"].get("authorization") == f"Bearer {SECRET}" for r in server.requests(method="GET"))
        check(made, SECRET)
        # Another origin is not told, whether the redirect is followed or not.
        server.rules({"fault": "redirect", "location": other.url + "/{key}", "key": "*/plain/c/2"})
        remote_samples.attempt(made.path / "chunks" / "plain" / "c" / "2")
        assert not [r for r in other.requests() if "authorization" in r["headers"]]
        made.unmount()


def test_the_key_of_an_account_of_azure(root, mount):
    key = "SHVudGVyMlNlY3JldFRoYXROb2JvZHlNYXlTZWUwMTIzNDU2Nzg5YWI="
    with FaultServer(root) as server:
        done = mounting.run(mounting.BINARY, "--info", "az://bucket/z", "--endpoint", f"{server.url}/account", "--timeout", "2",
                            "--log-level", "trace", env=remote_servers.clean_environment(AZURE_STORAGE_ACCOUNT_NAME="account",
                                                                                         AZURE_STORAGE_ACCOUNT_KEY=key))
        # The path has the account in it, so that nothing is found.
        sent = server.requests()
        assert sent and all(r["headers"]["authorization"].startswith("SharedKey account:") for r in sent)
        said = done.stdout + done.stderr
        assert key not in said and not [r for r in sent if r["headers"]["authorization"].rpartition(":")[2] in said]


def test_a_shared_access_signature_of_azure(root, tmp_path):
    with FaultServer(root) as server:
        for rule in ({"fault": "status", "status": 403}, {"fault": "status", "status": 500}, {"fault": "reset"}):
            server.rules(rule)
            done = mounting.run(mounting.BINARY, "--info", "az://bucket/z", "--endpoint", f"{server.url}/account", "--timeout", "2",
                                "--log-level", "trace", env=remote_servers.clean_environment(
                                    AZURE_STORAGE_ACCOUNT_NAME="account", AZURE_STORAGE_SAS_TOKEN=f"sv=2021-08-06&sp=rl&sig={SECRET}"))
            assert done.returncode != 0 and SECRET not in done.stdout + done.stderr, done.stderr
        assert [r for r in server.requests() if r["query"].get("sig") == SECRET]


@pytest.mark.parametrize("text", ["https://user:{}@127.0.0.1/z", "s3://AKIATEST:{}@bucket/z", "https://{}@127.0.0.1/z",
                                  "https://127.0.0.1/z?sig={}", "https://127.0.0.1/z?X-Amz-Signature={}", "https://127.0.0.1/z#{}"])
@pytest.mark.parametrize("task", ["mount", "info"])
def test_secrets_in_urls_are_refused(text, task, tmp_path):
    """The message names the variable or file to use instead, and not the value that was typed."""
    command = [mounting.BINARY, text.format(SECRET), tmp_path] if task == "mount" else [mounting.BINARY, "--info", text.format(SECRET)]
    done = mounting.run(*command, env=remote_servers.clean_environment())
    assert done.returncode != 0 and not mounting.mount_entry(tmp_path)
    assert SECRET not in done.stderr + done.stdout, done.stderr
    assert len(done.stderr.splitlines()) == 1 and re.search(r"AWS_SECRET_ACCESS_KEY|--header", done.stderr), done.stderr


@pytest.mark.parametrize("name", ["Authorization", "Cookie", "X-Api-Key"])
def test_secret_headers_come_from_files_only(name, tmp_path):
    done = mounting.run(mounting.BINARY, "http://127.0.0.1:1/z", tmp_path, "--header", f"{name}: {SECRET}")
    assert done.returncode != 0 and "@" in done.stderr and name.lower() in done.stderr.lower(), done.stderr
    assert SECRET not in done.stderr


def test_a_file_of_variables(root, mount, tmp_path):
    """For fstab and autofs, which have no environment. No other user may read it."""
    file = tmp_path / "env"
    file.write_text(f"AWS_ACCESS_KEY_ID=AKIATEST\nAWS_SECRET_ACCESS_KEY={SECRET}\nAWS_REGION=us-east-1\n")
    with FaultServer(root, "s3") as server:
        args = ("s3://bucket/z", "--endpoint", server.url, "--env-file", file, *VIEWS)
        file.chmod(0o644)
        point = tmp_path / "m"
        point.mkdir()
        done = mounting.run(mounting.BINARY, args[0], point, *args[1:], env=remote_servers.clean_environment())
        mounting.force_away(point)
        assert done.returncode != 0 and str(file) in done.stderr and SECRET not in done.stderr, done.stderr
        assert not server.requests()
        file.chmod(0o600)
        made = mount(*args, env=remote_servers.clean_environment())
        provoke(made, server)
        assert all("AKIATEST" in r["headers"]["authorization"] for r in server.requests(method="GET"))
        check(made, SECRET)
        made.unmount()


def test_no_credentials_are_looked_for(root, mount):
    with FaultServer(root, "s3") as server:
        made = mount("s3://bucket/z", "--endpoint", server.url, "--region", "us-east-1", "--anonymous", "--view", "chunks",
                     env=remote_servers.clean_environment(AWS_ACCESS_KEY_ID="AKIATEST", AWS_SECRET_ACCESS_KEY=SECRET))
        assert (made.path / "plain" / "c" / "0").read_bytes() == remote_samples.chunk("plain", 0)
        assert not [r for r in server.requests() if "authorization" in r["headers"]]
        made.unmount()
