"""Author: how the operator treats the fields of whoever applies its resources."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import entry, held
from hedgerow.fields.paths import path_of, show
from hedgerow.fields.redaction import shown
from hedgerow.fields.sets import ABSENT, Values
from hedgerow.texts import numbered
from hedgerow_testing.audit.judging.causes import causes, taker
from hedgerow_testing.audit.judging.edits import held_fields, spread, with_value, without
from hedgerow_testing.audit.judging.findings import (
    AuditedObject,
    FieldHolder,
    FieldView,
    Finding,
    SampleView,
)
from hedgerow_testing.audit.judging.history import identified
from hedgerow_testing.audit.judging.values import differing, is_required, others, schema_at
from hedgerow_testing.audit.machine import AuditEnd
from hedgerow_tools.fields.edits import keyed
from hedgerow_tools.fields.sets import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_testing.api import Reply
    from hedgerow_testing.audit.judging.history import AuditKey
    from hedgerow_testing.audit.judging.recorder import FindingRecorder
    from hedgerow_testing.audit.machine import Machine

_MOST_FIELDS: Final = 200
_LISTED: Final = 60.0
_TRYING: Final = 60.0
"""Seconds for all dry runs of changed fields."""


@dataclass(slots=True)
class Sample:
    """One resource of the author: what is applied, and the fields that this made the author's."""

    manifest: Object
    key: AuditKey
    object: AuditedObject
    schema: Mapping[str, Any]
    fields: dict[FieldPath, Any]
    before: dict[FieldPath, tuple[FieldHolder, ...]]
    wanted: Object = field(default_factory=dict[str, Any])
    """What is applied now: without the fields that were found to be another manager's."""
    lost: set[FieldPath] = field(default_factory=set["FieldPath"])


