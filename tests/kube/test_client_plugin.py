"""Client: credentials that a plugin gives (`exec` in a kubeconfig)."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from hedgerow.kube import client, errors
from hedgerow.kube.client import connect
from hedgerow.kube.errors import ConfigError
from kube.fakes import reply, status, write_kubeconfig
from kube.pems import certificate

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("temporary"),
    # kr8s leaves open what it writes to, and Python says so from 3.14 on.
    pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning"),
]


def plugin(path: Path, status: Any, *, code: int = 0, hint: str = "") -> dict[str, Any]:
    """Return an exec plugin that counts its runs beside `path` and answers with `status`."""
    lines = [
        "import sys",
        f"open({str(path.with_suffix('.runs'))!r}, 'a').write('x')",
        f"print({json.dumps({'status': status})!r})",
        "print('no such profile', file=sys.stderr)",
        f"sys.exit({code})",
    ]
    path.write_text("\n".join(lines))
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-S", str(path)],
        "installHint": hint,
    }


def wordless(path: Path) -> dict[str, Any]:
    """Return a plugin that answers without a status."""
    found = plugin(path, {})
    path.write_text("print('{}')")
    return found


SHOP = "install it from\nthe shop"
NOT_INSTALLED = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}


class TestPlugin:
    async def test_gives_a_token_and_is_run_once_per_login(self, server, connected, tmp_path):
        user = {"exec": plugin(tmp_path / "p.py", {"token": "given"})}
        path = write_kubeconfig(tmp_path / "k", user=user)
        server.answers = [status(403), reply(), status(401), reply()]

        async with connected(kubeconfig=str(path)) as cluster:
            with pytest.raises(errors.Forbidden):
                await cluster.get("/version")
            await cluster.get("/version")
            assert (tmp_path / "p.runs").read_text() == "x"
            await cluster.get("/version")

        assert (tmp_path / "p.runs").read_text() == "xx"
        assert set(server.tokens) == {"Bearer given"}

    async def test_gives_a_certificate_and_leaves_no_file_behind(self, tmp_path, temporary):
        cert, key = certificate()
        given = {"clientCertificateData": cert.decode(), "clientKeyData": key.decode()}
        path = write_kubeconfig(
            tmp_path / "k",
            user={"exec": plugin(tmp_path / "p.py", given)},
            cluster={"server": "https://s"},
        )

        async with connect(kubeconfig=str(path)):
            assert list(temporary.iterdir()) == []

    @pytest.mark.parametrize("where", ["home", "temporary"])
    async def test_the_users_own_files_beside_it_stay(self, tmp_path, temporary, where):
        cert, key = certificate()
        place = temporary if where == "temporary" else tmp_path
        own = {name: place / f"{name}.pem" for name in ("ca", "cert", "key")}
        for name, file in own.items():
            file.write_bytes(key if name == "key" else cert)
        user = {
            "exec": plugin(tmp_path / "p.py", {"token": "given"}),
            "client-certificate": str(own["cert"]),
            "client-key": str(own["key"]),
        }
        cluster = {"server": "https://s", "certificate-authority": str(own["ca"])}
        path = write_kubeconfig(tmp_path / "k", user=user, cluster=cluster)

        async with connect(kubeconfig=str(path)):
            pass

        assert [name for name, file in own.items() if not file.exists()] == []

    async def test_that_gave_a_certificate_may_be_interrupted_and_leaves_no_file_behind(
        self, tmp_path, temporary, monkeypatch
    ):
        cert, key = certificate()
        given = {"clientCertificateData": cert.decode(), "clientKeyData": key.decode()}
        user = {"exec": plugin(tmp_path / "p.py", given)}
        path = write_kubeconfig(tmp_path / "k", user=user)
        written = anyio.Event()

        async def hang(_: Any) -> Any:
            written.set()
            await anyio.sleep_forever()

        async def log_in() -> None:
            async with connect(kubeconfig=str(path)):
                raise AssertionError

        monkeypatch.setattr("kr8s._auth.KubeAuth.ssl_context", hang)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log_in)
            await written.wait()
            assert list(temporary.iterdir())
            tasks.cancel_scope.cancel()

        assert list(temporary.iterdir()) == []

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (
                lambda path: plugin(path, {"token": "t"}, code=3, hint=SHOP),
                "non-zero code 3: no such profile; install it from the shop",
            ),
            (lambda path: plugin(path, {}, hint=SHOP), "Did not find credentials"),
            (wordless, "'status' is missing"),
            (lambda _: NOT_INSTALLED, "No such file or directory: 'no-such-plugin'"),
        ],
        ids=["it fails", "no credentials", "no status", "not installed"],
    )
    async def test_that_fails_is_told_with_its_own_hint(self, tmp_path, make, said):
        path = write_kubeconfig(tmp_path / "k", user={"exec": make(tmp_path / "p.py")})

        with pytest.raises(ConfigError, match=said) as caught:
            async with connect(kubeconfig=str(path)):
                pass

        assert "\n" not in str(caught.value)

    async def test_that_hangs_is_given_up(self, tmp_path, monkeypatch):
        async def hang(*_: Any, **__: Any) -> str:
            await anyio.sleep_forever()
            raise AssertionError

        monkeypatch.setattr("kr8s._auth.check_output", hang)
        monkeypatch.setattr(client, "LOGIN", 0.01)
        path = write_kubeconfig(tmp_path / "k", user={"exec": plugin(tmp_path / "p.py", {})})

        with pytest.raises(ConfigError, match="credential plugin gave no answer"):
            async with connect(kubeconfig=str(path)):
                pass

    async def test_that_hangs_can_be_interrupted(self, tmp_path, monkeypatch):
        begun = anyio.Event()

        async def hang(*_: Any, **__: Any) -> str:
            begun.set()
            await anyio.sleep_forever()
            raise AssertionError

        async def log_in() -> None:
            async with connect(kubeconfig=str(path)):
                raise AssertionError

        monkeypatch.setattr("kr8s._auth.check_output", hang)
        path = write_kubeconfig(tmp_path / "k", user={"exec": plugin(tmp_path / "p.py", {})})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log_in)
            await begun.wait()
            tasks.cancel_scope.cancel()
