"""Fakes: answers byte by byte, for tests of the transport and the session alone, and a body."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import yaml

if TYPE_CHECKING:
    from pathlib import Path

Answer = httpx.Response | Exception | Callable[[httpx.Request], Awaitable[httpx.Response]]


class Server:
    """Answers each request with the next of `answers`; the last one stays."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[httpx.Request] = []
        self.transports: list[Any] = []

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        await anyio.lowlevel.checkpoint()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return answer
        return await answer(request)

    @property
    def tokens(self) -> list[str]:
        return [request.headers.get("Authorization", "") for request in self.requests]


class Chunks(httpx.AsyncByteStream):
    """A body that comes piece by piece; an exception in it is raised."""

    def __init__(self, pieces: Iterable[bytes | Exception]) -> None:
        self.pieces = list(pieces)
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await anyio.lowlevel.checkpoint()
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.closed = True


def write_kubeconfig(
    path: Path, *, user: Any = None, cluster: Any = None, context: Any = None
) -> Path:
    """Write a kubeconfig of one context `here`; what is given goes over the plain one."""
    config = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://server", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "first"} if user is None else user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
    }
    path.write_text(yaml.safe_dump(config), "utf-8")
    return path


def reply(code: int = 200, body: Any = None, **headers: str) -> httpx.Response:
    """Return an answer with a JSON body; without one, that of a small object."""
    found = {"metadata": {"name": "x", "uid": "u"}} if body is None else body
    return httpx.Response(code, json=found, headers=headers)


def status(code: int, reason: str = "", **headers: str) -> httpx.Response:
    """Return a refusal with a Status body."""
    return reply(code, {"kind": "Status", "code": code, "reason": reason}, **headers)
