"""The undo file: private, versioned, whole after any interruption."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest

from hedgerow.cli.exits import CommandError
from hedgerow.objects import ObjectRef
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.moving.undo import AdoptedObject, UndoFile, read_undo_file

SECRET = ApiResource("v1", "Secret", "secrets")
ENTRY: dict[str, Any] = {"manager": "a", "fieldsV1": {"f:x": {}}}
HEADER = '{"format":"hedgerow-adopt","version":1}\n'


def adopted(name: str) -> AdoptedObject:
    return AdoptedObject(SECRET, "ns", name, "u", [ENTRY], [])


def record(file: UndoFile, name: str = "x") -> None:
    anyio.run(file.add, ObjectRef(SECRET, "ns", name), {"metadata": {"uid": "u"}}, [ENTRY], [])


def added(path: Any, *names: str) -> None:
    file = UndoFile(path)
    for name in names:
        record(file, name)


def test_what_is_recorded_is_read_in_its_order_and_is_private(tmp_path):
    path = tmp_path / "undo.json"
    before = os.umask(0)
    try:
        added(path, "a", "b")
    finally:
        os.umask(before)

    assert read_undo_file(path) == [adopted("a"), adopted("b")]
    assert path.stat().st_mode & 0o777 == 0o600


def test_another_run_adds_to_it_and_a_torn_line_is_no_record(tmp_path):
    path = tmp_path / "undo.json"
    added(path, "a", "b")
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size - 5)

    assert read_undo_file(path) == [adopted("a")]
    added(path, "c")

    assert read_undo_file(path) == [adopted("a"), adopted("c")]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_it_is_not_written_where_a_link_leads(tmp_path, there):
    path, target = tmp_path / "undo.json", tmp_path / "theirs"
    path.symlink_to(target)
    if there:
        target.write_text(HEADER)
        target.chmod(0o644)

    with pytest.raises(CommandError, match="it is a symbolic link; nothing was adopted"):
        UndoFile(path)
    assert target.exists() is there
    assert not there or (target.read_text(), target.stat().st_mode & 0o777) == (HEADER, 0o644)


def test_nor_if_one_is_put_there_meanwhile(tmp_path):
    path, target = tmp_path / "undo.json", tmp_path / "theirs"
    file = UndoFile(path)
    path.unlink()
    path.symlink_to(target)

    with pytest.raises(CommandError, match="symbolic link; what is not recorded is not adopted"):
        record(file)
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no file that"),
        ("hello\n", "no file that"),
        ("\xff\n", "no file that"),
        ('{"format":"other","version":1}\n', "no file that"),
        ('{"format":"hedgerow-adopt","version":2}\n', "its version is 2, and this program reads 1"),
        (HEADER + "{}\n", "line 2 cannot be read"),
        (HEADER + '{"uid":1}\n', "line 2 cannot be read"),
        (HEADER + "[" * 5000 + "\n", "line 2 cannot be read"),
    ],
)
def test_what_is_no_such_file_is_told_so_and_stays_as_it_is(tmp_path, text, told):
    path = tmp_path / "undo.json"
    path.write_text(text, "latin-1")

    with pytest.raises(CommandError, match=told):
        read_undo_file(path)
    if text and "line 2" not in told:
        with pytest.raises(CommandError, match=told):
            UndoFile(path)
    assert not text or path.read_text("latin-1") == text


def test_no_other_place_is_written_to(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    with pytest.raises(CommandError, match="no regular file"):
        UndoFile(fifo)
    with pytest.raises(CommandError, match="Is a directory; nothing was adopted"):
        UndoFile(tmp_path)


def test_what_cannot_be_recorded_is_an_error(tmp_path):
    path = tmp_path / "undo.json"
    file = UndoFile(path)
    path.unlink()
    path.mkdir()

    with pytest.raises(CommandError, match="what is not recorded is not adopted"):
        record(file)
