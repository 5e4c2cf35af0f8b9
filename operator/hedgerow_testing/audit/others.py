"""Others: how the operator treats what other managers do to the objects that it has made."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hedgerow.encoding import encode
from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import held
from hedgerow.fields.paths import is_list, is_map, path_of
from hedgerow.fields.redaction import shown
from hedgerow.fields.sets import ABSENT, Values, is_hollow, is_key, leaves
from hedgerow.objects import metadata
from hedgerow.texts import numbered
from hedgerow_testing.audit.judging.causes import causes, taker, writers
from hedgerow_testing.audit.judging.edits import with_value, without
from hedgerow_testing.audit.judging.findings import Finding
from hedgerow_testing.audit.judging.history import identified
from hedgerow_testing.audit.judging.values import others

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.author import Author
    from hedgerow_testing.audit.judging.findings import AuditedObject
    from hedgerow_testing.audit.judging.history import AuditKey, LoggedWrite
    from hedgerow_testing.audit.judging.recorder import FindingRecorder
    from hedgerow_testing.audit.machine import Machine

PLATFORM: Final = "platform"
EDITOR: Final = "kubectl-edit"
_MOST: Final = 6
_FIGHTS: Final = 3
_TRIES: Final = 5
_SOON: Final = 3.0
_LOGGED: Final = 1.0
_AGAIN: Final = 12.0
_OF_OTHERS: Final = "audit.hedgerow.dev"
_SCALED: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
_ONCE: Final = frozenset({"Job", "Pod"})
_SYSTEM: Final = frozenset({"Lease", "Event", "Namespace", "CustomResourceDefinition"})
_MEANT: Final = frozenset({"f:image", "f:targetPort", "f:schedule", "f:host", "f:maxReplicas"})
"""Fields that no server sets by default, of whole objects that are sent with the defaults in."""
_OWN: Final = frozenset({"f:ownerReferences", "f:finalizers", "f:managedFields"})
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_AROUND: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_REPLICAS: Final[FieldPath] = ("f:spec", "f:replicas")


_Reported = tuple[int, list[bytes]]
"""What an operator reports: the number of its Events, and the reports in its resources."""


@dataclass(slots=True)
class WatchedChild:
    """One object of the operator, and what others have put into it."""

    key: AuditKey
    object: AuditedObject
    uid: str
    foreign: dict[FieldPath, Any] = field(default_factory=dict["FieldPath", Any])


class Others:
    """Other managers, who write to the operator's objects as people and programs do."""

    def __init__(self, machine: Machine, recorder: FindingRecorder, author: Author) -> None:
        self._machine, self._recorder, self._author = machine, recorder, author
        self._api, self._log = machine.api, machine.log
        self.children: list[WatchedChild] = []
        self._found = 0

    def find(self) -> int:
        """Choose some of the objects that the operator made, of each kind one first."""
        own = {sample.key for sample in self._author.samples}
        found = [
            key for key in self._log.children if key not in own and self._log.history.state(key)
        ]
        by_kind: dict[tuple[str, str], list[AuditKey]] = {}
        for key in found:
            by_kind.setdefault(key[:2], []).append(key)
        longest = max(map(len, by_kind.values()), default=0)
        turns = (keys[n] for n in range(longest) for keys in by_kind.values() if n < len(keys))
        for key in turns:
            live = self._live(key)
            if live and live["kind"] not in _SYSTEM and len(self.children) < _MOST:
                uid = str(metadata(live).get("uid"))
                self.children.append(WatchedChild(key, identified(live, key), uid))
        self._found = len(found)
        return len(found)

    # What others add.

    def add(self) -> None:
        """Add labels, annotations and keys, by an apply and by an update."""
        for child in self.children:
            live = self._live(child.key)
            if live is None:
                continue
            applied: dict[FieldPath, Any] = {
                ("f:metadata", "f:labels", f"f:{_OF_OTHERS}/applied"): "platform",
                ("f:metadata", "f:annotations", f"f:{_OF_OTHERS}/applied"): "platform",
            }
            if live["kind"] == "ConfigMap":
                applied["f:data", "f:audit-applied"] = "platform"
            body: Object = _identity(live)
            for place, value in applied.items():
                body = with_value(body, place, value)
            if self._api.apply(body, PLATFORM).ok:
                child.foreign |= applied
            edited: dict[FieldPath, Any] = {
                ("f:metadata", "f:labels", f"f:{_OF_OTHERS}/edited"): "editor",
                ("f:metadata", "f:annotations", f"f:{_OF_OTHERS}/edited"): "editor",
            }
            patch: Object = {}
            for place, value in edited.items():
                patch = with_value(patch, place, value)
            if self._api.merge(live, patch, EDITOR).ok:
                child.foreign |= edited
        self._machine.settle()

    def look_for_lost(self) -> None:
        """Look what became of it; an object that was made anew meanwhile is not judged."""
        looked = 0
        self._log.poll()
        for child in self.children:
            live = self._live(child.key)
            if live is None or metadata(live).get("uid") != child.uid:
                continue
            values = Values(live)
            for place, value in child.foreign.items():
                looked += 1
                now = values.at(place)
                if now is ABSENT or not identical(now, value):
                    self._recorder.add(self._lost(child, place, value, now))
        if looked:
            words = numbered(looked, "field of others", "fields of others")
            return self._recorder.checked("foreign-field-lost", words)
        why = "each object was made anew in the meantime, or took no field of others"
        return self._recorder.unchecked("foreign-field-lost", why)

    def _lost(
        self, child: WatchedChild, place: FieldPath, value: Any, now: Any
    ) -> Iterator[Finding]:
        """Yield a field that the operator took away; others may have done so too."""
        write = taker(self._log.history.of(child.key), place, self._log.user)
        if write is not None:
            yield Finding(
                "foreign-field-lost",
                child.object,
                "it was removed" if now is ABSENT else "it was changed",
                path_of(place),
                _text(child, place, value),
                None if now is ABSENT else _text(child, place, now),
                request=write.request.evidence,
                causes=causes(write, place),
            )

    # What others change.

    def change(self) -> None:
        """Change a field that the operator holds: by an edit, then again and again by force."""
        found = [(child, self._choose(child)) for child in self.children]
        chosen = [(child, *edit) for child, edit in found if edit]
        if not chosen:
            return
        self._machine.attendant.progress("changing fields of children as another manager")
        reported = self._reported()
        self._edit(chosen, reported)
        self._remove(reported)
        self._apply_by_force(chosen, reported)
        words = f"{len(chosen)} of {numbered(self._found, 'child', 'children')}"
        for rule in ("child-fight", "child-forced", "child-silent"):
            self._recorder.checked(rule, words)

    def _choose(self, child: WatchedChild) -> tuple[FieldPath, Any] | None:
        """Return a field that the operator holds and another value that the server takes."""
        live = self._live(child.key)
        if live is None:
            return None
        values = Values(live)
        for place in _own_fields(live, self._log.history.of(child.key), self._log.user):
            for other in others(values.at(place)):
                body = with_value(_identity(live), place, other)
                if self._api.apply(body, PLATFORM, force=True, dry_run=True).ok:
                    return place, other
        return None

    def _edit(self, chosen: list[tuple[WatchedChild, FieldPath, Any]], reported: _Reported) -> None:
        """Write another value as an editor does, and look whether it is left in silence."""
        put: list[tuple[WatchedChild, FieldPath, Any]] = []
        for child, place, other in chosen:
            live = self._live(child.key)
            if live and self._api.put(with_value(live, place, other), EDITOR).ok:
                put.append((child, place, other))
        self._machine.settle()
        for child, place, other in put:
            if self._is_silent(child, place, other, reported):
                detail = "an edit of this field was left, and neither status nor Event tells of it"
                self._recorder.add(
                    (Finding("child-silent", child.object, detail, path_of(place), mark="edit"),)
                )

    def _remove(self, reported: _Reported) -> None:
        """Remove a field that the operator sent, and look whether it stays away in silence."""
        removed: list[tuple[WatchedChild, FieldPath]] = []
        for child in self.children:
            live = self._live(child.key)
            if live is None:
                continue
            places = _own_fields(live, self._log.history.of(child.key), self._log.user)
            for place in islice(places, 1, 1 + _TRIES):  # the first one was just edited
                if self._api.put(without(live, place), EDITOR).ok:
                    removed.append((child, place))
                    break
        self._machine.settle()
        for child, place in removed:
            if self._is_silent(child, place, ABSENT, reported):
                detail = "it was removed and stays away, and neither status nor Event tells of it"
                self._recorder.add(
                    (Finding("child-silent", child.object, detail, path_of(place), mark="removal"),)
                )

    def _apply_by_force(
        self, chosen: list[tuple[WatchedChild, FieldPath, Any]], reported: _Reported
    ) -> None:
        """Take the field by a forced apply, as Argo CD may, and again whenever it is taken back."""
        began = time.monotonic()
        back: dict[int, int] = {}
        applied: set[int] = set()
        active = list(chosen)
        for _ in range(_FIGHTS):
            mark = self._log.writes
            active = [one for one in active if self._is_forced(*one)]
            applied.update(id(child) for child, _, _ in active)
            active = self._taken(active, mark)
            for child, _, _ in active:
                back[id(child)] = back.get(id(child), 0) + 1
            if not active:
                break
        took = max(time.monotonic() - began, 0.001)
        self._machine.settle()
        for child, place, other in chosen:
            count = back.get(id(child), 0)
            if count:
                self._recorder.add(self._taken_back(child, place, count, count * 60 / took))
            elif id(child) in applied and self._is_silent(child, place, other, reported):
                detail = (
                    "another manager's apply was left, and neither status nor Event tells of it"
                )
                self._recorder.add(
                    (Finding("child-silent", child.object, detail, path_of(place), mark="apply"),)
                )
        self._release(chosen)

    def _is_forced(self, child: WatchedChild, place: FieldPath, other: Any) -> bool:
        """Apply a field by force, and return whether the API server took it."""
        live = self._live(child.key)
        if live is None:
            return False
        body = with_value(_identity(live), place, other)
        return self._api.apply(body, PLATFORM, force=True).ok

    def _taken(
        self, active: list[tuple[WatchedChild, FieldPath, Any]], mark: int
    ) -> list[tuple[WatchedChild, FieldPath, Any]]:
        """Wait a little, and return those of the fields that a write since the mark took back."""
        left: list[tuple[WatchedChild, FieldPath, Any]] = []

        def all_taken() -> bool:
            left[:] = [one for one in active if self._has(*one)]
            return not left

        def written() -> set[AuditKey]:
            return {write.request.key for write in self._log.since(mark)}

        self._machine.until(_SOON, all_taken)
        taken = [one for one in active if one not in left]
        # A value is seen before its write is answered, and only then the write is in the log.
        self._machine.until(_LOGGED, lambda: {child.key for child, _, _ in taken} <= written())
        return [one for one in taken if one[0].key in written()]

    def _taken_back(
        self, child: WatchedChild, place: FieldPath, count: int, per_minute: float
    ) -> Iterable[Finding]:
        writes = self._log.history.of(child.key)
        write = taker(writes, place, self._log.user)
        if write is None:
            return
        seconds = _seconds_after(writes, write, self._log.user)
        request, why, where = write.request.evidence, causes(write, place), path_of(place)
        yield Finding(
            "child-forced",
            child.object,
            f"it took the field back after {seconds:.1f} seconds from a manager that applied it",
            where,
            request=request,
            causes=why,
            seconds=round(seconds, 1),
        )
        if count >= _FIGHTS:
            yield Finding(
                "child-fight",
                child.object,
                f"it took the field back each of {count} times, {per_minute:.0f} times a minute",
                where,
                request=request,
                causes=why,
                count=count,
                per_minute=round(per_minute, 1),
            )

    def _release(self, chosen: list[tuple[WatchedChild, FieldPath, Any]]) -> None:
        """Let go of the fields, and keep what was added before."""
        for child, _, _ in chosen:
            live = self._live(child.key)
            if live is None:
                continue
            body = _identity(live)
            for place, value in child.foreign.items():
                if str(value) == PLATFORM:
                    body = with_value(body, place, value)
            self._api.apply(body, PLATFORM)

    # Replicas and deletion.

    def scale(self) -> None:
        """Set replicas by the scale subresource, as an autoscaler does."""
        scaled: list[tuple[WatchedChild, int]] = []
        for child in self.children:
            live = self._live(child.key)
            if live is None or live["kind"] not in _SCALED:
                continue
            now = Values(live).at(_REPLICAS)
            wanted = (now if isinstance(now, int) else 1) + 1
            patch = {"spec": {"replicas": wanted}}
            if self._api.merge(live, patch, "kube-controller-manager", "scale").ok:
                scaled.append((child, wanted))
        if not scaled:
            return self._recorder.unchecked("replicas-taken", "no child has replicas")
        self._machine.settle()
        for child, wanted in scaled:
            live = self._live(child.key)
            now = ABSENT if live is None else Values(live).at(_REPLICAS)
            write = taker(self._log.history.of(child.key), _REPLICAS, self._log.user)
            if now == wanted or now is ABSENT or write is None:
                continue
            self._recorder.add(
                (
                    Finding(
                        "replicas-taken",
                        child.object,
                        f"replicas that an autoscaler set to {wanted} became {now} again",
                        path_of(_REPLICAS),
                        str(wanted),
                        str(now),
                        request=write.request.evidence if write else None,
                        causes=causes(write, _REPLICAS) if write else ("unknown",),
                    ),
                )
            )
        return self._recorder.checked("replicas-taken", numbered(len(scaled), "child", "children"))

    def delete(self) -> None:
        """Delete the children, and look whether they are made again.

        What a child owns is left: it is collected with its owner.
        """
        gone: list[tuple[WatchedChild, str]] = []
        found = [(child, live) for child in self.children if (live := self._live(child.key))]
        uids = {metadata(live).get("uid") for _, live in found}
        for child, live in found:
            owners = {one.get("uid") for one in metadata(live).get("ownerReferences") or ()}
            if live["kind"] in _ONCE or owners & uids:
                continue
            uid = str(metadata(live).get("uid"))
            if self._api.delete(live, uid=uid).ok:
                gone.append((child, uid))
        if not gone:
            return self._recorder.unchecked("child-not-restored", "no child is made to stay")
        self._machine.attendant.progress("deleting children")

        def back(child: WatchedChild, uid: str) -> bool:
            live = self._live(child.key)
            return live is not None and metadata(live).get("uid") != uid

        self._machine.until(_AGAIN, lambda: all(back(*one) for one in gone))
        for child, uid in gone:
            if not back(child, uid):
                detail = f"it was deleted, and not made again in {_AGAIN:.0f} seconds"
                self._recorder.add((Finding("child-not-restored", child.object, detail),))
        self._machine.settle()
        return self._recorder.checked(
            "child-not-restored", numbered(len(gone), "child", "children")
        )

    # Reading.

    def contents(self) -> dict[AuditedObject, Object]:
        """Return what each child with a name of its own holds, without metadata and status."""
        found: dict[AuditedObject, Object] = {}
        for child in self.children:
            live = None if child.object.generated else self._live(child.key)
            if live is not None:
                found[child.object] = {k: v for k, v in live.items() if k not in _AROUND}
        return found

    def _live(self, key: AuditKey) -> Object | None:
        state = self._log.history.state(key)
        if state is None or "kind" not in state:
            return None
        reply = self._api.get(state)
        return reply.body if reply.status == HTTPStatus.OK else None

    def _has(self, child: WatchedChild, place: FieldPath, value: Any) -> bool:
        """Return whether a field has this value, or is absent if that is the value."""
        live = self._live(child.key)
        now = ABSENT if live is None else Values(live).at(place)
        return live is not None and (now is value or identical(now, value))

    def _is_silent(
        self, child: WatchedChild, place: FieldPath, value: Any, reported: _Reported
    ) -> bool:
        """Return whether a field is left as it is, and a while later nothing tells of it."""
        self._machine.until(
            _SOON, lambda: self._reported() != reported or not self._has(child, place, value)
        )
        return self._has(child, place, value) and self._reported() == reported

    def _reported(self) -> _Reported:
        """Return what the operator reports so far: its Events, and the status of the samples."""
        lives = (self._api.get(sample.manifest).body for sample in self._author.samples)
        return self._log.events, [encode(_report(live)) for live in lives]


