"""Files that we write: where they are named, and never where a link leads."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hedgerow.files import LINK, descriptor, opened, overwrite
from hedgerow_testing.demo import samples
from hedgerow_testing.generate import write as generate
from hedgerow_testing.sandbox.starting import prepare_audit

WRITES: dict[str, Callable[[Path], object]] = {
    "a descriptor": lambda path: os.close(descriptor(path, os.O_WRONLY | os.O_CREAT)),
    "over it": partial(overwrite, content="ours"),
    "behind it": lambda path: opened(path, "ab").close(),
    "a new one": lambda path: opened(path, "xb").close(),
    "the samples of the demo": lambda path: samples.write(path.parent),
    "what is generated": lambda path: generate({Path(path.name): "ours"}, path.parent),
    "the audit log of a sandbox": prepare_audit,
}


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_file_is_written_where_a_link_leads(
    tmp_path: Path, write: Callable[[Path], object], there: bool
):
    folder, target = tmp_path / "folder", tmp_path / "theirs"
    folder.mkdir()
    link = folder / "blue.yaml"
    link.symlink_to(target)
    if there:
        target.write_text("theirs")

    with pytest.raises(Exception, match=f"{LINK}|File exists"):
        write(link)

    assert link.is_symlink()
    assert target.exists() is there
    assert not there or target.read_text() == "theirs"


def test_a_file_is_written_over_and_behind_with_the_mode_that_it_has(tmp_path: Path):
    path = tmp_path / "file"
    overwrite(path, "long text", 0o600)
    overwrite(path, b"ours")
    with opened(path, "ab") as file:
        file.write(b" and more")

    assert path.read_text() == "ours and more"
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_errors_are_as_they_are(tmp_path: Path):
    with pytest.raises(OSError) as refused:
        overwrite(tmp_path, "x")

    assert refused.value.errno == errno.EISDIR
