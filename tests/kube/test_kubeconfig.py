"""Kubeconfig: chosen as kubectl chooses, and what is wrong is said in one line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml
from pydantic_core import from_json

from hedgerow.kube import kubeconfig as kubeconfigs
from hedgerow.kube.errors import ConfigError, NoCluster
from hedgerow.kube.kubeconfig import ClusterAccess, choose
from kube.fakes import write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


def cluster(access: ClusterAccess) -> dict[str, Any]:
    return access.config["clusters"][0]["cluster"]


def user(access: ClusterAccess) -> dict[str, Any]:
    return access.config["users"][0]["user"]


def write(path: Path, **sections: Any) -> Path:
    path.write_text(yaml.safe_dump(sections), "utf-8")
    return path


class TestChoose:
    async def test_takes_the_file_that_is_given(self, kubeconfig, monkeypatch, tmp_path):
        other = write_kubeconfig(tmp_path / "other", cluster={"server": "https://other"})
        monkeypatch.setenv("KUBECONFIG", str(other))

        access = await choose(str(kubeconfig))

        assert (access.context, access.namespace) == ("here", "default")
        assert cluster(access) == {"server": "https://server"}
        assert user(access) == {"token": "first"}

    async def test_else_the_variable_and_else_the_home_directory(self, monkeypatch, tmp_path):
        home = tmp_path / "home" / ".kube"
        home.mkdir(parents=True)
        write_kubeconfig(home / "config", context={"namespace": "of-home"})
        at_home = await choose()
        monkeypatch.setenv(
            "KUBECONFIG", str(write_kubeconfig(tmp_path / "v", context={"namespace": "of-var"}))
        )
        by_variable = await choose()

        assert (at_home.namespace, by_variable.namespace) == ("of-home", "of-var")

    async def test_takes_the_namespace_of_the_context_that_is_named(self, tmp_path):
        path = write_kubeconfig(tmp_path / "k", context={"namespace": "current"})
        config = yaml.safe_load(path.read_text())
        context = {"cluster": "c", "user": "u", "namespace": "of-second"}
        config["contexts"].append({"name": "second", "context": context})

        access = await choose(str(write(path, **config)), "second")

        assert (access.context, access.namespace) == ("second", "of-second")

    async def test_merges_files_so_that_the_first_to_name_something_wins(
        self, monkeypatch, tmp_path
    ):
        server = {"name": "c", "cluster": {"server": "https://first"}}
        first = write(tmp_path / "first", clusters=[server], contexts=None, users=[])
        second = write_kubeconfig(tmp_path / "second", context={"namespace": "of-second"})
        absent, empty = tmp_path / "absent", tmp_path / "empty"
        empty.write_text("")
        names = ["", absent, empty, first, second]
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, names)))

        access = await choose()

        assert cluster(access)["server"] == "https://first"
        assert (access.context, access.namespace) == ("here", "of-second")

    async def test_finds_files_beside_the_kubeconfig_that_names_them(self, monkeypatch, tmp_path):
        beside = tmp_path / "beside"
        beside.mkdir()
        for name in ("ca", "cert", "key", "token"):
            (beside / name).write_text("there")
            (tmp_path / name).write_text("not there")
        monkeypatch.chdir(tmp_path)
        path = write_kubeconfig(
            beside / "config",
            cluster={"certificate-authority": "ca"},
            user={
                "client-certificate": "cert",
                "client-key": str(beside / "key"),
                "tokenFile": "token",
            },
        )

        access = await choose(str(path))

        assert cluster(access)["certificate-authority"] == str(beside / "ca")
        assert user(access) == {
            "client-certificate": str(beside / "cert"),
            "client-key": str(beside / "key"),
        }
        assert access.token_file == anyio.Path(beside / "token")

    async def test_prefers_what_is_inline_as_kubectl_does(self, tmp_path):
        path = write_kubeconfig(
            tmp_path / "k", user={"client-key": "absent", "client-key-data": "aGVsbG8="}
        )

        assert user(await choose(str(path))) == {"client-key-data": "aGVsbG8="}

    async def test_keeps_only_what_logging_in_takes(self, tmp_path):
        path = write_kubeconfig(
            tmp_path / "k",
            cluster={"tls-server-name": "n", "proxy-url": "http://p", "extensions": [1]},
            user={"auth-provider": {"name": "oidc", "config": {"id-token": "t", "expiry": 1}}},
        )

        access = await choose(str(path))

        assert cluster(access) == {
            "server": "https://server",
            "tls-server-name": "n",
            "proxy-url": "http://p",
        }
        provider = {"name": "oidc", "config": {"id-token": "t"}}
        assert user(access) == {"auth-provider": provider}

    async def test_does_without_a_user(self, tmp_path):
        path = write_kubeconfig(tmp_path / "k", user={})
        config = yaml.safe_load(path.read_text())
        del config["contexts"][0]["context"]["user"]

        assert user(await choose(str(write(path, **config)))) == {}

    async def test_never_shows_credentials(self, kubeconfig):
        assert "first" not in repr(await choose(str(kubeconfig)))


class TestPlugin:
    async def test_is_told_what_kubectl_tells_it(self, tmp_path):
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./fetch",
            "args": ["--n", 1],
            "env": [{"name": "A", "value": "b"}],
            "provideClusterInfo": True,
            "installHint": "get it\nsomewhere",
        }
        path = write_kubeconfig(
            tmp_path / "k", user={"exec": plugin}, cluster={"certificate-authority-data": "Y2E="}
        )

        access = await choose(str(path))

        found = user(access)["exec"]
        info = from_json(found["env"][1]["value"])
        assert found["command"] == str(tmp_path / "fetch")
        assert found["args"] == ["--n", "1"]
        assert found["env"][0] == {"name": "A", "value": "b"}
        assert found["env"][1]["name"] == "KUBERNETES_EXEC_INFO"
        assert info["spec"] == {
            "interactive": False,
            "cluster": {"server": "https://server", "certificate-authority-data": "Y2E="},
        }
        assert access.install_hint == "get it somewhere"

    async def test_without_a_slash_is_looked_for_on_the_path(self, tmp_path):
        plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "fetch"}
        path = write_kubeconfig(tmp_path / "k", user={"exec": plugin})

        found = user(await choose(str(path)))["exec"]

        assert found["command"] == "fetch"
        assert "cluster" not in from_json(found["env"][0]["value"])["spec"]


WRONG = [
    # reason, the file's text or changes to a good one, what is said
    ("no YAML", "a: [", "is no YAML, see line 1"),
    ("no text", b"\xff", "is no YAML"),
    ("nested without end", "[" * 5000, "is no YAML"),
    ("a list", "[1]", "is no kubeconfig"),
    ("clusters is a map", "clusters: {a: b}", "clusters must be a list of items with name and"),
    ("users without name", "users: [{}]", "users must be a list of items with name and user"),
    ("a context of text", "contexts: [{name: a, context: b}]", "contexts must be a list"),
    ("nothing in it", "{}", "; it has no contexts; name another file with --kubeconfig or $K"),
    ("unknown current context", "current-context: a", "has no context 'a'"),
    ("no scheme", {"cluster": {"server": "host:6443"}}, "must begin with https:// or http://"),
    ("no server", {"cluster": {"server": None}}, "must begin with https:// or http://"),
    ("unknown cluster", {"context": {"cluster": "b"}}, "has no cluster 'b'; it has c"),
    ("no cluster named", {"context": {"cluster": ""}}, "does not say which cluster to use"),
    ("unknown user", {"context": {"user": "b"}}, "has no user 'b'; it has u"),
    ("no such file", {"user": {"client-key": "absent"}}, "absent does not exist"),
    ("no token file", {"user": {"tokenFile": "absent"}}, "absent does not exist"),
    ("no base64", {"user": {"client-key-data": "a"}}, "client-key-data is no base64"),
    *(
        (
            f"{given} over http",
            {"cluster": {"server": "http://c:1"}, "user": user},
            (
                "context 'here' has credentials, which are not sent to http://c:1 in plain text;"
                " use https://, or a context without a user"
            ),
        )
        for given, user in {
            "a token": {"token": "t"},
            "a token's file": {"tokenFile": "t"},
            "a password": {"username": "u", "password": "p"},
            "a plugin": {"exec": {"apiVersion": "v1", "command": "c"}},
            "a provider": {"auth-provider": {"name": "oidc"}},
        }.items()
    ),
    ("half a plugin", {"user": {"exec": {"command": "c"}}}, "exec needs apiVersion and command"),
]


class TestWrong:
    @pytest.mark.parametrize(("content", "said"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
    async def test_is_said_in_one_line_that_names_the_file(self, content, said, tmp_path):
        path = tmp_path / "config"
        if isinstance(content, dict):
            content = {"user": {"token": "t"}, **content}
            write_kubeconfig(path, **content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

        with pytest.raises(ConfigError) as caught:
            await choose(str(path))

        assert said in str(caught.value)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    async def test_never_quotes_the_file(self, tmp_path):
        path = tmp_path / "config"
        path.write_text("users:\n- token: 'se-cret\n")

        with pytest.raises(ConfigError) as caught:
            await choose(str(path))

        assert "se-cret" not in str(caught.value)
        assert caught.value.__cause__ is None

    async def test_file_that_is_not_there(self, tmp_path):
        with pytest.raises(ConfigError, match="absent does not exist; name another file"):
            await choose(str(tmp_path / "absent"))

    async def test_file_that_cannot_be_read(self, tmp_path):
        with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
            await choose(str(tmp_path))

    async def test_without_credentials_plain_text_will_do(self, tmp_path):
        write_kubeconfig(tmp_path / "c", cluster={"server": "http://c:1"}, user={})

        assert (await choose(str(tmp_path / "c"))).config["clusters"][0]["cluster"] == {
            "server": "http://c:1"
        }

    async def test_context_says_which_there_are(self, kubeconfig):
        with pytest.raises(
            ConfigError, match="has no context 'x'; it has here; choose one with --context"
        ):
            await choose(str(kubeconfig), "x")

    async def test_context_without_any_kubeconfig_does_not_fall_back_to_the_pod(self):
        with pytest.raises(ConfigError, match=r"\(none found\) has no context 'x'"):
            await choose(None, "x")


@pytest.fixture
def pod(monkeypatch, tmp_path) -> Path:
    """Return the directory of a pod's service account."""
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("of-the-pod\n")
    (directory / "ca.crt").write_text("ca")
    (directory / "namespace").write_text("of-the-pod\n")
    monkeypatch.setattr(kubeconfigs, "SERVICE_ACCOUNT", anyio.Path(directory))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return directory


