"""Others: how the operator treats what other managers do to the objects that it has made.

Each change is judged only if the API server's answer shows that it took place, and is undone before
the next one, ownership included.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import held
from hedgerow.fields.paths import is_list, is_map, path_of
from hedgerow.fields.redaction import shown
from hedgerow.fields.sets import ABSENT, Values, is_key
from hedgerow.objects import metadata
from hedgerow.texts import numbered
from hedgerow_testing.audit.judging.causes import causes, taker, takes, writers
from hedgerow_testing.audit.judging.edits import with_value, without
from hedgerow_testing.audit.judging.findings import Finding
from hedgerow_testing.audit.judging.history import identified
from hedgerow_testing.audit.judging.values import others
from hedgerow_tools.fields.giving_up import is_hollow
from hedgerow_tools.fields.sets import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.author import Author
    from hedgerow_testing.audit.judging.findings import AuditedObject, AuditedRequest
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
_OF_OTHERS: Final = "audit.hedgerow.dev"
_SCALED: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
_ONCE: Final = frozenset({"Job", "Pod"})
_SYSTEM: Final = frozenset({"Lease", "Event", "Namespace", "CustomResourceDefinition"})
_MEANT: Final = frozenset({"f:image", "f:targetPort", "f:schedule", "f:host", "f:maxReplicas"})
"""Fields that no server sets by default, of whole objects that are sent with the defaults in."""
_OWN: Final = frozenset({"f:ownerReferences", "f:finalizers", "f:managedFields"})
_CHANGING: Final = re.compile(r"[^\s/]*\d[^\s/]*")
"""What of a sentence says when, which or how many: times, digests and numbers."""
_REPLICAS: Final[FieldPath] = ("f:spec", "f:replicas")


class Reported(NamedTuple):
    """What an operator reports: the number of its Warnings, and what each resource's status says.

    A resource is known by its uid.
    """

    warnings: int
    statuses: Mapping[str, frozenset[str]]


@dataclass(slots=True)
class WatchedChild:
    """One object of the operator, what others have put into it, and what was there before."""

    key: AuditKey
    object: AuditedObject
    uid: str
    foreign: dict[FieldPath, Any] = field(default_factory=dict["FieldPath", Any])
    before: dict[FieldPath, Any] = field(default_factory=dict["FieldPath", Any])
    managed: Any = None
    """The managed fields as they were before a place in `before` was changed."""

    @property
    def applied(self) -> dict[FieldPath, Any]:
        """What was added by applies: an apply that leaves it out takes it away."""
        return {place: value for place, value in self.foreign.items() if value == PLATFORM}

    def remember(self, live: Object, place: FieldPath) -> None:
        """Note what is at a place, and who holds what, to have it back later."""
        if not self.before:
            self.managed = metadata(live).get("managedFields")
        self.before.setdefault(place, Values(live).at(place))

    def is_as_before(self, live: Object) -> bool:
        """Return whether all that was changed is as it was."""
        return all(Disturbance(self, *pair).is_in(live) for pair in self.before.items())

    def as_before(self, live: Object) -> Object:
        """Return the object with all that was changed as it was."""
        for pair in self.before.items():
            live = Disturbance(self, *pair).applied_to(live)
        return live

    def held_as_before(self, live: Object) -> Object:
        """Return the object with its former holders: a value that is put is the writer's."""
        return {**live, "metadata": {**metadata(live), "managedFields": self.managed}}


