"""Contract: what `hedgerow.kube.client` leans on in kr8s, some of it private."""

from __future__ import annotations

import inspect
import ssl
from importlib.metadata import version

import anyio
import pytest
from kr8s._auth import KubeAuth
from kr8s.asyncio import Api

pytestmark = pytest.mark.anyio

CONFIG = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://server"}}],
    "users": [{"name": "c", "user": {"token": "t"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
}


@pytest.fixture
async def api() -> Api:
    made = Api(bypass_factory=True, kubeconfig=CONFIG, namespace="n", serviceaccount="")
    await made.auth.reauthenticate()
    return made


class TestKr8s:
    def test_is_the_one_that_was_read(self):
        assert version("kr8s") == "0.20.15"

    def test_auth_has_what_we_read(self):
        auth = KubeAuth(kubeconfig=CONFIG)

        for name in (
            "server",
            "token",
            "proxy",
            "tls_server_name",
            "client_key_file",
            "client_cert_file",
            "server_ca_file",
            "_user",
            "_cluster",
        ):
            assert hasattr(auth, name), name
        assert inspect.iscoroutinefunction(auth.reauthenticate)
        assert inspect.iscoroutinefunction(auth.ssl_context)


class TestApi:
    async def test_made_directly_asks_nothing_and_is_shared_with_nobody(self, api):
        other = Api(bypass_factory=True, kubeconfig=CONFIG, namespace="n", serviceaccount="")

        assert api is not other
        assert api.auth is not other.auth
        assert (api.auth.server, api.auth.token) == ("https://server", "t")
        assert api._session is None


class TestAuth:
    async def test_writes_inline_credentials_to_files_that_it_never_deletes(self):
        """Why we do."""
        cluster = {"server": "https://s", "certificate-authority-data": "Y2E="}
        config = {**CONFIG, "clusters": [{"name": "c", "cluster": cluster}]}
        auth = KubeAuth(kubeconfig=config)

        await auth.reauthenticate()

        path = anyio.Path(str(auth.server_ca_file))
        assert await path.read_bytes() == b"ca"
        await path.unlink()

    async def test_makes_a_new_tls_context_each_time(self):
        cluster = {"server": "https://s", "insecure-skip-tls-verify": True}
        auth = KubeAuth(kubeconfig={**CONFIG, "clusters": [{"name": "c", "cluster": cluster}]})
        await auth.reauthenticate()

        first, second = await auth.ssl_context(), await auth.ssl_context()

        assert isinstance(first, ssl.SSLContext)
        assert first is not second
        assert first.verify_mode is ssl.CERT_NONE

    async def test_leaves_verification_to_httpx_without_any_certificate(self, api):
        assert await api.auth.ssl_context() is True
