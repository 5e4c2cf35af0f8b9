"""Fakes: an API server made of answers, a body in pieces, and time that passes by sleeping."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import yaml

from hedgerow.kube.retry import RetryClock

if TYPE_CHECKING:
    from pathlib import Path

Answer = httpx.Response | Exception | Callable[[httpx.Request], Awaitable[httpx.Response]]


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds
        await anyio.lowlevel.checkpoint()

    @property
    def timing(self) -> RetryClock:
        """The dice always show the shortest wait: half of the ceiling."""
        return RetryClock(
            now=lambda: self.now, sleep=self.sleep, draw=lambda: 0.0, elapsed=lambda: self.now
        )


class Server:
    """Answers each request with the next of `answers`; the last one stays."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[httpx.Request] = []

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
