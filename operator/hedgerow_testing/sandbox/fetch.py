"""Fetch: downloads one file over HTTPS, with limits for size and silence, and its SHA-256."""

import hashlib
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import httpx

from hedgerow.files import opened

LARGEST = 256 << 20
"""The most bytes of a file; the largest today is kube-apiserver with about 105 MB."""

LARGEST_TEXT = 4 << 20
_CONNECT, SILENCE = 3.0, 15.0
_REDIRECTS = 5
_CHUNK = 1 << 20


class FetchError(Exception):
    """Why a file could not be downloaded, in one line."""


class UnreachableError(FetchError):
    """A host does not answer at all; do not try again."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"{host} cannot be reached ({reason})")
        self.host, self.reason = host, reason


class BrokenOffError(FetchError):
    """An answer began but was cut off; another try may succeed."""


def session() -> httpx.AsyncClient:
    """Return a client with the machine's proxies and certificate authorities, as in Go.

    Raises UnreachableError if the environment names a proxy that cannot be used.
    """
    try:
        return httpx.AsyncClient(
            verify=ssl.create_default_context(),
            timeout=httpx.Timeout(SILENCE, connect=_CONNECT, pool=None),
            # The digests are of the files themselves, not of a compressed transfer.
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
            if len(content) > LARGEST_TEXT:
                raise FetchError(f"{url} is larger than {LARGEST_TEXT >> 20} MiB")
    return bytes(content)


async def file(
    client: httpx.AsyncClient, url: str, path: Path, came: Callable[[int, int], None]
) -> str:
    """Write a file to `path` and return its SHA-256 in hexadecimal digits. Raises FetchError.

    `came` is called with the bytes received so far, at first 0, and the total size, 0 if it is
    unknown.
    """
    digest, length = hashlib.sha256(), 0
    async with _answer(client, url) as response:
        size = int(response.headers.get("Content-Length", 0))
        _bound(url, size)
        came(0, size)
        # anyio before 4.16 leaves a file open if it is cancelled.
        with opened(path, "wb") as target:
            async for chunk in response.aiter_raw(_CHUNK):
                length += len(chunk)
                _bound(url, length)
                await anyio.to_thread.run_sync(target.write, chunk)
                await anyio.to_thread.run_sync(digest.update, chunk)
                came(length, size)
    return digest.hexdigest()


def host(url: str) -> str:
    """Return the host of a URL, with its port if that is not the default."""
    return httpx.URL(url).netloc.decode()


def _bound(url: str, length: int) -> None:
    if length > LARGEST:
        raise FetchError(f"{url} is larger than {LARGEST >> 20} MiB")


@asynccontextmanager
async def _answer(client: httpx.AsyncClient, url: str) -> AsyncGenerator[httpx.Response]:
    """Yield the answer after redirects; every error until its end becomes a FetchError."""
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
            # Never follow a redirect away from https.
            if request.url.scheme not in {"https", httpx.URL(url).scheme}:
                raise FetchError(f"{url} leads to {request.url}, which is not https")
        raise FetchError(f"{url} is redirected more than {_REDIRECTS} times")


def _check(url: str, response: httpx.Response) -> None:
    if response.is_success:
        return
    message = f"{url} answers {response.status_code} {response.reason_phrase}".rstrip()
    raise BrokenOffError(message) if response.is_server_error else FetchError(message)


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        reason = str(error) or f"no connection in {_CONNECT:.0f} s"
        raise UnreachableError(host(str(error.request.url)), reason) from error
    except httpx.TimeoutException as error:
        where = host(str(error.request.url))
        raise BrokenOffError(f"{where} was silent for {SILENCE:.0f} s") from error
    except httpx.TransportError as error:
        where = host(str(error.request.url))
        raise BrokenOffError(f"the answer of {where} broke off ({error})") from error
