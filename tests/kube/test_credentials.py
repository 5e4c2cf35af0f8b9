"""Credentials: the token on each request."""

from __future__ import annotations

import anyio
import httpx
import pytest

from hedgerow.kube.credentials import EVERY, Bearer

pytestmark = pytest.mark.anyio


async def sent(bearer: Bearer) -> str | None:
    """Return the header that a request leaves with."""
    flow = bearer.async_auth_flow(httpx.Request("GET", "https://server"))
    request = await anext(flow)
    await flow.aclose()
    return request.headers.get("Authorization")


class TestBearer:
    async def test_is_fixed_without_a_file(self, clock):
        bearer = Bearer("a", now=clock.timing.now)
        clock.now += 10 * EVERY

        assert await sent(bearer) == "Bearer a"

    async def test_is_nothing_without_either(self, clock):
        assert await sent(Bearer(now=clock.timing.now)) is None

    async def test_is_read_again_each_minute(self, clock, tmp_path):
        file = tmp_path / "token"
        file.write_text("rotated\n")
        bearer = Bearer("first", anyio.Path(file), now=clock.timing.now)

        before = await sent(bearer)
        clock.now += EVERY
        after = await sent(bearer)
        file.write_text("again")
        within_the_minute = await sent(bearer)

        assert (before, after, within_the_minute) == (
            "Bearer first",
            "Bearer rotated",
            "Bearer rotated",
        )

    @pytest.mark.parametrize("content", [None, b"", b"\xff"])
    async def test_stays_while_the_file_cannot_be_read(self, clock, tmp_path, content):
        file = tmp_path / "token"
        if content is not None:
            file.write_bytes(content)
        bearer = Bearer("first", anyio.Path(file), now=clock.timing.now)
        clock.now += EVERY

        assert await sent(bearer) == "Bearer first"
