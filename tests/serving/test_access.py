"""Access: who is admitted, for how long a verdict stands, and what the API server is asked."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
import structlog

from hedgerow.kube import errors
from hedgerow.serving import access
from hedgerow.serving.access import ADMITTED, REFUSED, Access, Verdict
from runtime.virtual import BACKEND, VirtualClock

pytestmark = pytest.mark.anyio

USERS = {"good": "prometheus", "poor": "somebody"}


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


class Judge:
    """An API server that knows two tokens, one of which has the right."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.trouble: errors.KubeError | None = None
        self.busy = self.most = 0

    async def review(self, kind: str, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.asked.append(kind)
        self.busy += 1
        self.most = max(self.most, self.busy)
        await anyio.sleep(0.1)
        self.busy -= 1
        if self.trouble:
            raise self.trouble
        if kind == "TokenReview":
            user = USERS.get(spec["token"])
            return {"authenticated": user is not None, "user": {"username": user or ""}}
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"allowed": spec["user"] == "prometheus"}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def gate(judge: Judge) -> Access:
    return Access(cast("Any", judge), VirtualClock())


class TestVerdicts:
    async def test_a_user_with_the_right_is_admitted(self, gate: Access, judge: Judge) -> None:
        assert await gate.judge("Bearer good") is Verdict.ADMITTED
        assert judge.asked == ["TokenReview", "SubjectAccessReview"]

    async def test_the_scheme_is_written_in_any_case(self, gate: Access) -> None:
        assert await gate.judge("bEARER  good ") is Verdict.ADMITTED

    async def test_a_user_without_the_right_is_forbidden(self, gate: Access) -> None:
        assert await gate.judge("Bearer poor") is Verdict.FORBIDDEN

    async def test_a_token_of_nobody_is_not_known(self, gate: Access, judge: Judge) -> None:
        assert await gate.judge("Bearer bad") is Verdict.UNKNOWN
        assert judge.asked == ["TokenReview"]

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "good", "Basic good", "Bearer gö",
                                        "Bearer g\x00"])  # fmt: skip
    async def test_what_is_no_token_is_asked_about_nobody(self, gate, judge, header) -> None:
        assert await gate.judge(header) is Verdict.ANONYMOUS
        assert judge.asked == []


class TestMemory:
    @pytest.mark.parametrize(
        ("token", "seconds"), [("good", ADMITTED), ("poor", REFUSED), ("bad", REFUSED)]
    )
    async def test_a_verdict_stands_for_a_while(self, gate, judge, token, seconds) -> None:
        await gate.judge(f"Bearer {token}")
        before = len(judge.asked)
        await anyio.sleep(seconds - 1)
        await gate.judge(f"Bearer {token}")
        assert len(judge.asked) == before

        await anyio.sleep(2)
        await gate.judge(f"Bearer {token}")
        assert len(judge.asked) == 2 * before

    async def test_many_who_come_at_once_with_one_token_are_one_question(self, gate, judge) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(gate.judge, "Bearer good")

        assert judge.asked == ["TokenReview", "SubjectAccessReview"]

    async def test_made_up_tokens_take_one_request_at_a_time(self, gate, judge) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(gate.judge, f"Bearer {number}")

        assert (len(judge.asked), judge.most) == (20, 1)

    async def test_what_is_kept_is_bounded_and_the_oldest_goes(
        self, gate, judge, monkeypatch
    ) -> None:
        monkeypatch.setattr(access, "REMEMBERED", 2)
        for token in ("good", "a", "good", "b", "good"):
            await gate.judge(f"Bearer {token}")

        assert len(gate._known) == 2
        assert judge.asked.count("TokenReview") == 3

    async def test_no_token_is_kept(self, gate: Access) -> None:
        await gate.judge("Bearer good")

        assert "good" not in repr(vars(gate))


class TestTrouble:
    async def test_without_the_api_server_nothing_is_decided_nor_kept(self, gate, judge) -> None:
        judge.trouble = errors.Unreachable("away", sent=False)
        assert await gate.judge("Bearer good") is Verdict.UNDECIDED

        judge.trouble = None
        assert await gate.judge("Bearer good") is Verdict.ADMITTED

    async def test_it_is_told_once(self, gate: Access, judge: Judge) -> None:
        with structlog.testing.capture_logs() as logs:
            for trouble in ("away", "away", None, "away"):
                judge.trouble = errors.Unreachable(trouble, sent=False) if trouble else None
                await gate.judge("Bearer bad")
                await anyio.sleep(REFUSED)

        assert [line["event"] for line in logs] == ["access is not decided"] * 2
        assert "bad" not in str(logs)
