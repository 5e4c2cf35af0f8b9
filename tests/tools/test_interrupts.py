"""Interrupts: cleaning up is neither skipped nor disturbed."""

from __future__ import annotations

import os
import signal

import anyio
import pytest
import typer

from hedgerow_tools import interrupts


class TestInterrupts:
    @pytest.mark.parametrize("number", interrupts.SIGNALS)
    def test_a_signal_cancels_and_further_ones_do_not_spoil_the_cleaning_up(self, capsys, number):
        cleaned = []

        async def action():
            try:
                os.kill(os.getpid(), number)
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    os.kill(os.getpid(), number)
                    await anyio.wait_all_tasks_blocked()
                    cleaned.append(True)

        with pytest.raises(typer.Exit) as ended:
            interrupts.run(action)

        assert ended.value.exit_code == 128 + number
        assert cleaned == [True]
        assert capsys.readouterr().err == f"interrupted by {number.name}\n"

    def test_what_ends_by_itself_just_ends(self):
        done = []

        async def action():
            done.append(True)

        interrupts.run(action)

        assert done == [True]

    def test_an_error_comes_out_as_it_is(self):
        async def action():
            raise ValueError("boo")

        with pytest.raises(ValueError, match="boo"):
            interrupts.run(action)

    def test_an_error_while_cleaning_up_is_not_lost(self):
        async def action():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                await anyio.sleep_forever()
            finally:
                raise ValueError("still there")

        with pytest.raises(ValueError, match="still there"):
            interrupts.run(action)
