"""Credentials: the token on each request."""

from __future__ import annotations

import anyio
import pytest

from hedgerow.kube.credentials import EVERY, Bearer

pytestmark = pytest.mark.anyio


class TestBearer:
    async def test_is_fixed_without_a_file(self, clock):
        bearer = Bearer("a", now=clock.timing.now)
        clock.now += 10 * EVERY

        assert await bearer.token() == "a"

    async def test_is_nothing_without_either(self, clock):
        assert await Bearer(now=clock.timing.now).token() == ""

    async def test_is_read_again_each_minute(self, clock, tmp_path):
        file = tmp_path / "token"
        file.write_text("rotated\n")
        bearer = Bearer("first", anyio.Path(file), now=clock.timing.now)

        before = await bearer.token()
        clock.now += EVERY
        after = await bearer.token()
        file.write_text("again")
        within_the_minute = await bearer.token()

        assert (before, after, within_the_minute) == (
            "first",
            "rotated",
            "rotated",
        )

    @pytest.mark.parametrize("content", [None, b"", b"\xff"])
    async def test_stays_while_the_file_cannot_be_read(self, clock, tmp_path, content):
        file = tmp_path / "token"
        if content is not None:
            file.write_bytes(content)
        bearer = Bearer("first", anyio.Path(file), now=clock.timing.now)
        clock.now += EVERY

        assert await bearer.token() == "first"
