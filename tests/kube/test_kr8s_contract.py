"""Contract: what `hedgerow.kube.client` leans on in kr8s, some of it private."""

from __future__ import annotations

import inspect
import ssl
from importlib.metadata import version

import anyio
import httpx
import kr8s
import pytest
from kr8s._auth import KubeAuth
from kr8s.asyncio import Api

from kube.fakes import Server, reply, status

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


def on(api: Api, server: Server) -> httpx.AsyncClient:
    session = httpx.AsyncClient(transport=httpx.MockTransport(server.answer))
    api._session = session
    return session


async def call(api: Api) -> httpx.Response:
    url = {"version": "", "base": "https://server", "url": "x/y"}
    async with api.call_api("GET", **url, raise_for_status=False, timeout=1.0) as response:
        return response


class TestKr8s:
    def test_is_the_one_that_was_read(self):
        assert version("kr8s") == "0.20.15"

    def test_call_api_takes_what_we_give(self):
        parameters = inspect.signature(Api.call_api).parameters

        assert list(parameters) == [
            "self",
            "method",
            "version",
            "base",
            "namespace",
            "url",
            "raise_for_status",
            "stream",
            "kwargs",
        ]

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

    async def test_sends_over_the_session_that_we_put_in(self, api, server):
        server.answers = [reply()]
        session = on(api, server)

        response = await call(api)

        assert response.status_code == 200
        assert str(server.requests[0].url) == "https://server/x/y"
        assert api._session is session

    @pytest.mark.parametrize("code", [401, 403, 404, 500])
    async def test_gives_every_answer_as_a_result_when_told_not_to_raise(self, api, server, code):
        server.answers = [status(code)]
        session = on(api, server)

        response = await call(api)

        assert response.status_code == code
        assert api._session is session
        assert len(server.requests) == 1

    async def test_makes_a_session_of_its_own_in_place_of_a_closed_one(self, api, server):
        """Why we look before we call."""
        server.answers = [reply()]
        session = on(api, server)
        await session.aclose()

        with pytest.raises(httpx.ConnectError):
            await call(api)

        assert api._session is not session
        assert api._session is not None
        await api._session.aclose()

    async def test_hides_a_timeout_behind_its_own_error(self, api, server):
        server.answers = [httpx.ReadTimeout("late")]
        on(api, server)

        with pytest.raises(kr8s.APITimeoutError) as caught:
            await call(api)

        assert isinstance(caught.value.__cause__, httpx.ReadTimeout)

    async def test_lets_other_failures_through(self, api, server):
        server.answers = [httpx.RemoteProtocolError("half")]
        on(api, server)

        with pytest.raises(httpx.RemoteProtocolError):
            await call(api)

    async def test_asks_for_the_tls_server_name(self, api, server):
        server.answers = [reply()]
        on(api, server)
        api.auth.tls_server_name = "other"

        await call(api)

        assert server.requests[0].extensions["sni_hostname"] == "other"


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
