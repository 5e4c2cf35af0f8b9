"""Health: what probes are told."""

from __future__ import annotations

import httpx
import pytest

from hedgerow.serving.health import Health, health_app

pytestmark = pytest.mark.anyio


def sick() -> str:
    return "bluegreen: 1 of 3 caches\nis not filled"


def broken() -> str:
    raise RuntimeError("a secret")


def fine() -> str:
    return ""


async def ask(health: Health, path: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(app=health_app(health))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return await client.request(method, path)


def health(*, ready: bool = True) -> Health:
    made = Health()
    made.live.add("loop", fine)
    made.ready.add("caches", fine if ready else sick)
    made.ready.add("webhooks", fine)
    return made


NOT_READY = (
    "[-]caches failed: bluegreen: 1 of 3 caches is not filled\n"
    "[+]webhooks ok\n"
    "readyz check failed\n"
)


class TestAnswers:
    @pytest.mark.parametrize("ready", [True, False])
    @pytest.mark.parametrize(
        ("path", "told"),
        [
            ("/healthz", "ok"),
            ("/livez", "ok"),
            ("/healthz?verbose", "[+]loop ok\nhealthz check passed\n"),
        ],
    )
    async def test_what_passes_is_told_in_two_letters_or_check_by_check(
        self, path, told, ready
    ) -> None:
        answer = await ask(health(ready=ready), path)

        assert (answer.status_code, answer.text) == (200, told)

    @pytest.mark.parametrize(
        ("path", "passed", "failed"),
        [
            ("/readyz", "ok", NOT_READY),
            ("/readyz?verbose", "[+]caches ok\n[+]webhooks ok\nreadyz check passed\n", NOT_READY),
        ],
    )
    async def test_a_failure_comes_with_its_reason_unasked(self, path, passed, failed) -> None:
        well, ill = await ask(health(), path), await ask(health(ready=False), path)

        assert (well.status_code, well.text) == (200, passed)
        assert (ill.status_code, ill.text) == (503, failed)

    async def test_without_checks_answering_is_enough(self) -> None:
        assert (await ask(Health(), "/readyz")).text == "ok"

    async def test_a_check_that_fails_itself_fails_without_saying_what_it_saw(self) -> None:
        made = Health()
        made.live.add("loop", broken)
        answer = await ask(made, "/healthz")

        assert answer.status_code == 503
        assert "[-]loop failed: the check itself failed: RuntimeError\n" in answer.text
        assert "secret" not in answer.text

    async def test_head_is_answered_like_get(self) -> None:
        assert (await ask(health(), "/readyz", "HEAD")).status_code == 200
        assert (await ask(health(ready=False), "/readyz", "HEAD")).status_code == 503

    async def test_nothing_is_written(self) -> None:
        assert (await ask(health(), "/readyz", "POST")).status_code == 405

    async def test_no_answer_is_kept(self) -> None:
        assert (await ask(health(), "/readyz")).headers["cache-control"] == "no-store"