def _seconds_after(writes: Iterable[LoggedWrite], write: LoggedWrite, user: str) -> float:
    """Return how soon after somebody else's write of an object the operator's came."""
    last = 0.0
    for one in writes:
        if one is write:
            return one.request.at - last if last else 0.0
        if one.request.user != user:
            last = one.request.at
    return 0.0


def _report(live: Object) -> list[Any]:
    """Return where an operator reports: the status, and annotations; times tell nothing."""
    return [_timeless(live.get("status")), metadata(live).get("annotations")]


def _timeless(value: Any) -> Any:
    if is_map(value):
        found = value.items()
        return {k: _timeless(inner) for k, inner in found if k != "observedGeneration"}
    if is_list(value):
        return [_timeless(inner) for inner in value]
    return None if isinstance(value, str) and _INSTANT.match(value) else value


def _own_fields(live: Object, writes: Sequence[LoggedWrite], user: str) -> Iterator[FieldPath]:
    """Yield the fields that the operator holds: those that it sent first, of data and spec."""
    own = [write for write in writes if write.request.user == user]
    ours = {name for write in own for name in writers(write)}
    sent = [Values(write.request.body) for write in own if is_map(write.request.body)]
    found: list[FieldPath] = []
    for holder, tree in held(live).pairs:
        if (holder.manager, holder.operation) in ours and not holder.subresource:
            found += leaves(tree or {})
    values, there = Values(live), held(live)

    def order(place: FieldPath) -> tuple[bool, bool, bool, int]:
        is_default = all(body.at(place) is ABSENT for body in sent)
        is_meant = place[0] == "f:data" or place[-1] in _MEANT
        return is_default, not is_meant, place[0] == "f:metadata", len(place)

    for place in sorted(dict.fromkeys(found), key=order):
        is_field = place[-1].startswith("f:") and not is_key(place)
        is_left_out = place == _REPLICAS or place[0] == "f:status" or not _OWN.isdisjoint(place)
        is_there = values.at(place) is not ABSENT and not is_hollow(there, place)
        if is_field and is_there and not is_left_out:
            yield place


def _identity(live: Object) -> Object:
    meta = metadata(live)
    kept = {name: meta[name] for name in ("name", "namespace") if name in meta}
    return {**{k: live[k] for k in ("apiVersion", "kind") if k in live}, "metadata": kept}


def _text(child: WatchedChild, place: FieldPath, value: Any) -> str:
    return shown(child.object.kind, place, value)