class Disturbance(NamedTuple):
    """A change of a child by somebody else: the place, and the value; ABSENT removes it."""

    child: WatchedChild
    place: FieldPath
    value: Any

    def is_in(self, obj: Object | None) -> bool:
        """Return whether an object is as the change leaves it."""
        if obj is None:
            return False
        now = Values(obj).at(self.place)
        return now is self.value or (ABSENT not in (now, self.value) and identical(now, self.value))

    def applied_to(self, obj: Object) -> Object:
        """Return the object with the change."""
        if self.value is ABSENT:
            return without(obj, self.place)
        return with_value(obj, self.place, self.value)


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
        candidates = [
            key for key in self._log.children if key not in own and self._log.history.state(key)
        ]
        by_kind: dict[tuple[str, str], list[AuditKey]] = {}
        for key in candidates:
            by_kind.setdefault(key[:2], []).append(key)
        longest = max(map(len, by_kind.values()), default=0)
        turns = (keys[n] for n in range(longest) for keys in by_kind.values() if n < len(keys))
        for key in turns:
            live = self._live(key)
            if live and live["kind"] not in _SYSTEM and len(self.children) < _MOST:
                uid = str(metadata(live).get("uid"))
                self.children.append(WatchedChild(key, identified(live, key), uid))
        self._found = len(candidates)
        return len(candidates)

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
            edited: dict[FieldPath, Any] = {
                ("f:metadata", "f:labels", f"f:{_OF_OTHERS}/edited"): "editor",
                ("f:metadata", "f:annotations", f"f:{_OF_OTHERS}/edited"): "editor",
            }
            replies = (
                self._api.apply(_with(_identity(live), applied), PLATFORM),
                self._api.merge(live, _with({}, edited), EDITOR),
            )
            for places, reply in zip((applied, edited), replies, strict=True):
                took = all(Disturbance(child, *pair).is_in(reply.body) for pair in places.items())
                child.foreign |= places if reply.ok and took else {}
        self._machine.settle()

    def look_for_lost(self) -> None:
        """Look what became of it; an object that was made anew meanwhile is not judged."""
        looked = 0
        self._log.poll()
        for child in self.children:
            live = self._live(child.key)
            if live is None or metadata(live).get("uid") != child.uid:
                continue
            for place, value in child.foreign.items():
                looked += 1
                if not Disturbance(child, place, value).is_in(live):
                    self._recorder.add(*self._lost(child, place, value, Values(live).at(place)))
        if looked:
            words = numbered(looked, "field of others", "fields of others")
            return self._recorder.checked("foreign-field-lost", words)
        why = "each object was made anew in the meantime, or took no field of others"
        return self._recorder.unchecked("foreign-field-lost", why)

    def _lost(
        self, child: WatchedChild, place: FieldPath, value: Any, now: Any
    ) -> Iterator[Finding]:
        """Yield a field that the operator took away; others may have done so too."""
        write = taker(self._log.history.writes_of(child.key), place, self._log.user)
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
        if not self.children:
            return
        self._machine.attendant.progress("changing fields of children as another manager")
        chosen = [change for child in self.children if (change := self._choose(child))]
        before = self._reported()
        edited = [change for change in chosen if self._is_edited(change)]
        silent = self._silent(edited, "an edit of this field was left", "edit", before)
        removed = [change for child in self.children if (change := self._removed(child))]
        silent += self._silent(removed, "it was removed and stays away", "removal", before)
        forced, taken = self._fight(chosen)
        left = [change for change in forced if change not in taken]
        silent += self._silent(left, "another manager's apply was left", "apply", before)
        # A slow machine's operator takes later back what seemed to be left.
        self._recorder.add(*(finding for change, finding in silent if change not in taken))
        self._told(("child-silent",), {change.child.uid for change in (*edited, *removed, *forced)})
        self._told(("child-fight", "child-forced"), {change.child.uid for change in forced})

    def _told(self, rules: tuple[str, ...], changed: set[str]) -> None:
        """Note on how many children rules were checked: on those that were really changed."""
        for rule in rules:
            if changed:
                words = f"{len(changed)} of {numbered(self._found, 'child', 'children')}"
                self._recorder.checked(rule, words)
            else:
                self._recorder.unchecked(rule, "the API server took no change of a child")

    def _choose(self, child: WatchedChild) -> Disturbance | None:
        """Return a field that the operator holds and another value that the server takes."""
        live = self._live(child.key)
        if live is None:
            return None
        values = Values(live)
        for place in self._places(child, live):
            for other in others(values.at(place)):
                change = Disturbance(child, place, other)
                body = change.applied_to(_identity(live))
                reply = self._api.apply(body, PLATFORM, force=True, dry_run=True)
                if reply.ok and change.is_in(reply.body):
                    return change
        return None

    def _places(self, child: WatchedChild, live: Object) -> Iterator[FieldPath]:
        return _own_fields(live, self._log.history.writes_of(child.key), self._log.user)

    def _is_edited(self, change: Disturbance) -> bool:
        """Change a child as an editor does, and return whether it is so in the server's answer."""
        live = self._live(change.child.key)
        if live is None or change.is_in(live):
            return False
        change.child.remember(live, change.place)
        return change.is_in(self._put(change.child, change.applied_to))

    def _put(self, child: WatchedChild, changed: Callable[[Object], Object]) -> Object | None:
        """Replace a child as an editor does, and return the answer; None if it is refused."""
        for _ in range(_TRIES):
            live = self._live(child.key)
            if live is None:
                break
            reply = self._api.put(changed(live), EDITOR)
            if reply.status != HTTPStatus.CONFLICT:
                return reply.body if reply.ok else None
        return None

    def _removed(self, child: WatchedChild) -> Disturbance | None:
        """Remove a field that the operator sent; the first one was just edited."""
        live = self._live(child.key)
        for place in islice(self._places(child, live), 1, 1 + _TRIES) if live else ():
            change = Disturbance(child, place, ABSENT)
            if self._is_edited(change):
                return change
        return None

    def _silent(
        self, changes: list[Disturbance], detail: str, how: str, before: Reported
    ) -> list[tuple[Disturbance, Finding]]:
        """Return the changes that are left as they are while nothing tells of them; undo all."""
        left: list[Disturbance] = []

        def none_is_left() -> bool:
            now = self._reported()
            left[:] = [
                change
                for change in changes
                if change.is_in(live := self._live(change.child.key))
                and not self._is_told(live, before, now)
            ]
            return not left

        if changes:
            self._machine.settle()
            self._machine.until(_SOON, none_is_left)
        words = f"{detail}, and neither status nor Warning tells of it"
        silent: list[tuple[Disturbance, Finding]] = []
        for change in left:
            child, last = change.child.object, self._last(change.child)
            finding = Finding(
                "child-silent", child, words, path_of(change.place), request=last, mark=how
            )
            silent.append((change, finding))
        self._undo()
        return silent

    def _last(self, child: WatchedChild) -> AuditedRequest | None:
        """Return what was done to a child last by somebody else, and was left so."""
        requests = (write.request for write in reversed(self._log.history.writes_of(child.key)))
        names = {PLATFORM, EDITOR}
        theirs = (entry for entry in requests if entry.manager in names or entry.verb == "delete")
        return next((entry.evidence for entry in theirs), None)

    def _fight(self, chosen: list[Disturbance]) -> tuple[list[Disturbance], list[Disturbance]]:
        """Take fields by a forced apply, as Argo CD may, and again whenever they are taken back.

        Return the changes that took place, and those of them that were taken back.
        """
        back = Counter[str]()
        active = forced = [change for change in chosen if self._is_forced(change)]
        for turn in range(_FIGHTS):
            if turn:
                active = [change for change in active if self._is_forced(change)]
            active = self._taken(active)
            back.update(change.child.uid for change in active)
            if not active:
                break
        self._machine.settle()
        for change in forced:
            if count := back[change.child.uid]:
                self._recorder.add(*self._taken_back(change, count))
        return forced, [change for change in forced if back[change.child.uid]]

    def _is_forced(self, change: Disturbance) -> bool:
        """Apply a field by force, and return whether it is so in the server's answer."""
        live = self._live(change.child.key)
        if live is None or change.is_in(live):
            return False
        change.child.remember(live, change.place)
        body = change.applied_to(_with(_identity(live), change.child.applied))
        reply = self._api.apply(body, PLATFORM, force=True)
        return reply.ok and change.is_in(reply.body)

    def _taken(self, active: list[Disturbance]) -> list[Disturbance]:
        """Wait a little, and return those of the changes that the operator has taken back."""
        left: list[Disturbance] = []

        def all_taken() -> bool:
            left[:] = [change for change in active if change.is_in(self._live(change.child.key))]
            return not left

        if not self._machine.until(_SOON, all_taken):
            self._machine.settle()
            all_taken()
        taken = [change for change in active if change not in left]
        # A value is seen before its write is answered, and only then the write is in the log.
        self._machine.until(_LOGGED, lambda: all(map(self._taker, taken)))
        return [change for change in taken if self._taker(change)]

    def _taker(self, change: Disturbance) -> LoggedWrite | None:
        """Return the write that took a place last if it is the operator's."""
        writes = reversed(self._log.history.writes_of(change.child.key))
        last = next((write for write in writes if takes(write, change.place)), None)
        return last if last and last.request.user == self._log.user else None

    def _taken_back(self, change: Disturbance, count: int) -> Iterator[Finding]:
        write, (child, place, _) = self._taker(change), change
        if write is None:
            return
        request, why, where = write.request.evidence, causes(write, place), path_of(place)
        findings = [("child-forced", "it took the field back from a manager that applied it")]
        if count >= _FIGHTS:
            findings.append(("child-fight", f"it took the field back each of {count} times"))
        for rule, detail in findings:
            yield Finding(rule, child.object, detail, where, request=request, causes=why)

    def _undo(self) -> None:
        """Put back what was changed and is still there, with its holders; let go of the rest.

        It takes two writes; what the operator writes between them, the second may have made vain.
        """
        self._log.traffic.is_excused = True
        for child in self.children:
            live = self._live(child.key) if child.before else None
            if live and not child.is_as_before(live):
                self._put(child, child.as_before)
                self._put(child, child.held_as_before)
            if live:
                self._api.apply(_with(_identity(live), child.applied), PLATFORM)
            child.before.clear()
        self._machine.settle()
        self._log.traffic.is_excused = False

    # Replicas and deletion.

    def scale(self) -> None:
        """Set replicas by the scale subresource, as an autoscaler does."""
        scaled: list[Disturbance] = []
        for child in self.children:
            live = self._live(child.key)
            if live is None or live["kind"] not in _SCALED:
                continue
            now = Values(live).at(_REPLICAS)
            wanted = (now if isinstance(now, int) else 1) + 1
            child.remember(live, _REPLICAS)
            patch = {"spec": {"replicas": wanted}}
            if self._api.merge(live, patch, "kube-controller-manager", "scale").ok:
                scaled.append(Disturbance(child, _REPLICAS, wanted))
        if not scaled:
            return self._recorder.unchecked("replicas-taken", "no child has replicas")
        self._machine.settle()
        for change in scaled:
            live, write = self._live(change.child.key), self._taker(change)
            now = ABSENT if live is None else Values(live).at(_REPLICAS)
            if now == change.value or now is ABSENT or write is None:
                continue
            self._recorder.add(
                Finding(
                    "replicas-taken",
                    change.child.object,
                    f"replicas that an autoscaler set to {change.value} became {now} again",
                    path_of(_REPLICAS),
                    request=write.request.evidence,
                    causes=causes(write, _REPLICAS),
                )
            )
        self._undo()
        return self._recorder.checked("replicas-taken", numbered(len(scaled), "child", "children"))

    def delete(self) -> None:
        """Delete the children, and look whether they are made again.

        What a child owns is left: it is collected with its owner.
        """
        gone: list[tuple[WatchedChild, str]] = []
        there = [(child, live) for child in self.children if (live := self._live(child.key))]
        uids = {metadata(live).get("uid") for _, live in there}
        for child, live in there:
            owners = {owner.get("uid") for owner in metadata(live).get("ownerReferences") or ()}
            if live["kind"] in _ONCE or owners & uids:
                continue
            uid = str(metadata(live).get("uid"))
            if self._api.delete(live, uid=uid).ok:
                gone.append((child, uid))
        if gone:
            self._machine.attendant.progress("deleting children")
        self._until_back(gone)
        # What a finalizer holds is not gone yet, and cannot be made again.
        judged = [
            (child, live)
            for child, uid in gone
            if metadata(live := self._live(child.key) or {}).get("uid") != uid
        ]
        for child, live in judged:
            if not live:
                seconds = self._machine.pace.limit
                detail = f"it was deleted, and not made again in {seconds:.0f} seconds"
                last = self._last(child)
                self._recorder.add(
                    Finding("child-not-restored", child.object, detail, request=last)
                )
        self._machine.settle()
        if not judged:
            return self._recorder.unchecked("child-not-restored", "no child is made to stay")
        words = numbered(len(judged), "child", "children")
        return self._recorder.checked("child-not-restored", words)

    def _until_back(self, gone: Sequence[tuple[WatchedChild, str]]) -> None:
        """Wait until all are made again, or nothing more is made within the limit."""

        def goes_on(made: int) -> bool:
            live = [(self._live(child.key), uid) for child, uid in gone]
            are_back = all(obj and metadata(obj).get("uid") != uid for obj, uid in live)
            return are_back or self._log.made > made

        for _ in gone:
            made = self._log.made
            self._machine.until(self._machine.pace.limit, partial(goes_on, made))
            if self._log.made == made:
                return

    # Reading.

    def _live(self, key: AuditKey) -> Object | None:
        state = self._log.history.state(key)
        if state is None or "kind" not in state:
            return None
        reply = self._api.get(state)
        return reply.body if reply.status == HTTPStatus.OK else None

    def _reported(self) -> Reported:
        """Return what the operator reports so far."""
        lives = (self._api.get(sample.manifest).body for sample in self._author.samples)
        statuses = {_uid(live): frozenset(_words(live.get("status"))) for live in lives}
        return Reported(self._log.warnings, statuses)

    def _is_told(self, live: Object | None, before: Reported, now: Reported) -> bool:
        """Return whether a child's owners, or the operator's Warnings, say what they did not."""
        owners = self._owners(live or {}) & now.statuses.keys() or now.statuses.keys()
        return now.warnings > before.warnings or any(
            now.statuses[uid] - before.statuses.get(uid, frozenset()) for uid in owners
        )

    def _owners(self, live: Object) -> set[str]:
        """Return the uids of an object's owners, and of theirs."""
        states = {_uid(state): state for state in self._log.history.states()}
        uids: set[str] = set()
        left = [live]
        while left:
            for owner in metadata(left.pop()).get("ownerReferences") or ():
                uid = str(owner.get("uid"))
                if uid not in uids:
                    uids.add(uid)
                    left += [states[uid]] if uid in states else []
        return uids


