"""Api: a sandbox's own short requests to the servers that it started."""

import ssl
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx

from hedgerow.encoding import decode, encode
from hedgerow_testing.sandbox.errors import SandboxError

TIMEOUT = 5.0
_APPLY = "application/apply-patch+yaml"
_FIELD_MANAGER = "hedgerow-sandbox"


class SandboxApi:
    """One server, one identity; every request has a timeout, and none is repeated here.

    The requests run in a thread. httpx's asynchronous client leaks the socket if a TLS handshake is
    cancelled, and here servers often do not answer yet.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    async def answers(self, url: str) -> bool:
        """Return whether a GET succeeds; False if no server listens."""
        response = await anyio.to_thread.run_sync(self._get, url)
        return response is not None and response.is_success

    async def read_object(self, url: str) -> dict[str, Any] | None:
        """Return an object, or None if the server does not return it (yet)."""
        response = await anyio.to_thread.run_sync(self._get, url)
        return decode(response.content) if response and response.is_success else None

    async def apply(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Apply an object, unforced, and return it. Raises SandboxError if it is refused."""
        return await self._send("PATCH", f"{url}?fieldManager={_FIELD_MANAGER}", body, _APPLY)

    async def request(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post a virtual object, which is not stored; return the answer. Raises SandboxError."""
        return await self._send("POST", url, body, "application/json")

    async def _send(
        self, method: str, url: str, body: Mapping[str, Any], content_type: str
    ) -> dict[str, Any]:
        headers = {"Content-Type": content_type}
        call = partial(self._client.request, method, url, content=encode(body), headers=headers)
        try:
            response = await anyio.to_thread.run_sync(call)
        except httpx.HTTPError as error:
            raise SandboxError(f"{url}: {error}", "is the sandbox up?") from error
        answer = decode(response.content)
        if response.is_error:
            raise SandboxError(f"{url}: {answer.get('message')}", "correct the request")
        return answer

    def _get(self, url: str) -> httpx.Response | None:
        # Older versions of CPython do not close a socket that is reset right before its handshake,
        # as by a server that is starting (python/cpython#113280): the collector closes it.
        with warnings.catch_warnings(category=ResourceWarning, action="ignore"):
            try:
                return self._client.get(url)
            except httpx.HTTPError:
                return None


@contextmanager
def connect(
    *, authority: Path, client: tuple[Path, Path] | None = None, token: str = "", base: str = ""
) -> Generator[SandboxApi]:
    """Yield a client that trusts only this authority and uses this client certificate or token."""
    trust = ssl.create_default_context(cafile=authority)
    if client:
        trust.load_cert_chain(*client)
    headers = {"User-Agent": "hedgerow-sandbox"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    with httpx.Client(
        base_url=base, verify=trust, headers=headers, timeout=TIMEOUT, trust_env=False
    ) as session:
        yield SandboxApi(session)
