"""Parting: from when on answers are the last on their connections, and for how long there are."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hedgerow.serving.httpserver.server import SECONDS, Parting
from hedgerow_testing.virtual import BACKEND
from serving.serving import served

pytestmark = pytest.mark.anyio


async def here(_: Request) -> Response:
    return PlainTextResponse("here")


def app(asked: anyio.Event) -> Parting:
    return Parting(Starlette(routes=[Route("/", here)]), asked)


class TestParting:
    async def test_a_connection_is_kept_until_the_process_is_asked_to_stop(self) -> None:
        asked = anyio.Event()
        async with served(app(asked)) as url, httpx.AsyncClient() as client:
            before = await client.get(url)
            asked.set()
            last = await client.get(url)

        assert before.headers.get("Connection") != "close"
        assert (last.text, last.headers["Connection"]) == ("here", "close")

    async def test_who_asks_all_the_time_is_never_cut_off(self) -> None:
        asked, answers = anyio.Event(), list[str]()

        async def ask(url: str) -> None:
            async with httpx.AsyncClient() as client:
                while (answer := await client.get(url)).headers.get("Connection") != "close":
                    answers.append(answer.text)

        async with served(app(asked)) as url, anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask, url)
            while len(answers) < 20:
                await anyio.lowlevel.checkpoint()
            asked.set()

        assert set(answers) == {"here"}


class TestLength:
    @pytest.fixture
    def anyio_backend(self) -> object:
        return BACKEND

    async def test_it_lasts_from_when_the_process_was_asked_to_stop(self) -> None:
        asked, begun = anyio.Event(), anyio.current_time()

        async def ask() -> None:
            await anyio.sleep(5)
            asked.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await app(asked).over()

        assert anyio.current_time() - begun == pytest.approx(5 + SECONDS)