def _words(value: Any) -> Iterator[str]:
    """Yield what a status says in words: its conditions, messages, phases; numbers say nothing.

    A condition is one word with its status, so that one that comes true again is none that is new.
    """
    if is_map(value):
        if "type" in value and "status" in value:
            parts = (str(value.get(name, "")) for name in ("type", "status", "reason", "message"))
            yield _CHANGING.sub("#", " ".join(parts))
        else:
            for inner in value.values():
                yield from _words(inner)
    elif is_list(value):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str) and value:
        yield _CHANGING.sub("#", value)


def _own_fields(live: Object, writes: Sequence[LoggedWrite], user: str) -> Iterator[FieldPath]:
    """Yield the fields that the operator holds: those that it sent first, of data and spec."""
    own = [write for write in writes if write.request.user == user]
    ours = {name for write in own for name in writers(write)}
    sent = [Values(write.request.body) for write in own if is_map(write.request.body)]
    places: list[FieldPath] = []
    for holder, tree in held(live).pairs:
        if (holder.manager, holder.operation) in ours and not holder.subresource:
            places += leaves(tree or {})
    values, there = Values(live), held(live)

    def order(place: FieldPath) -> tuple[bool, bool, bool, int]:
        is_default = all(body.at(place) is ABSENT for body in sent)
        is_meant = place[0] == "f:data" or place[-1] in _MEANT
        return is_default, not is_meant, place[0] == "f:metadata", len(place)

    for place in sorted(dict.fromkeys(places), key=order):
        is_field = place[-1].startswith("f:") and not is_key(place)
        is_left_out = place == _REPLICAS or place[0] == "f:status" or not _OWN.isdisjoint(place)
        is_there = values.at(place) is not ABSENT and not is_hollow(there, place)
        if is_field and is_there and not is_left_out:
            yield place


def _identity(live: Object) -> Object:
    meta = metadata(live)
    kept = {name: meta[name] for name in ("name", "namespace") if name in meta}
    return {**{k: live[k] for k in ("apiVersion", "kind") if k in live}, "metadata": kept}


def _with(obj: Object, places: Mapping[FieldPath, Any]) -> Object:
    for place, value in places.items():
        obj = with_value(obj, place, value)
    return obj


def _uid(obj: Object) -> str:
    return str(metadata(obj).get("uid"))


def _text(child: WatchedChild, place: FieldPath, value: Any) -> str:
    return shown(child.object.kind, place, value)
