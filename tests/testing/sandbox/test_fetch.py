"""Fetching one file, from a server on this machine and from one that is made up."""

import hashlib
from pathlib import Path

import httpx
import pytest

from hedgerow_testing.sandbox import fetch
from hedgerow_testing.sandbox.certificates import SandboxAuthority
from hedgerow_testing.sandbox.fetch import BrokenOffError, FetchError, UnreachableError
from hedgerow_testing.sandbox.pins import pick
from support.programs.projects import CUT, SILENT, Projects, nowhere

pytestmark = pytest.mark.anyio

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def projects():
    with Projects(pick("")) as made:
        yield made


def ignored(_length: int, _size: int) -> None:
    """What came is of no interest."""


class TestFile:
    @pytest.mark.parametrize("binary", ["kubectl", "kwok"], ids=["direct", "redirected"])
    async def test_it_is_written_and_its_digest_told(self, projects, tmp_path, binary) -> None:
        asset, came = projects.asset(binary), []
        async with fetch.session() as client:
            digest = await fetch.file(
                client, asset.url, tmp_path / "it", lambda *numbers: came.append(numbers)
            )

        content = (tmp_path / "it").read_bytes()
        assert digest == hashlib.sha256(content).hexdigest() == projects.digest(binary)
        assert came == [(0, len(content)), (len(content), len(content))]

    @pytest.mark.parametrize(
        ("wish", "kind", "told"),
        [
            (CUT, BrokenOffError, "the answer of 127.0.0.1:[0-9]+ broke off"),
            (SILENT, BrokenOffError, "was silent for"),
            (500, BrokenOffError, "/kubectl answers 500"),
            (403, FetchError, "/kubectl answers 403 Forbidden"),
            (304, FetchError, "/kubectl answers 304"),
        ],
    )
    async def test_what_goes_wrong_is_one_line(
        self, projects, tmp_path, wish, kind, told, monkeypatch
    ) -> None:
        monkeypatch.setattr(fetch, "SILENCE", 0.5 if wish == SILENT else 15.0)
        asset = projects.asset("kubectl")
        projects.wish(asset.url, wish)

        async with fetch.session() as client:
            with pytest.raises(kind, match=told) as raised:
                await fetch.file(client, asset.url, tmp_path / "it", ignored)

        assert type(raised.value) is kind

    async def test_what_is_too_large_is_not_taken(self, projects, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(fetch, "LARGEST", 1000)

        async with fetch.session() as client:
            with pytest.raises(FetchError, match="is larger than"):
                await fetch.file(client, projects.asset("kubectl").url, tmp_path / "it", ignored)

        assert not (tmp_path / "it").exists()

    async def test_what_grows_too_large_without_saying_so_is_not_taken(
        self, tmp_path, monkeypatch
    ) -> None:
        monkeypatch.setattr(fetch, "LARGEST", 1000)

        async def endless():
            while True:
                yield b"x" * 600

        async with made_up(lambda _: httpx.Response(200, content=endless())) as client:
            with pytest.raises(FetchError, match="is larger than"):
                await fetch.file(client, "https://a/b", tmp_path / "it", ignored)

    async def test_a_host_that_is_not_there_is_unreachable(self, tmp_path) -> None:
        url = f"{nowhere().github}/x"

        async with fetch.session() as client:
            with pytest.raises(UnreachableError) as raised:
                await fetch.file(client, url, tmp_path / "it", ignored)

        assert raised.value.host == fetch.host(url)


class TestText:
    async def test_a_short_answer_is_given(self, projects) -> None:
        async with fetch.session() as client:
            content = await fetch.text(client, projects.asset("kubectl").digests)

        assert content.decode() == projects.digest("kubectl")

    async def test_a_long_one_is_not(self, projects, monkeypatch) -> None:
        monkeypatch.setattr(fetch, "LARGEST_TEXT", 10)

        async with fetch.session() as client:
            with pytest.raises(FetchError, match="is larger than"):
                await fetch.text(client, projects.asset("kubectl").digests)


class TestTrust:
    @pytest.fixture
    def secured(self, projects, tmp_path: Path):
        serving = SandboxAuthority.create(tmp_path, "ca").serving(tmp_path, "serving")
        with Projects(projects.release, tls=serving) as made:
            yield made

    async def test_the_machine_s_authorities_are_trusted(
        self, secured, tmp_path, monkeypatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))

        async with fetch.session() as client:
            digest = await fetch.file(client, secured.asset("kwok").url, tmp_path / "it", ignored)

        assert digest == secured.digest("kwok")

    async def test_a_host_with_a_certificate_of_any_other_is_not_asked(self, secured) -> None:
        async with fetch.session() as client:
            with pytest.raises(UnreachableError, match="certificate verify failed"):
                await fetch.text(client, secured.asset("kubectl").digests)

        assert secured.asked == []


def made_up(answer) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def pieces(*chunks: bytes):
    for chunk in chunks:
        yield chunk


def leading(where: str):
    """Return a server that redirects to one place, which answers."""

    def answer(request: httpx.Request) -> httpx.Response:
        if str(request.url) == where:
            return httpx.Response(200, content=pieces(b"there"))
        return httpx.Response(302, headers={"Location": where})

    return answer


class TestRedirects:
    async def test_they_lead_to_other_hosts(self) -> None:
        async with made_up(leading("https://objects.example/x?token=1")) as client:
            assert await fetch.text(client, "https://github.com/x") == b"there"

    @pytest.mark.parametrize("where", ["http://objects.example/x", "ftp://objects.example/x"])
    async def test_they_do_not_lead_away_from_https(self, where) -> None:
        async with made_up(leading(where)) as client:
            with pytest.raises(FetchError, match=r"objects\.example/x, which is not https"):
                await fetch.text(client, "https://github.com/x")

    async def test_they_end(self) -> None:
        def around(request: httpx.Request) -> httpx.Response:
            return httpx.Response(302, headers={"Location": f"{request.url}x"})

        async with made_up(around) as client:
            with pytest.raises(FetchError, match="redirected more than 5 times"):
                await fetch.text(client, "https://github.com/x")


class TestUnreachable:
    async def test_a_host_that_never_accepts_is_told_as_such(self) -> None:
        def silent(request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectTimeout("", request=request)

        async with made_up(silent) as client:
            with pytest.raises(UnreachableError, match=r"^dl\.k8s\.io .* \(no connection in 3 s\)"):
                await fetch.text(client, "https://dl.k8s.io/x")

    @pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://x"])
    def test_a_proxy_that_cannot_be_used_is_told_as_such(self, monkeypatch, proxy) -> None:
        monkeypatch.setenv("ALL_PROXY", proxy)

        with pytest.raises(UnreachableError, match="the proxy cannot be reached"):
            fetch.session()


def test_connecting_and_silence_have_limits(tmp_path: Path) -> None:
    timeout = fetch.session().timeout

    assert (timeout.connect, timeout.read, timeout.write) == (3.0, 15.0, 15.0)