class Author:
    """Applies the samples as `helm`, never by force, and looks at what becomes of them."""

    def __init__(self, machine: Machine, recorder: FindingRecorder) -> None:
        self._machine, self._recorder = machine, recorder
        self._api, self._log, self._name = machine.api, machine.log, machine.inputs.manager
        self.samples: list[Sample] = []
        self._waiting: list[Object] = []
        """Samples that a webhook of the operator has to admit."""
        self.tried = self.changed = 0
        self._good: dict[int, dict[FieldPath, Any]] = {}
        """For each sample the fields whose change met no conflict, with another value."""

    # What comes before the operator.

    def define(self) -> None:
        """Apply the definitions, and wait until they are established. Raises AuditEnd."""
        for definition in self._machine.inputs.definitions:
            name = definition["metadata"]["name"]
            reply = self._api.apply(definition, "audit")
            if not reply.ok:
                raise AuditEnd(f"the API server refused the definition {name}: {_said(reply)}")
        for definition in self._machine.inputs.definitions:
            self._establish(definition)

    def _establish(self, definition: Object) -> None:
        known: list[Object] = []

        def established() -> bool:
            status: Object = self._api.get(definition).body.get("status") or {}
            known[:] = status.get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in known)

        if self._machine.until(_LISTED, established):
            return
        why = "; ".join(f"{c['type']}: {c.get('message')}" for c in known if c["status"] == "False")
        name = definition["metadata"]["name"]
        raise AuditEnd(f"the definition {name} was not established: {why or 'no reason is given'}")

    def begin(self) -> None:
        """Apply the samples as their author, before the operator runs; tell all that are refused.

        Those that wait for a webhook are left for `begin_rest`. Raises AuditEnd.
        """
        inputs = self._machine.inputs
        named = {sample["metadata"].get("namespace", "") for sample in inputs.samples}
        made = {o["metadata"]["name"] for o in inputs.samples if _is_namespace(o)}
        for namespace in sorted(named - made - {""}):
            self._api.namespace(namespace)
        self._waiting = list(inputs.samples)
        refused: list[str] = []
        for number, manifest in enumerate(inputs.samples):
            said = self._refusal(manifest)
            if said and not _is_unreached(said):
                title = f"{manifest['kind']} {manifest['metadata']['name']}"
                file = f"{inputs.files[number]}: " if inputs.files else ""
                refused.append(f"{file}{title}: {said}")
        if refused:
            words = numbered(len(refused), "sample")
            raise AuditEnd(f"the API server refused {words}: {'; '.join(refused)}")
        self._begin_some()

    def begin_rest(self) -> None:
        """Apply the samples that had to wait for a webhook of the operator. Raises AuditEnd."""
        self._machine.until(self._machine.pace.start, self._begin_some)
        for manifest in self._waiting:
            title = f"{manifest['kind']} {manifest['metadata']['name']}"
            said = self._refusal(manifest) or "it was refused"
            raise AuditEnd(f"the sample {title} waited in vain: {said}{self._machine.tail()}")

    def _refusal(self, manifest: Object) -> str:
        """Return why the API server would not take a sample; empty if it would.

        A namespace is made, since nothing in it could be tried otherwise.
        """
        version, kind = manifest["apiVersion"], manifest["kind"]
        if self._resource(version, kind) is None:
            return (
                f"it does not know the kind {kind} of {version}; --crds names the directory of its"
                " definition"
            )
        dry = not _is_namespace(manifest)
        reply = self._api.apply(self._served(manifest), self._name, dry_run=dry)
        return "" if reply.ok else _said(reply)

    def _served(self, manifest: Object) -> Object:
        """Return a sample as it is served: one of a cluster-scoped kind has no namespace."""
        resource = self._resource(manifest["apiVersion"], manifest["kind"])
        if resource is None or resource["namespaced"]:
            return manifest
        meta = {k: v for k, v in manifest["metadata"].items() if k != "namespace"}
        return {**manifest, "metadata": meta}

    def _begin_some(self) -> bool:
        """Apply the samples that wait, and return whether none does any more."""
        left: list[Object] = []
        for manifest in map(self._served, self._waiting):
            reply = self._api.apply(manifest, self._name)
            if reply.ok:
                self.samples.append(self._begun(manifest, reply.body))
            else:
                left.append(manifest)
        self._waiting = left
        return not left

    def _begun(self, manifest: Object, live: Object) -> Sample:
        version, kind = manifest["apiVersion"], manifest["kind"]
        resource = self._resource(version, kind) or {}
        meta = manifest["metadata"]
        group = version.rpartition("/")[0]
        key = (group, str(resource.get("name")), meta.get("namespace", ""), meta["name"])
        known = dict(held_fields(live, self._name))
        fields = dict(islice(known.items(), _MOST_FIELDS))
        if left := len(known) - len(fields):
            note = f"{kind} {meta['name']} has {numbered(left, 'field')} more than are tried"
            self._recorder.notes[note] = None
        return Sample(
            manifest=manifest,
            key=key,
            object=identified(live, key),
            schema=self._machine.inputs.schema(version, kind),
            fields=fields,
            before={place: _holders(live, place) for place in fields},
            wanted=keyed(manifest, [entry(live, self._name) or {}]),
        )

    def _apply(self, manifest: Object, *, dry_run: bool = False) -> Reply:
        """Apply as the author, once the operator's webhook can be reached, as after a restart."""
        replies: list[Reply] = []

        def answered() -> bool:
            replies[:] = [self._api.apply(manifest, self._name, dry_run=dry_run)]
            return replies[0].ok or not _is_unreached(_said(replies[0]))

        self._machine.until(_LISTED, answered)
        return replies[0]

    def _resource(self, version: str, kind: str) -> Object | None:
        """Return how a kind is served; a new one is listed a moment after it is established."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kinds: list[Object] = []

        def listed() -> bool:
            served: list[Object] = self._api.raw("GET", root).body.get("resources") or []
            kinds[:] = [o for o in served if o["kind"] == kind and "/" not in o["name"]]
            return bool(kinds)

        is_ours = bool(self._machine.inputs.schema(version, kind))
        self._machine.until(_LISTED if is_ours else 0, listed)
        return kinds[0] if kinds else None

    # The same again, and each field changed, without anything changing.

    def reapply(self) -> None:
        """Apply the samples again, unchanged and unforced."""
        judged = 0
        for sample in self.samples:
            reply = self._apply(sample.manifest)
            self._conflicts(sample, reply, "reapply-conflict", is_lost=True)
            judged += reply.ok or reply.status == HTTPStatus.CONFLICT
        if judged:
            self._recorder.checked("reapply-conflict", numbered(judged, "sample"))

    def try_changes(self) -> None:
        """Change each field in a dry run, and remove each that may be absent."""
        tried = unfit = removed = left = 0
        deadline = time.monotonic() + _TRYING
        for number, sample in enumerate(self.samples):
            good = self._good.setdefault(number, {})
            for place, value in sample.fields.items():
                self._machine.attendant.check()
                if place in sample.lost:
                    continue
                if time.monotonic() > deadline:
                    left += 1
                    continue
                fits = self._try_change(sample, place, value, good)
                tried, unfit = tried + fits, unfit + (not fits)
                removed += self._try_removal(sample, place, value)
            tried += self._try_additions(sample)
        if unfit:
            self._recorder.notes[
                f"{numbered(unfit, 'field')} could not be changed: no other value was accepted"
            ] = None
        if left:
            self._recorder.notes[f"there was no time to try {numbered(left, 'field')}"] = None
        self.tried = tried
        if tried:
            self._recorder.checked("change-conflict", numbered(tried, "field"))
        if removed:
            self._recorder.checked("removal-kept", numbered(removed, "field"))

    def _try_change(
        self, sample: Sample, place: FieldPath, value: Any, good: dict[FieldPath, Any]
    ) -> bool:
        for other in others(value, schema_at(sample.schema, place)):
            body = with_value(sample.wanted, place, other)
            reply = self._apply(body, dry_run=True)
            if reply.status == HTTPStatus.CONFLICT:
                self._conflicts(sample, reply, "change-conflict")
                return True
            if reply.ok:
                good[place] = other
                return True
        return False

    def _try_removal(self, sample: Sample, place: FieldPath, value: Any) -> bool:
        """Look whether a field that is left out would be gone; a default of the schema is."""
        if is_required(sample.schema, place):
            return False
        reply = self._removed(sample, place, dry_run=True)
        if not reply.ok:
            return False
        left = Values(reply.body).at(place)
        others_hold = any(h.manager != self._name for h in _holders(reply.body, place))
        if left is not ABSENT and identical(left, value) and others_hold:
            self._found(
                sample, "removal-kept", place, reply.body, detail="it stays when it is removed"
            )
        return True

    def _removed(self, sample: Sample, place: FieldPath, *, dry_run: bool = False) -> Reply:
        """Apply a sample without a field; where the server takes no empty map, without that too."""
        reply = self._apply(without(sample.wanted, place), dry_run=dry_run)
        if reply.ok or reply.status == HTTPStatus.CONFLICT:
            return reply
        return self._apply(without(sample.wanted, place, keep_empty=False), dry_run=dry_run)

    def _try_additions(self, sample: Sample) -> int:
        """Set each field of the spec that the operator has filled in, in a dry run."""
        tried = 0
        live = self._api.get(sample.manifest).body
        for place in self._filled_in(live, sample):
            value = Values(live).at(place)
            write = taker(self._log.history.writes_of(sample.key), place, self._log.user)
            if write is None:
                continue
            for other in others(value, schema_at(sample.schema, place)):
                body = with_value(sample.wanted, place, other)
                reply = self._apply(body, dry_run=True)
                if reply.ok or reply.status == HTTPStatus.CONFLICT:
                    tried += 1
                    self._conflicts(sample, reply, "change-conflict")
                    break
        return tried

    # Real changes.

    def change(self) -> None:
        """Change one field of each sample at a time, and look what became of it."""
        most = self._machine.inputs.fields
        chosen = [spread(self._good.get(n, {}), most) for n in range(len(self.samples))]
        for turn in range(max(map(len, chosen), default=0)):
            places = [
                (number, sample, chosen[number][turn])
                for number, sample in enumerate(self.samples)
                if turn < len(chosen[number])
            ]
            done: list[tuple[Sample, FieldPath, Any]] = []
            mark = self._log.changes
            for number, sample, place in places:
                body = with_value(sample.wanted, place, self._good[number][place])
                before = Values(self._api.get(sample.manifest).body).at(place)
                reply = self._apply(body)
                # The server itself may spell it in another way, as quantities of its own kinds.
                now = Values(reply.body).at(place)
                if reply.ok and not identical(now, before):
                    done.append((sample, place, now))
                    self.changed += 1
            self._machine.attendant.progress(
                "changing " + ", ".join(f"{path_of(place)}" for _, _, place in places)
            )
            self._machine.settle()
            for change in done:
                self._after_change(*change, mark)
        if self.changed:
            self._recorder.checked("change-reverted", numbered(self.changed, "field"))

    def _after_change(self, sample: Sample, place: FieldPath, value: Any, mark: int) -> None:
        live = self._api.get(sample.manifest).body
        now = Values(live).at(place)
        since = [write for write in self._log.since(mark) if write.request.key == sample.key]
        is_kept = now is not ABSENT and identical(now, value)
        if not is_kept and taker(since, place, self._log.user) is not None:
            detail = f"it was set to {_text(sample, place, value)}, and the operator wrote it again"
            self._found(sample, "change-reverted", place, live, detail=detail, before=value)
        body = with_value(sample.wanted, place, value)
        reply = self._apply(body, dry_run=True)
        self._conflicts(sample, reply, "reapply-conflict", is_lost=True)

    def remove(self) -> None:
        """Remove one field of each sample, look what is left of it, and restore it."""
        for number, sample in enumerate(self.samples):
            for place in spread(self._good.get(number, {}), _MOST_FIELDS):
                if is_required(sample.schema, place) or place[0] == "f:metadata":
                    continue
                if self._removed(sample, place).ok:
                    self._machine.attendant.progress(f"removing {path_of(place)}")
                    break
        self._machine.settle()
        # What was filled in meanwhile is held by others: that is no conflict of the same manifest.
        self.restore("change-conflict")

    def restore(self, rule: str = "reapply-conflict") -> None:
        """Apply the samples as they were, and wait until the operator is quiet."""
        for sample in self.samples:
            for _ in range(2):  # without the fields that are refused, the others are applied
                reply = self._apply(sample.wanted)
                self._conflicts(sample, reply, rule, is_lost=True)
                if reply.ok:
                    break
        self._machine.settle()

    def delete(self) -> list[str]:
        """Delete the samples, and return those that are still there after a while."""
        for sample in reversed(self.samples):
            self._api.delete(sample.manifest)
        left: list[str] = []

        def gone() -> bool:
            left[:] = [
                str(sample.object)
                for sample in self.samples
                if not _is_namespace(sample.manifest)
                and self._api.get(sample.manifest).status != HTTPStatus.NOT_FOUND
            ]
            return not left

        self._machine.until(_LISTED, gone)
        return left

    def views(self) -> tuple[SampleView, ...]:
        """Return the fields of each sample, with who held them at first and who does now."""
        return tuple(self._view(sample) for sample in self.samples)

    def _view(self, sample: Sample) -> SampleView:
        live = self._api.get(sample.manifest).body
        places = dict.fromkeys(
            [*sample.fields, *self._filled_in(live, sample, ("f:spec", "f:metadata"))]
        )
        values = Values(live)
        fields = (
            FieldView(
                tuple(map(show, place)),
                "" if values.at(place) is ABSENT else _text(sample, place, values.at(place)),
                sample.before.get(place, ()),
                _holders(live, place),
            )
            for place in places
        )
        return SampleView(sample.object, tuple(fields))

    def _conflicts(self, sample: Sample, reply: Reply, rule: str, *, is_lost: bool = False) -> None:
        """Record each field of a conflict; from then on the author does without what is lost."""
        if reply.status != HTTPStatus.CONFLICT:
            return
        self._log.poll()
        live = self._api.get(sample.manifest).body
        known = {
            path_of(place): place for place in (*sample.fields, *self._filled_in(live, sample))
        }
        for path in reply.conflicts:
            place = known.get(path) or next(
                (known[key] for key in known if key.startswith(path) or path.startswith(key)), None
            )
            if place is None:
                self._recorder.add(Finding(rule, sample.object, "it conflicts", path))
                continue
            self._found(sample, rule, place, live)
            if is_lost and place not in sample.lost:
                sample.lost.add(place)
                sample.wanted = without(sample.wanted, place)

    def _found(
        self,
        sample: Sample,
        rule: str,
        place: FieldPath,
        live: Object,
        *,
        detail: str = "",
        before: Any = ABSENT,
    ) -> None:
        path = path_of(place)
        if any(self._recorder.has(r, path, sample.object.key) for r in ("reapply-conflict", rule)):
            return
        self._log.poll()
        now, write = Values(live).at(place), self._taker(sample, place)
        was = sample.fields.get(place, ABSENT) if before is ABSENT else before
        if write and before is ABSENT:
            was = Values(write.before or {}).at(place)
        holder = next((h for h in _holders(live, place) if h.manager != self._name), None)
        if write is None and (holder is None or not self._is_own(holder)):
            who = holder or "another program than the operator"
            self._recorder.notes[f"{path} of {sample.object} was taken by {who}"] = None
            return
        text, present = _texts(sample, place, was, now)
        finding = Finding(
            rule,
            sample.object,
            detail or f"{holder or 'another manager'} holds it",
            path,
            text,
            present,
            holder,
            write.request.evidence if write else None,
            causes(write, place),
        )
        self._recorder.add(finding)

    def _filled_in(
        self, live: Object, sample: Sample, parts: tuple[str, ...] = ("f:spec",)
    ) -> Iterator[FieldPath]:
        """Yield the fields of an object that others hold, and the author did not set."""
        managers = {holder.manager for holder, _ in held(live).pairs} - {self._name}
        for place in _leaves(live, managers):
            own = any(place[: len(o)] == o or o[: len(place)] == place for o in sample.fields)
            if place[0] in parts and not own:
                yield place

    def _is_own(self, holder: FieldHolder) -> bool:
        return (holder.manager, holder.operation) in self._log.managers

    def _taker(self, sample: Sample, place: FieldPath) -> Any:
        return taker(self._log.history.writes_of(sample.key), place, self._log.user)


def _leaves(live: Object, managers: set[str]) -> Iterator[FieldPath]:
    places = (
        place
        for holder, tree in held(live).pairs
        if holder.manager in managers and not holder.subresource
        for place in leaves(tree or {})
    )
    yield from dict.fromkeys(place for place in places if place[-1].startswith("f:"))


def _holders(live: Object, place: FieldPath) -> tuple[FieldHolder, ...]:
    pairs = held(live).at(place).pairs
    return tuple(
        dict.fromkeys(FieldHolder(h.manager, h.operation, h.subresource) for h, _ in pairs)
    )


def _text(sample: Sample, place: FieldPath, value: Any) -> str:
    return shown(sample.object.kind, place, value)


def _texts(sample: Sample, place: FieldPath, was: Any, now: Any) -> tuple[str | None, str | None]:
    """Return two values as texts, those of lists and maps by what differs: `[0].size: 1Gi`."""
    inside, *values = ((), was, now) if ABSENT in (was, now) else differing(was, now)
    where = f"{path_of(inside)}: " if inside else ""
    before, after = (
        None if value is ABSENT else f"{where}{_text(sample, (*place, *inside), value)}"
        for value in values
    )
    return before, after


def _is_unreached(said: str) -> bool:
    """Return whether the API server could not ask a webhook."""
    return "failed calling webhook" in said or "failed to call webhook" in said


def _is_namespace(manifest: Object) -> bool:
    return manifest["kind"] == "Namespace"


def _said(reply: Reply) -> str:
    return str(reply.body.get("message") or reply.status)
