"""Client: logging in with every kind of credentials, and leaving nothing behind."""

from __future__ import annotations

import gc
import ssl
from typing import Any

import anyio
import httpx
import pytest
import yaml

from hedgerow.kube import client, credentials, errors
from hedgerow.kube import kubeconfig as kubeconfigs
from hedgerow.kube.client import connect
from hedgerow.kube.credentials import Bearer
from hedgerow.kube.errors import ConfigError
from hedgerow.kube.fallback import HttpxTransport
from hedgerow.kube.login import Channel
from hedgerow.kube.pool import encoded
from hedgerow.kube.transport import HttpRequest
from hedgerow.kube.wire import APPLY, METADATA, Request
from kube.asking import CONFIG_MAP
from kube.fakes import reply, write_kubeconfig
from kube.pems import certificate, text

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("temporary")]


class TestConnect:
    async def test_asks_nothing_of_the_server(self, server, connected):
        async with connected() as cluster:
            assert (cluster.server, cluster.namespace) == ("https://server", "default")

        assert server.requests == []

    async def test_says_who_it_is(self, server, connected):
        server.answers = [reply()]

        async with connected(user_agent="hedgerow/1") as cluster:
            await cluster.read_object(CONFIG_MAP, "x", "ns")

        headers = server.requests[0].headers
        assert headers["User-Agent"] == "hedgerow/1"
        assert headers["Authorization"] == "Bearer first"
        assert headers["Accept"] == "application/json"
        assert "Content-Type" not in headers

    async def test_takes_the_context_that_is_named(self, tmp_path):
        path = write_kubeconfig(tmp_path / "k", context={"namespace": "current"})
        config = yaml.safe_load(path.read_text("utf-8"))
        context = {"cluster": "c", "user": "u", "namespace": "mine"}
        config["contexts"].append({"name": "second", "context": context})
        path.write_text(yaml.safe_dump(config), "utf-8")

        async with connect(kubeconfig=str(path), context="second") as cluster:
            assert cluster.namespace == "mine"

    async def test_keeps_the_path_of_a_server_behind_a_gateway(self, server, connected, tmp_path):
        path = write_kubeconfig(tmp_path / "k", cluster={"server": "https://gate/k8s/c-1/"})
        server.answers = [reply()]

        async with connected(kubeconfig=str(path)) as cluster:
            await cluster.get("/version")

        assert str(server.requests[0].url) == "https://gate/k8s/c-1/version"

    async def test_asks_for_the_name_on_the_certificate(self, server, connected, tmp_path):
        path = write_kubeconfig(tmp_path / "k", cluster={"tls-server-name": "other"})
        server.answers = [reply()]

        async with connected(kubeconfig=str(path)) as cluster:
            await cluster.get("/version")

        extensions = server.requests[0].extensions
        assert extensions["sni_hostname"] == "other"
        assert extensions["timeout"] == {"connect": 5.0, "read": 30.0, "write": 30.0, "pool": 5.0}

    async def test_twice_gives_two_that_share_nothing(self, server, connected):
        server.answers = [reply()]

        async with connected() as outer:
            async with connected() as inner:
                await inner.get("/version")
            with pytest.raises(errors.Unreachable, match="connection to the cluster is closed"):
                await inner.get("/version")
            await outer.get("/version")

        assert len(server.requests) == 2

    async def test_leaves_nothing_open(self, tmp_path):
        cert, key = certificate()
        user = {"client-certificate-data": text(cert), "client-key-data": text(key)}
        path = write_kubeconfig(
            tmp_path / "k", user=user, cluster={"server": "https://localhost:1"}
        )

        async with connect(kubeconfig=str(path)) as cluster:
            with pytest.raises(errors.Unreachable):
                await cluster.get("/version")
        gc.collect()  # a ResourceWarning would fail the test


