"""A start in a pod without API server: it waits, says why it is not ready, and goes on."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.errors import OneLineError
from hedgerow.kube import errors
from hedgerow.process.api_server import LONGEST, ApiServerCheck
from hedgerow_testing.virtual import VirtualClock

pytestmark = pytest.mark.anyio

AWAY = errors.Unreachable("connection refused", sent=False)


class Asking:
    """The question of a start: when it was asked, and the error that it ends in, if any."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[float] = []

    async def __call__(self) -> str:
        self.asked.append(anyio.current_time())
        if self.error:
            raise self.error
        return "v1"


@pytest.fixture
def check() -> ApiServerCheck:
    return ApiServerCheck(VirtualClock())


async def test_the_first_answer_is_returned_and_nothing_is_said(check):
    with capture_logs() as logs:
        assert check.check() == "the API server has not answered yet"
        assert await check.answer(Asking()) == "v1"

    assert (check.check(), logs) == ("", [])


@pytest.mark.parametrize(
    "error",
    [
        AWAY,
        errors.Unavailable("starting", code=503),
        errors.Throttled("later", code=429),
        errors.Dropped("cut"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_passes_is_waited_for_with_growing_pauses_and_said_once(check, error):
    ask = Asking(error)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check.answer, ask)
            await anyio.sleep(600)
            assert check.check() == f"the API server does not answer: {error}"
            assert 600 / LONGEST <= len(ask.asked) <= 600 / LONGEST * 2 + 5
            ask.error = None
            await anyio.sleep(LONGEST)
            assert check.check() == ""

    assert [line["event"] for line in logs] == [
        "waiting for the API server",
        "the API server answers",
    ]
    pauses = [b - a for a, b in zip(ask.asked, ask.asked[1:], strict=False)]
    assert pauses[0] < pauses[-1] <= LONGEST


@pytest.mark.parametrize("after", [60, 3600])
async def test_it_is_not_asked_again_before_it_said_within_bounds(check, after):
    ask = Asking(errors.Throttled("later", code=429, after=after))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check.answer, ask)
        await anyio.sleep(59)
        assert len(ask.asked) == 1
        await anyio.sleep(20)
        assert len(ask.asked) == 2
        tasks.cancel_scope.cancel()


async def test_another_reason_is_said_anew(check):
    ask = Asking(AWAY)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check.answer, ask)
            await anyio.sleep(30)
            ask.error = errors.Unavailable("starting", code=503)
            await anyio.sleep(30)
            tasks.cancel_scope.cancel()

    assert [line["error"] for line in logs] == ["connection refused", "starting"]


@pytest.mark.parametrize(
    "error",
    [
        errors.Untrusted("bad certificate", sent=False),
        errors.Unauthenticated("who?", code=401),
        errors.Forbidden("you may not", code=403),
        errors.ConfigError("none"),
        OneLineError("another is at work"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_does_not_pass_by_itself_is_raised(check, error):
    with pytest.raises(type(error)):
        await check.answer(Asking(error))
