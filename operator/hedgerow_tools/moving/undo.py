"""Undo: of moved fields, by the file that `--save` wrote and `hedgerow adopt --undo FILE` reads.

The file has one JSON value on each line: what it is and its version, then for each object the
managed fields entries of the managers that took part, before and after. A line is on the disk
before its object is written, so that after any interruption whatever was adopted can be undone.

Managed fields have no values, but the keys of list items and the members of sets, which may be
secret. So only its owner may read the file.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from hedgerow import files
from hedgerow.cli.exits import CommandError
from hedgerow.encoding import decode, encode
from hedgerow.fields.paths import is_map
from hedgerow.objects import ObjectRef, controller_of, metadata
from hedgerow_schemas.base import ApiResource  # noqa: TC001 - msgspec reads the annotations
from hedgerow_tools.fields.relabelling import restoration
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.moving.bulk import PlannedChange
from hedgerow_tools.objects.managing import controller_of_owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from hedgerow_schemas.base import Object
    from hedgerow_tools.moving.bulk import Task
    from hedgerow_tools.moving.outcomes import ObjectFate, ObjectOutcome

FORMAT: Final = "hedgerow-adopt"
VERSION: Final = 1
PRIVATE: Final = 0o600
"""The mode of the file: its owner may read and write it."""


@dataclass(frozen=True, slots=True)
class AdoptedObject:
    """One object and its entries of the managers that took part, before and after the write."""

    api: ApiResource
    namespace: str
    name: str
    uid: str
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]


_HEADER: Final = {"format": FORMAT, "version": VERSION}
_LINE: Final = b"\n"


def read_undo_file(path: Path) -> list[AdoptedObject]:
    """Return what was adopted, in its order; raises CommandError and OSError."""
    with path.open("rb") as file:
        first = file.readline()
        _check(path, first)
        return list(_objects(path, file))


def _objects(path: Path, lines: Iterator[bytes]) -> Iterator[AdoptedObject]:
    for number, line in enumerate(lines, 2):
        if not line.endswith(_LINE):
            return  # it was cut off before its object was written
        try:
            yield msgspec.convert(decode(line), AdoptedObject)
        except ValueError as error:
            raise CommandError(f"{path}: line {number} cannot be read: {error}") from error


def _check(path: Path, first: bytes) -> None:
    header = None
    with suppress(ValueError):
        header = decode(first)
    if not is_map(header) or header.get("format") != FORMAT:
        raise CommandError(f"{path}: it is no file that `hedgerow adopt --save` wrote")
    if header.get("version") != VERSION:
        raise CommandError(
            f"{path}: its version is {header.get('version')}, and this program reads {VERSION}"
        )


class UndoFile:
    """The file while objects are adopted; what it had before stays in it."""

    def __init__(self, path: Path) -> None:
        """Make the file, or check one that is there; raises CommandError."""
        self.path = path
        self._lock = anyio.Lock()
        try:
            self._begin()
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}; nothing was adopted") from error

    def _begin(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK
        with os.fdopen(files.descriptor(self.path, flags, PRIVATE), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CommandError(f"{self.path}: it is no regular file")
            os.fchmod(file.fileno(), PRIVATE)
            first = file.readline()
            if not first:
                self._append(encode(_HEADER))
                return
            _check(self.path, first)
            # A line without an end was cut off before its object was written.
            rest = (len(line) for line in file if line.endswith(_LINE))
            os.ftruncate(file.fileno(), len(first) + sum(rest))

    async def add(
        self, ref: ObjectRef, live: Object, before: Iterable[Object], after: Iterable[Object]
    ) -> None:
        """Record an object, with these entries before and after, on the disk.

        Raises CommandError.
        """
        uid: str = metadata(live)["uid"]
        adopted = AdoptedObject(ref.api, ref.namespace, ref.name, uid, list(before), list(after))
        line = encode(asdict(adopted))
        async with self._lock:
            try:
                await anyio.to_thread.run_sync(self._append, line)
            except OSError as error:
                raise CommandError(
                    f"{self.path}: {error.strerror}; what is not recorded is not adopted"
                ) from error

    def _append(self, line: bytes) -> None:
        with files.opened(self.path, "ab", PRIVATE) as file:
            file.write(line + _LINE)
            file.flush()
            os.fsync(file.fileno())


async def undo_object(task: Task, records: Sequence[AdoptedObject]) -> ObjectOutcome:
    """Return what became of an object whose records, the oldest first, are undone.

    One record that fits is enough: the others may never have been carried out.
    """
    outcomes: list[ObjectOutcome] = []
    for record in reversed(records):
        ref = ObjectRef(record.api, record.namespace, record.name)
        outcomes.append(await task.carry_out(partial(_restored, record), ref))
    order: tuple[ObjectFate, ...] = ("changed", "nothing", "absent", "failed")
    return min(outcomes, key=lambda outcome: order.index(outcome.fate))


async def _restored(record: AdoptedObject, _: ObjectRef, live: Object) -> PlannedChange:
    if metadata(live)["uid"] != record.uid:
        raise MoveRefused("it was deleted and created again since: the new one stays as it is")
    owner = controller_of(live)
    name = f"{owner['kind']}/{owner['name']}" if controller_of_owner(owner) else ""
    try:
        return PlannedChange(restoration(live, record.before, record.after), resource=name)
    except (AttributeError, TypeError):  # anybody may have edited the file
        raise MoveRefused("its record is no list of managed fields entries") from None
