"""Server: a cluster in memory that knows field ownership, requests answered by value.

It has the semantics that hedgerow leans on, and `tests/cluster/test_conformance.py` holds it to the
real server's. Time is `now`, in seconds, and moves only when a test moves it.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hedgerow.kube.watch import Changed, Listing
from hedgerow_testing.memory import admission, answers, updater
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.typed import Untyped, check, same
from hedgerow_testing.memory.updater import BEFORE_FIRST_APPLY, Conflicts, Entry, Identity, Manager

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import ApiResource
    from hedgerow_testing.memory.kind import ServedKind
    from hedgerow_testing.memory.schema import Object

StoredKey = tuple[str, str, str, str]
REPLICAS = ("f:spec", "f:replicas")


class Server:
    """Objects by group, kind, namespace and name, and every event so far."""

    def __init__(
        self, kinds: Iterable[ServedKind] = BUILTIN, namespaces: Iterable[str] = ("default",)
    ) -> None:
        self.now = 1_767_225_600
        self.version = 100
        self.writes = 0
        self._kinds = {kind.key: kind for kind in kinds}
        self._objects: dict[StoredKey, Object] = {}
        self._events: list[Changed] = []
        self._namespaces = dict.fromkeys(namespaces, "Active")
        self._births = 0

    # --- writes -------------------------------------------------------------------------------

    def apply(
        self,
        body: Object,
        manager: str,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> tuple[Object, bool]:
        """Server-side apply: the object, and whether it was created. Raises Refused."""
        kind, key = self._kind(body), self._key(body)
        live = self._objects.get(key)
        if body["metadata"].get("managedFields") is not None:
            raise answers.bad_request("metadata.managedFields must be nil")
        self._admit_apply(body, live, subresource)
        who = Manager("Apply", manager, body["apiVersion"], subresource)
        base, entries = self._base(kind, live, who)
        try:
            check(kind.schema, body)
            new, after = updater.apply(
                kind.schema,
                base,
                body,
                entries,
                who,
                reset=kind.unwritten(subresource),
                force=force,
            )
        except Untyped as error:
            raise answers.untyped(str(error)) from error
        except Conflicts as error:
            raise answers.conflict(error) from error
        before = entries.get(who.identity)
        time = (before.time if before else None) if same(base, new) else self.now
        if who.identity in after:
            after[who.identity] = Entry(who, after[who.identity].fields, time)
        return self._store(kind, key, live, new, after, subresource, dry_run=dry_run), live is None

    def create(self, body: Object, manager: str) -> Object:
        """POST: every field, defaults included, is the manager's. Raises Refused."""
        kind, key = self._kind(body), self._key(body)
        self._admit_create(key[2])
        body = admission.decoded(kind, body, None, "")
        if key in self._objects:
            # Whether one of its name exists is looked up last, when all else would be accepted.
            admission.created(kind, body, uid="", stamp="", number=0)
            raise answers.exists(key[3])
        return self._store_update(kind, key, None, body, manager, "")

    def update(self, body: Object, manager: str, subresource: str = "") -> Object:
        """PUT. Raises Refused."""
        kind, key = self._kind(body), self._key(body)
        live = self._live(key)
        body = admission.decoded(kind, body, live, subresource)
        return self._store_update(kind, key, live, body, manager, subresource)

    def merge(self, target: Object, patch: Object, manager: str, subresource: str = "") -> Object:
        """Patch by JSON merge patch. Raises Refused."""
        body = admission.patched(self._live(self._key(target)), patch)
        try:
            return self.update(body, manager, subresource)
        except answers.Refused as error:
            if error.status["reason"] != "BadRequest":
                raise
            raise answers.invalid({"patch": f"Invalid value: {error}"}) from error

    def scale(self, target: Object, replicas: int, manager: str) -> Object:
        """Write the scale subresource, as `kubectl scale` and autoscalers do. Raises Refused."""
        return self.merge(target, {"spec": {"replicas": replicas}}, manager, "scale")

    def delete(self, target: Object, *, uid: str = "", version: str = "") -> None:
        """DELETE, dependents in the background. Raises Refused."""
        kind, key = self._kind(target), self._key(target)
        live = self._live(key)
        metadata = live["metadata"]
        if uid not in {"", metadata["uid"]} or version not in {"", metadata["resourceVersion"]}:
            raise answers.stale("the precondition does not match the record")
        if not metadata.get("finalizers"):
            self._remove(key, live)
        elif "deletionTimestamp" not in metadata:
            marks = {"deletionTimestamp": self._stamp(self.now), "deletionGracePeriodSeconds": 0}
            if kind.generations:
                marks["generation"] = metadata["generation"] + 1
            self._put(key, {**live, "metadata": {**metadata, **marks}}, "MODIFIED")

    def collect(self) -> int:
        """Delete what has owners and none of them exists any more; give how many."""
        alive = {live["metadata"]["uid"] for live in self._objects.values()}
        orphans = [
            live
            for live in self._objects.values()
            if (owners := live["metadata"].get("ownerReferences"))
            and not any(owner["uid"] in alive for owner in owners)
        ]
        for orphan in orphans:
            self.delete(orphan)
        return len(orphans)

    def fork(self) -> Server:
        """Return a copy that goes its own way from here, to ask what would happen."""
        other = copy.copy(self)
        other._objects = dict(self._objects)  # noqa: SLF001 - of its own kind
        other._events = list(self._events)  # noqa: SLF001
        other._namespaces = dict(self._namespaces)  # noqa: SLF001
        return other

    def open_namespace(self, name: str) -> None:
        """Have a namespace, if it is not there already."""
        self._namespaces.setdefault(name, "Active")

    def terminate(self, namespace: str) -> None:
        """Begin to delete a namespace: nothing is created in it any more."""
        self._namespaces[namespace] = "Terminating"

    def forget_namespace(self, name: str) -> None:
        """Have a namespace gone."""
        self._namespaces.pop(name, None)

    # --- what no request does -----------------------------------------------------------------

    def put(self, obj: Object) -> Object:
        """Store an object as it is, as an older server or another definition let it through."""
        key = self._key(obj)
        is_new = key not in self._objects
        self._births += is_new
        metadata = {**({"uid": _uid(self._births)} if is_new else {}), **obj["metadata"]}
        stored = copy.deepcopy({**obj, "metadata": metadata})
        return self._put(key, stored, "ADDED" if is_new else "MODIFIED")

    def serve(self, *kinds: ServedKind) -> None:
        """Serve more kinds from now on."""
        self._kinds |= {kind.key: kind for kind in kinds}

    # --- reads --------------------------------------------------------------------------------

    @property
    def apis(self) -> tuple[ApiResource, ...]:
        """What discovery lists."""
        return tuple(kind.api for kind in self._kinds.values())

    def all(self) -> dict[StoredKey, Object]:
        """Return every object there is, by its key."""
        return copy.deepcopy(self._objects)

    def is_terminating(self, namespace: str) -> bool:
        """Return whether a namespace is being deleted."""
        return self._namespaces.get(namespace) == "Terminating"

    def api(self, api_version: str, kind: str) -> ApiResource | None:
        """Return what discovery lists of a kind, or None if the model does not know it."""
        apis = [known.api for known in self._kinds.values() if known.api.kind == kind]
        return next((api for api in apis if api.group_version == api_version), None)

    def get(self, target: Object) -> Object | None:
        """Return the object of the target's kind, namespace and name."""
        return copy.deepcopy(self.peek(target))

    def peek(self, target: Object) -> Object | None:
        """Return the object as it is stored, without a copy; not to be changed."""
        return self._objects.get(self._key(target))

    def list(self, group: str, kind: str, namespace: str = "") -> Listing:
        """Return all objects of a kind, of one namespace or of all, by namespace and name."""
        objects = [
            copy.deepcopy(live)
            for key, live in sorted(self._objects.items())
            if key[:2] == (group, kind) and namespace in {"", key[2]}
        ]
        return Listing(tuple(objects), str(self.version))

    def events_since(
        self, version: int | str, api: ApiResource | None = None
    ) -> tuple[Changed, ...]:
        """Return every event after a resource version, in order; of one kind if named."""
        named = None if api is None else (api.group_version, api.kind)
        return tuple(
            copy.deepcopy(event)
            for event in self._events
            if int(event.version) > int(version)
            and named in {None, (event.object["apiVersion"], event.object["kind"])}
        )

    # --- how --------------------------------------------------------------------------------

    def _kind(self, target: Object) -> ServedKind:
        group = target["apiVersion"].rpartition("/")[0]
        kind = self._kinds.get((group, target["kind"]))
        if kind is None or kind.api.group_version != target["apiVersion"]:
            raise answers.Refused(404, "NotFound", "the server could not find this resource")
        return kind

    def _key(self, target: Object) -> StoredKey:
        metadata = target["metadata"]
        group, kind = self._kind(target).key
        return group, kind, metadata.get("namespace", ""), metadata["name"]

    def _live(self, key: StoredKey) -> Object:
        if key not in self._objects:
            raise answers.missing(key[3])
        return self._objects[key]

    def _admit_apply(self, body: Object, live: Object | None, subresource: str) -> None:
        metadata = body["metadata"]
        if live is not None:
            return
        if subresource:
            raise answers.missing(metadata["name"])
        if metadata.get("uid"):
            raise answers.stale("uid mismatch: no existing object was found")
        self._admit_create(metadata.get("namespace", ""))

    def _admit_create(self, namespace: str) -> None:
        if namespace and namespace not in self._namespaces:
            raise answers.missing(namespace)
        if self._namespaces.get(namespace) == "Terminating":
            raise answers.terminating(namespace)

    def _base(
        self, kind: ServedKind, live: Object | None, who: Manager
    ) -> tuple[Object, dict[Identity, Entry]]:
        """Return the object to merge into, and its entries; an untracked one's are booked first."""
        if live is None:
            return dict(kind.empty), {}
        base, entries = admission.bare(live), self._entries(live)
        if not entries:
            first = Manager("Update", BEFORE_FIRST_APPLY, who.version, who.subresource)
            entries = updater.update(
                kind.schema,
                kind.empty,
                base,
                {},
                first,
                now=self.now,
                reset=kind.unwritten(who.subresource),
            )
        return base, entries

    def _store_update(
        self,
        kind: ServedKind,
        key: StoredKey,
        live: Object | None,
        body: Object,
        manager: str,
        subresource: str,
    ) -> Object:
        given, new = body["metadata"].get("managedFields"), kind.schema.normal(body)
        who = Manager("Update", manager, kind.api.group_version, subresource)
        if live is not None and (given == [{}] or (given == [] and kind.builtin)):
            return self._store(kind, key, live, new, {}, subresource)
        # An update that brings entries sets them, as `kubectl` does to migrate them.
        entries = self._entries(body if given and not subresource else live) if live else {}
        if live is not None and not entries:
            return self._store(kind, key, live, new, {}, subresource)
        if subresource == "scale" and not any(REPLICAS in e.fields for e in entries.values()):
            return self._store(kind, key, live, new, entries, subresource)  # nobody to take it from
        base = admission.bare(live) if live else kind.empty
        reset = kind.unwritten(subresource)
        read = _without_no_replicas(new) if subresource == "scale" else new
        try:
            after = updater.update(kind.schema, base, read, entries, who, now=self.now, reset=reset)
        except Untyped as error:
            raise answers.invalid({"": str(error)}) from error
        return self._store(kind, key, live, new, after, subresource)

    def _store(
        self,
        kind: ServedKind,
        key: StoredKey,
        live: Object | None,
        new: Object,
        entries: dict[Identity, Entry],
        subresource: str,
        *,
        dry_run: bool = False,
    ) -> Object:
        if live is None:
            self._births += not dry_run
            uid = _uid(self._births)
            stamp = self._stamp(self.now)
            stored = admission.created(kind, new, uid=uid, stamp=stamp, number=self._births)
        else:
            stored = admission.updated(kind, live, new, subresource)
            entries = self._unless_only_times(live, stored, entries)
        managed = updater.written(entries, self._stamp)
        if managed:
            stored = {**stored, "metadata": {**stored["metadata"], "managedFields": managed}}
        if stored == live or dry_run:
            return copy.deepcopy(stored)
        metadata = stored["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self._remove(key, stored)
            return copy.deepcopy(stored)
        return copy.deepcopy(self._put(key, stored, "ADDED" if live is None else "MODIFIED"))

    def _unless_only_times(
        self, live: Object, stored: Object, entries: dict[Identity, Entry]
    ) -> dict[Identity, Entry]:
        """Take the new times back when nothing else changed, so that no write comes of it."""
        before = live["metadata"].get("managedFields", [])
        after = updater.written(entries, self._stamp)
        untimed = [[{**e, "time": ""} for e in managed] for managed in (before, after)]
        if untimed[0] == untimed[1] and admission.bare(live) == stored:
            return self._entries(live)
        return entries

    def _put(self, key: StoredKey, stored: Object, event: str) -> Object:
        self.version += 1
        self.writes += 1
        metadata = {**stored["metadata"], "resourceVersion": str(self.version)}
        self._objects[key] = stored = {**stored, "metadata": metadata}
        self._append_event(event, stored)
        return stored

    def _remove(self, key: StoredKey, last: Object) -> None:
        self.version += 1
        self.writes += 1
        del self._objects[key]
        metadata = {**last["metadata"], "resourceVersion": str(self.version)}
        self._append_event("DELETED", {**last, "metadata": metadata})

    def _append_event(self, event: Any, last: Object) -> None:
        self._events.append(Changed(event, copy.deepcopy(last), str(self.version)))

    def _entries(self, live: Object) -> dict[Identity, Entry]:
        return updater.read_entries(live["metadata"].get("managedFields"), _second)

    def _stamp(self, second: int) -> str:
        return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _without_no_replicas(obj: Object) -> Object:
    """Return an object as the server books a scale: a scale to 0 has no replicas to be held."""
    spec: Object = obj.get("spec", {})
    if spec.get("replicas") != 0:
        return obj
    return {**obj, "spec": {name: value for name, value in spec.items() if name != "replicas"}}


def _second(stamp: str | None) -> int | None:
    return int(datetime.fromisoformat(stamp).timestamp()) if stamp else None


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"
