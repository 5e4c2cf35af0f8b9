"""Locks between programs."""

from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from hedgerow_testing.sandbox import locks
from hedgerow_testing.sandbox.locks import exclusive
from support.programs.killed import killed

pytestmark = pytest.mark.anyio


async def hold(path: Path, told: list[str], **more) -> None:
    async with exclusive(path, told.append, what="builds", **more):
        pass


async def refused(path: Path, told: list[str]) -> None:
    with anyio.fail_after(0.2):
        await hold(path, told)


HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write("held")
file.flush()
time.sleep(600)
"""


class TestExclusive:
    async def test_a_second_holder_waits_says_so_once_and_then_goes_on(self, tmp_path) -> None:
        path, told, order = tmp_path / "lock", [], []

        async def second() -> None:
            async with exclusive(path, told.append, what="builds etcd"):
                order.append("second")

        async with (
            anyio.create_task_group() as group,
            exclusive(path, told.append, what="builds etcd"),
        ):
            group.start_soon(second)
            with anyio.fail_after(10):
                while not told:
                    await anyio.lowlevel.checkpoint()
            order.append("first")

        assert order == ["first", "second"]
        assert len(told) == 1
        assert told[0].startswith("waiting for process ")
        assert told[0].endswith(", which builds etcd")

    async def test_whoever_waits_can_be_cancelled(self, tmp_path) -> None:
        path, told = tmp_path / "lock", []

        async with exclusive(path, told.append, what=""):
            with anyio.move_on_after(0.1) as scope:
                await hold(path, told)

        assert scope.cancelled_caught
        await hold(path, told)

    async def test_a_killed_holder_holds_nothing(self, tmp_path) -> None:
        path, told = tmp_path / "lock", []
        killed(HOLDER, path, once=lambda: path.exists() and path.read_text() == "held")

        with anyio.fail_after(10):
            await hold(path, told)
        assert told == []

    async def test_another_program_s_lock_is_respected(self, tmp_path) -> None:
        path, told = tmp_path / "lock", []

        def held() -> bool:
            if not path.exists() or path.read_text() != "held":
                return False
            with pytest.raises(TimeoutError):
                anyio.run(refused, path, told)
            return True

        await anyio.to_thread.run_sync(partial(killed, HOLDER, path, once=held))

        assert told == ["waiting for process held, which builds"]

    async def test_a_lock_whose_file_was_removed_is_taken_anew(self, tmp_path) -> None:
        path, told, both = tmp_path / "lock", [], anyio.Event()

        async def remover() -> None:
            async with exclusive(path, told.append, what=""):
                both.set()
                with anyio.fail_after(10):
                    while not told:
                        await anyio.lowlevel.checkpoint()
                path.unlink()

        async with anyio.create_task_group() as group:
            group.start_soon(remover)
            await both.wait()
            async with exclusive(path, told.append, what=""):
                assert path.exists()

    async def test_a_file_of_another_name_or_none_is_not_the_lock(self, tmp_path) -> None:
        old, new = tmp_path / "old", tmp_path / "new"
        new.touch()
        with old.open("w") as file:
            assert locks.is_lock(old, file.fileno())
            assert not locks.is_lock(new, file.fileno())
            old.unlink()
            assert not locks.is_lock(old, file.fileno())

    async def test_a_lock_that_vanishes_while_it_is_waited_for_has_no_known_holder(
        self, tmp_path
    ) -> None:
        assert locks.holder(tmp_path / "lock") == "?"

    async def test_a_directory_that_vanishes_is_prepared_again(self, tmp_path) -> None:
        path, calls = tmp_path / "place" / "lock", []

        def prepare() -> None:
            calls.append(path.parent.exists())
            if len(calls) > 1:
                path.parent.mkdir()

        await hold(path, [], prepare=prepare)

        assert calls == [False, False]

    async def test_a_place_that_cannot_hold_a_lock_is_an_error(self, tmp_path) -> None:
        (tmp_path / "lock").mkdir()

        with pytest.raises(IsADirectoryError):
            await hold(tmp_path / "lock", [])

    async def test_a_link_is_no_lock_and_nothing_is_written_where_it_leads(self, tmp_path) -> None:
        (tmp_path / "letter").write_text("dear")
        (tmp_path / "lock").symlink_to(tmp_path / "letter")

        with pytest.raises(OSError, match="symbolic links"):
            await hold(tmp_path / "lock", [])
        assert (tmp_path / "letter").read_text() == "dear"