class TestCredentials:
    async def test_in_line_leave_no_file_behind(self, tmp_path, temporary):
        cert, key = certificate()
        user = {"client-certificate-data": text(cert), "client-key-data": text(key)}
        authority = {"server": "https://s", "certificate-authority-data": text(cert)}
        path = write_kubeconfig(tmp_path / "k", user=user, cluster=authority)

        async with connect(kubeconfig=str(path)):
            assert list(temporary.iterdir()) == []

    async def test_in_line_that_cannot_be_used_leave_no_file_behind(self, tmp_path, temporary):
        (cert, _), (_, key) = certificate(), certificate()
        user = {"client-certificate-data": text(cert), "client-key-data": text(key)}
        path = write_kubeconfig(tmp_path / "k", user=user)

        with pytest.raises(
            ConfigError, match=r"context here: the credentials cannot be used: .*match"
        ):
            async with connect(kubeconfig=str(path)):
                pass

        assert list(temporary.iterdir()) == []

    async def test_may_be_files(self, tmp_path):
        cert, key = certificate()
        for name, pem in {"cert": cert, "key": key, "ca": cert}.items():
            (tmp_path / name).write_bytes(pem)
        path = write_kubeconfig(
            tmp_path / "k",
            user={"client-certificate": "cert", "client-key": "key"},
            cluster={"server": "https://s", "certificate-authority": "ca"},
        )

        async with connect(kubeconfig=str(path)) as cluster:
            assert cluster.server == "https://s"
        assert (tmp_path / "key").exists()

    async def test_without_an_authority_trust_whom_the_machine_trusts(self, tmp_path, monkeypatch):
        loaded: list[ssl.SSLContext] = []

        def load(context: ssl.SSLContext) -> None:
            loaded.append(context)

        monkeypatch.setattr(ssl.SSLContext, "load_default_certs", load)
        cert, key = certificate()
        user = {"client-certificate-data": text(cert), "client-key-data": text(key)}
        alone = write_kubeconfig(tmp_path / "alone", user=user)
        authority = {"server": "https://s", "certificate-authority-data": text(cert)}
        both = write_kubeconfig(tmp_path / "both", user=user, cluster=authority)

        async with connect(kubeconfig=str(both)):
            assert loaded == []
        async with connect(kubeconfig=str(alone)):
            assert len(set(loaded)) == 2

    async def test_may_be_a_token_file_that_is_read_again(self, server, connected, tmp_path, clock):
        token = tmp_path / "token"
        token.write_text("a")
        path = write_kubeconfig(tmp_path / "k", user={"tokenFile": str(token), "token": "ignored"})
        server.answers = [reply()]

        async with connected(kubeconfig=str(path)) as cluster:
            await cluster.get("/version")
            token.write_text("b")
            await cluster.get("/version")
            clock.now += 60
            await cluster.get("/version")

        assert server.tokens == ["Bearer a", "Bearer a", "Bearer b"]

    async def test_may_be_the_pods_own(self, server, connected, tmp_path, monkeypatch):
        (tmp_path / "token").write_text("pod\n")
        (tmp_path / "namespace").write_text("of-the-pod")
        monkeypatch.setattr(kubeconfigs, "SERVICE_ACCOUNT", anyio.Path(tmp_path))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
        server.answers = [reply()]

        async with connected(kubeconfig=None) as cluster:
            await cluster.get("/version")
            assert (cluster.server, cluster.namespace) == ("https://10.0.0.1:443", "of-the-pod")

        assert server.tokens == ["Bearer pod"]

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (
                {"user": {"username": "a", "password": "b"}},
                "username/password authentication was removed",
            ),
            ({"user": {"auth-provider": {"name": "gcp"}}}, "was deprecated"),
            (
                {"user": {"client-key-data": "AAAA", "client-certificate-data": "AAAA"}},
                "SSL",
            ),
            ({"cluster": {"proxy-url": "socks5://localhost:1"}}, "cannot be used"),
            ({"cluster": {"proxy-url": "nonsense"}}, "cannot be used"),
        ],
    )
    async def test_that_cannot_be_used_are_told(self, tmp_path, wrong, said):
        path = write_kubeconfig(tmp_path / "k", **wrong)

        with pytest.raises(ConfigError, match=said) as caught:
            async with connect(kubeconfig=str(path)):
                pass

        assert "\n" not in str(caught.value)


