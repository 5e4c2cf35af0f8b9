"""Fetch: one file over HTTPS, bounded in size and silence, with its SHA-256."""

import hashlib
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import httpx

LARGEST = 256 << 20
"""Bytes of a file; the largest today is kube-apiserver with some 105 MB."""

_LARGEST_TEXT = 4 << 20
_CONNECT, _SILENCE = 3.0, 15.0
_REDIRECTS = 5
_CHUNK = 1 << 20


class FetchError(Exception):
    """Why a file could not be had, in one line."""


class UnreachableError(FetchError):
    """A host does not answer at all; it is not worth another try."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"{host} cannot be reached ({reason})")
        self.host, self.reason = host, reason


class BrokenOffError(FetchError):
    """An answer that began and did not come to its end; it may do so the next time."""


def session() -> httpx.AsyncClient:
    """Return a client with the machine's proxies and certificate authorities, as Go has them.

    Raises UnreachableError where the environment names a proxy that it cannot use.
    """
    try:
        return httpx.AsyncClient(
            verify=ssl.create_default_context(),
            timeout=httpx.Timeout(_SILENCE, connect=_CONNECT, pool=None),
            # The digests are of the files, not of what a server would make of them.
            headers={"User-Agent": "hedgerow-sandbox", "Accept-Encoding": "identity"},
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise UnreachableError("the proxy", str(error)) from error


async def text(client: httpx.AsyncClient, url: str) -> bytes:
    """Return a short answer. Raises FetchError."""
    content = bytearray()
    async with _answer(client, url) as response:
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > _LARGEST_TEXT:
                raise FetchError(f"{url} is larger than {_LARGEST_TEXT >> 20} MiB")
    return bytes(content)


async def file(
    client: httpx.AsyncClient, url: str, path: Path, came: Callable[[int, int], None]
) -> str:
    """Write a file to `path` and return its SHA-256 in hexadecimal digits. Raises FetchError.

    `came` is called with the bytes that came so far, 0 at first, and how many there are to be,
    0 if the server does not say.
    """
    digest, length = hashlib.sha256(), 0
    async with _answer(client, url) as response, await anyio.open_file(path, "wb") as target:
        size = int(response.headers.get("Content-Length", 0))
        _bound(url, size)
        came(0, size)
        async for chunk in response.aiter_raw(_CHUNK):
            length += len(chunk)
            _bound(url, length)
            await target.write(chunk)
            await anyio.to_thread.run_sync(digest.update, chunk)
            came(length, size)
    return digest.hexdigest()


def host(url: str) -> str:
    """Return the host that an address leads to, with its port where that is not the usual one."""
    return httpx.URL(url).netloc.decode()


def _bound(url: str, length: int) -> None:
    if length > LARGEST:
        raise FetchError(f"{url} is larger than {LARGEST >> 20} MiB")


@asynccontextmanager
async def _answer(client: httpx.AsyncClient, url: str) -> AsyncGenerator[httpx.Response]:
    """Return the answer, redirects followed; whatever goes wrong until its end is a FetchError."""
    with _explained():
        request = client.build_request("GET", url)
        for _ in range(_REDIRECTS + 1):
            response = await client.send(request, stream=True)
            try:
                if response.next_request is None:
                    _check(url, response)
                    yield response
                    return
                request = response.next_request
            finally:
                await response.aclose()
            # Never away from https.
            if request.url.scheme not in {"https", httpx.URL(url).scheme}:
                raise FetchError(f"{url} leads to {request.url}, which is not https")
        raise FetchError(f"{url} is redirected more than {_REDIRECTS} times")


def _check(url: str, response: httpx.Response) -> None:
    if response.is_success:
        return
    told = f"{url} answers {response.status_code} {response.reason_phrase}".rstrip()
    raise BrokenOffError(told) if response.is_server_error else FetchError(told)


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        reason = str(error) or f"no connection in {_CONNECT:.0f} s"
        raise UnreachableError(host(str(error.request.url)), reason) from error
    except httpx.TimeoutException as error:
        where = host(str(error.request.url))
        raise BrokenOffError(f"{where} was silent for {_SILENCE:.0f} s") from error
    except httpx.TransportError as error:
        where = host(str(error.request.url))
        raise BrokenOffError(f"the answer of {where} broke off ({error})") from error
