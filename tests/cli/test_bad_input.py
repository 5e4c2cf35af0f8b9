"""Bad input, every command: one line with the remedy, the documented exit code, no traceback."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from hedgerow.cli.commands import LAZY
from hedgerow.encoding import encode
from hedgerow.kube import client
from support.operator.running import PORTLESS
from support.server.apiserver import Act, ApiServer, Exchange, Reply, refusal
from support.server.connected import connect

HUMAN = ("--log-format", "human")
MOVE = ("--from", "a", "--to", "b")
CALLS: dict[str, tuple[str, ...]] = {
    "run": (*HUMAN, *PORTLESS),
    "install": (),
    "uninstall": (),
    "check": (),
    "owners": ("deploy/web",),
    "tree": ("deploy/web",),
    "watch": ("deploy/web",),
    "plan": ("-f", "{file}"),
    "adopt": ("deploy/web", *MOVE),
    "release": ("deploy/web",),
    "promote": ("web",),
    "rollback": ("web",),
    "schedule next": ("cronjob/web",),
}
"""What is typed of each command that asks a cluster."""
FILED = {
    "plan": ("-f", "{file}"),
    "adopt": ("-f", "{file}", *MOVE),
    "release": ("-f", "{file}"),
    "owners": ("-f", "{file}", "--by-manager"),
    "schedule next": ("-f", "{file}"),
    "audit": ("--crds", "{file}", "--samples", "{file}", "--", "true"),
}
"""What is typed of each command that reads manifests."""
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "there",
    "contexts": [{"name": "there", "context": {"cluster": "there", "user": "me"}}],
    "clusters": [{"name": "there", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {"token": "t"}}],
}


def leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    if not below or command.invoke_without_command:
        yield path, command
    for name, each in below.items():
        yield from leaves(f"{path} {name}", each)


TABLE = {path: one for name, lazy in LAZY.items() for path, one in leaves(name, lazy.load(name))}
ASKING = {path for path, one in TABLE.items() if any(p.name == "kubeconfig" for p in one.params)}


@pytest.fixture
def told(typing, tmp_path, monkeypatch):
    """Type a line; return its exit code and its one line on standard error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    file = tmp_path / "web.yaml"
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    file.write_bytes(encode(manifest))

    def told(path: str, *words: str) -> tuple[int, str]:
        given = [str(file) if word == "{file}" else word for word in words]
        code, out, err = typing(*path.split(), *given)
        assert out == "" or path == "check"  # which begins with the cluster
        assert "Traceback" not in err
        assert err.count("\n") == 1, err
        assert err.startswith("hedgerow: ")
        return code, err

    return told


def usage(path: str, code: int) -> int:
    """Return a command's exit code; of `plan`, 2 means that there are changes."""
    return 1 if (path, code) == ("plan", 2) else code


def test_every_command_is_in_the_table():
    assert CALLS.keys() == ASKING
    filed = {path for path, one in TABLE.items() if any("-f" in p.opts for p in one.params)}
    assert filed <= FILED.keys()


@pytest.mark.parametrize("path", TABLE)
def test_an_unknown_option(told, path):
    words = HUMAN if path == "run" else ()

    code, err = told(path, *words, "--bogus")

    assert code == usage(path, 2)
    assert err.endswith(f"No such option: --bogus; see `hedgerow {path} --help`\n")


@pytest.mark.parametrize(
    ("path", "text", "code", "said"),
    [
        *((path, None, 2, "kubeconfig {path} does not exist; name another file") for path in CALLS),
        ("tree", b"{", 2, "kubeconfig {path} is no YAML"),
        # Each that tells of it in a way of its own, and one of the others.
        *(
            (path, encode(NOWHERE), 4, "cannot reach https://127.0.0.1:1")
            for path in ("run", "check", "plan", "tree")
        ),
    ],
)
def test_no_cluster(told, tmp_path, path, text, code, said):
    config = tmp_path / "kubeconfig"
    if text is not None:
        config.write_bytes(text)

    ended, err = told(path, *CALLS[path], "--kubeconfig", str(config))

    assert ended == usage(path, code)
    assert said.format(path=config) in err
    assert {found.name for found in tmp_path.iterdir()} <= {"kubeconfig", "web.yaml"}


@pytest.mark.parametrize("path", CALLS)
def test_a_wrong_context(told, tmp_path, path):
    config = tmp_path / "kubeconfig"
    config.write_bytes(encode(NOWHERE))

    code, err = told(path, *CALLS[path], "--kubeconfig", str(config), "--context", "nope")

    assert code == usage(path, 2)
    assert "nope" in err


@pytest.fixture
def nobody(monkeypatch) -> ApiServer:
    """A cluster whose user may do nothing."""
    made = ApiServer(latency=0)

    async def refuse(exchange: Exchange, _act: Act) -> Reply:
        return refusal(403, "Forbidden", f'User "nobody" cannot {exchange.verb}')

    made.hook = refuse
    monkeypatch.setattr(client, "connect", connect(made, "shop"))
    return made


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("path", sorted(CALLS.keys() - {"run", "check", "plan"}))
def test_no_rights(told, path):
    code, err = told(path, *CALLS[path])

    assert code == 1
    assert 'User "nobody" cannot' in err
    assert "ask for the right, or choose another user with --context" in err


NAMED = ["owners", "tree", "watch", "adopt", "release", "schedule next"]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("path", NAMED)
def test_a_kind_that_is_not_there(told, path):
    _, *more = CALLS[path]
    code, err = told(path, "nonesuch/web", *more)

    assert code in {1, 2}
    assert "nonesuch" in err


@pytest.mark.parametrize("path", FILED)
def test_a_file_that_is_no_yaml(told, server, tmp_path, path):
    (tmp_path / "bad.yaml").write_text("a: [")
    words = [str(tmp_path / "bad.yaml") if one == "{file}" else one for one in FILED[path]]

    code, err = told(path, *words)

    assert code in {1, 2}
    assert "bad.yaml" in err
    assert not any(exchange.writes for exchange in server.exchanges)