class TestTransport:
    """Which one it is; tests/kube/test_transport.py has what ours does."""

    @pytest.fixture
    def httpxs(self, monkeypatch) -> list[dict[str, Any]]:
        """What httpx's own transports were made with."""
        made: list[dict[str, Any]] = []
        original = httpx.AsyncHTTPTransport

        def recorded(**given: Any) -> httpx.AsyncHTTPTransport:
            made.append(given)
            return original(**given)

        monkeypatch.setattr(httpx, "AsyncHTTPTransport", recorded)
        return made

    @pytest.fixture
    def at_once(self, monkeypatch) -> list[int]:
        """How many requests at once each session was made for."""
        made: list[int] = []
        original = client.Session

        def recorded(*args: Any, concurrency: int, **given: Any) -> client.Session:
            made.append(concurrency)
            return original(*args, concurrency=concurrency, **given)

        monkeypatch.setattr(client, "Session", recorded)
        return made

    async def test_says_how_many_requests_at_once_are_good(self, tmp_path, kubeconfig, at_once):
        proxied = write_kubeconfig(tmp_path / "k", cluster={"proxy-url": "http://proxy:3128"})
        for path, given in ((kubeconfig, None), (kubeconfig, 1), (proxied, None)):
            async with connect(kubeconfig=str(path), concurrency=given):
                pass

        assert at_once == [32, 1, 8]

    async def test_is_ours_without_the_environments_proxies(self, monkeypatch, kubeconfig, httpxs):
        monkeypatch.setenv("HTTP_PROXY", "http://proxy")
        async with connect(kubeconfig=str(kubeconfig)):
            pass

        assert httpxs == []

    async def test_is_that_of_httpx_for_the_proxy_of_a_kubeconfig(self, tmp_path, httpxs):
        path = write_kubeconfig(tmp_path / "k", cluster={"proxy-url": "http://proxy:3128"})
        async with connect(kubeconfig=str(path)):
            pass

        assert [(g["http2"], g["trust_env"], g["proxy"]) for g in httpxs] == [
            (False, False, "http://proxy:3128")
        ] * 2

    @pytest.mark.parametrize(
        "request_",
        [
            Request("GET", "/version"),
            Request("GET", "/openapi/v3?hash=1&x=a b"),
            Request("GET", "/api/v1/pods", {"labelSelector": "a in (b, ü)", "watch": "1"}),
            Request("GET", "/api/v1/namespaces/a%2Fb/pods/é", accept=METADATA),
            Request("PATCH", "/api/v1/x", {"force": "true"}, b"{}", APPLY),
        ],
        ids=str,
    )
    async def test_sends_the_same_bytes_as_httpx_would(self, request_):
        theirs, sent = list[httpx.Request](), list[HttpRequest]()

        def answer(request: httpx.Request) -> httpx.Response:
            theirs.append(request)
            return httpx.Response(200)

        class Kept(HttpxTransport):
            """Keeps what our own transport would send."""

            async def send(self, request: HttpRequest) -> Any:
                sent.append(request)
                return await super().send(request)

        url, name = httpx.URL("https://gate:8443/k8s/c-1/"), "the.name"
        transport = Kept(url, httpx.MockTransport(answer))
        channel = Channel(transport, url, Bearer("secret", now=lambda: 0.0), "hedgerow/1", name)
        async with channel.exchange(request_, read=7.0) as exchange:
            assert exchange.code == 200

        [one], [other] = sent, theirs
        assert encoded(one) == encoded(
            HttpRequest(
                other.method, other.url.raw_path, other.headers.raw, await other.aread(), 7.0
            )
        )
        assert other.extensions["timeout"]["read"] == 7.0
        assert other.extensions.get("sni_hostname") == name


class TestWritten:
    """Credentials that are written in the kubeconfig."""

    async def test_an_authority_may_have_text_of_any_language_around_it(self, tmp_path):
        authority, _ = certificate()
        file = tmp_path / "ca.crt"
        file.write_bytes("# Főtanúsítvány\n".encode() + authority)
        path = write_kubeconfig(tmp_path / "k", cluster={"certificate-authority": str(file)})

        async with connect(kubeconfig=str(path)) as cluster:
            assert cluster.server == "https://server"

    @pytest.mark.parametrize("name", ["certificate-authority", "client-certificate", "client-key"])
    async def test_an_empty_file_is_told_and_trusts_nobody_else(self, tmp_path, name):
        pair = dict(zip(("client-certificate", "client-key"), certificate(), strict=True))
        files = {key: tmp_path / key for key in ("certificate-authority", *pair)}
        for key, file in files.items():
            file.write_bytes(b"" if key == name else pair.get(key) or certificate()[0])
        user = {key: str(files[key]) for key in pair}
        cluster = {"certificate-authority": str(files["certificate-authority"])}
        path = write_kubeconfig(tmp_path / "k", user=user, cluster=cluster)

        with pytest.raises(ConfigError, match="cannot be used"):
            async with connect(kubeconfig=str(path)):
                pass

    async def test_a_key_in_a_file_is_copied_nowhere(self, tmp_path, monkeypatch):
        pair = dict(zip(("client-certificate", "client-key"), certificate(), strict=True))
        for key, content in pair.items():
            (tmp_path / key).write_bytes(content)
        user = {key: str(tmp_path / key) for key in pair}
        path = write_kubeconfig(tmp_path / "k", user=user)

        def refuse(**_: Any) -> Any:
            raise AssertionError("written anew")

        monkeypatch.setattr(credentials, "NamedTemporaryFile", refuse)
        async with connect(kubeconfig=str(path)):
            pass
