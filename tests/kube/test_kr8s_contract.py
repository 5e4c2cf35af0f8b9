"""Contract: what `hedgerow.kube.plugins` relies on in kr8s, at both ends of the range.

`task versions` runs it with the lowest and the highest version that `pyproject.toml` allows.
"""

from __future__ import annotations

import ssl
from typing import Any

import anyio
import pytest
from kr8s.asyncio import Api

pytestmark = [
    pytest.mark.anyio,
    # kr8s leaves open what it writes to, and Python says so from 3.14 on.
    pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning"),
]

CONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
}


async def logged_in(user: dict[str, Any] | None = None, **cluster: Any) -> Api:
    config = {
        **CONFIG,
        "clusters": [{"name": "c", "cluster": {"server": "https://server", **cluster}}],
        "users": [{"name": "c", "user": {"token": "t"} if user is None else user}],
    }
    made = Api(bypass_factory=True, kubeconfig=config, namespace="n", serviceaccount="")
    await made.auth.reauthenticate()
    return made


class TestApi:
    async def test_made_directly_asks_nothing_and_is_shared_with_nobody(self):
        """There is no such server: if it asked, it would fail."""
        api, other = await logged_in(), await logged_in()

        assert api is not other
        assert api.auth is not other.auth
        assert (api.auth.server, api.auth.token) == ("https://server", "t")


class TestAuth:
    async def test_writes_inline_credentials_to_files_that_it_never_deletes(self):
        """Why we do."""
        api = await logged_in(**{"certificate-authority-data": "Y2E="})

        path = anyio.Path(str(api.auth.server_ca_file))
        assert await path.read_bytes() == b"ca"
        await path.unlink()

    async def test_names_the_users_own_files_as_the_kubeconfig_does(self, tmp_path):
        """By this we know which ones to delete."""
        names = {name: str(tmp_path / name) for name in ("ca", "cert", "key")}
        for path in names.values():
            await anyio.Path(path).write_text("pem")
        user = {"client-certificate": names["cert"], "client-key": names["key"]}

        auth = (await logged_in(user, **{"certificate-authority": names["ca"]})).auth

        found = (auth.server_ca_file, auth.client_cert_file, auth.client_key_file)
        assert tuple(map(str, found)) == tuple(names.values())

    async def test_makes_a_new_tls_context_each_time_that_checks_nothing_where_told_so(self):
        auth = (await logged_in(**{"insecure-skip-tls-verify": True})).auth

        first, second = await auth.ssl_context(), await auth.ssl_context()

        assert isinstance(first, ssl.SSLContext)
        assert first is not second
        assert first.verify_mode is ssl.CERT_NONE

    async def test_leaves_verification_to_httpx_without_any_certificate(self):
        assert await (await logged_in()).auth.ssl_context() is True