class TestInCluster:
    async def test_is_the_pods_own_server_token_and_namespace(self, pod):
        access = await choose()

        assert cluster(access) == {
            "server": "https://10.0.0.1:443",
            "certificate-authority": str(pod / "ca.crt"),
        }
        assert access.namespace == "of-the-pod"
        assert access.token_file == anyio.Path(pod / "token")
        assert access.context == "in-cluster"

    async def test_does_without_authority_and_namespace(self, pod, monkeypatch):
        (pod / "ca.crt").unlink()
        (pod / "namespace").unlink()
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")

        access = await choose()

        assert cluster(access) == {"server": "https://[fd00::1]:443"}
        assert access.namespace == "default"

    @pytest.mark.usefixtures("pod")
    async def test_comes_after_every_kubeconfig(self, monkeypatch, kubeconfig):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

        assert (await choose()).context == "here"

    async def test_without_a_token_says_how_a_pod_gets_one(self, pod):
        (pod / "token").unlink()

        with pytest.raises(ConfigError, match=r"no token of a Serv.*automountServiceAccountToken"):
            await choose()

    @pytest.mark.usefixtures("pod")
    async def test_a_mounted_kubeconfig_without_a_context_is_told_to_name_one(
        self, monkeypatch, tmp_path
    ):
        path = tmp_path / "mounted"
        path.write_text("contexts: [{name: a, context: {}}]", "utf-8")
        monkeypatch.setenv("KUBECONFIG", str(path))

        with pytest.raises(ConfigError, match="it has a; set its current-context"):
            await choose()
        with pytest.raises(ConfigError, match="it has a; choose one with --context"):
            await choose(context="b")

    @pytest.mark.usefixtures("pod")
    async def test_is_not_guessed(self, monkeypatch):
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST")

        with pytest.raises(NoCluster, match="no cluster to talk to: there is no kubeconfig at ~"):
            await choose()
