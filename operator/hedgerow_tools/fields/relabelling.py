"""Relabelling plan: managed fields entries of one object that get another manager or version.

An adoption works as the upgrade in client-go (util/csaupgrade) does, which kubectl and Helm 4 use:
the entry of the new manager's applies gets what the other entries hold, or some fields of theirs,
and these lose it, in one write without any value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow.fields.managed_fields import Holder, entries, held
from hedgerow.fields.paths import SELF, path_of
from hedgerow.fields.sets import ABSENT, Values, is_key, members, subtree
from hedgerow.objects import annotation, metadata
from hedgerow_tools.fields.sets import leaves, union
from hedgerow_tools.fields.transfers import Move, MoveRefused, shown
from hedgerow_tools.fields.unserved import unserved

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from hedgerow.fields.managed_fields import Entries
    from hedgerow.fields.paths import Tree
    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.transfers import Fate

APPLY: Final = "Apply"
UPDATE: Final = "Update"
STATUS: Final = "status"
KUBECTL: Final = "kubectl"
"""Who applies by `kubectl apply --server-side`."""
CLIENT_SIDE: Final = "kubectl-client-side-apply"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Who holds what was there before managed fields: client-side apply, defaults and all others."""
HELM: Final = frozenset({"Helm", "helm"})
"""Names of Helm 3, which updates; Helm 4 applies as `helm`."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
COPY: Final = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
"""Whoever updates this annotation, applies on the client side; kubectl tells them by it too."""


class ValuesNeeded(MoveRefused):
    """Only the whole object tells whether its fields have the same names in several versions."""


def is_client_side_apply(holder: Holder, tree: Tree) -> bool:
    """Return whether an entry is of client-side apply, under whichever name."""
    return holder.operation == UPDATE and (
        holder.manager == CLIENT_SIDE or subtree(tree, COPY) is not None
    )


def replaces_copy(live: Object, manager: str) -> bool:
    """Return whether an apply as this manager replaces client-side apply's copy of the manifest.

    The API server takes what is applied as `kubectl` for a whole manifest (kubernetes/kubernetes,
    managedfields/internal/lastappliedupdater.go). `kubectl apply` then finds our few fields in the
    copy, with `uid` and `resourceVersion`, and sends nulls for them: refused, whatever its file is.
    """
    return manager == KUBECTL and bool(annotation(live, LAST_APPLIED))


@dataclass(frozen=True, slots=True)
class HolderName:
    """Entries as they are named: of a manager, all or those of an operation and subresource.

    The status is left to its writer: without a `subresource` its entries are not meant.
    """

    manager: str
    operation: str | None = None
    subresource: str | None = None

    @classmethod
    def parse(cls, text: str) -> HolderName:
        """Return the name that `hedgerow owners` prints: `a`, `a Update`, `a Update scale`."""
        match = _NAME.fullmatch(text)
        return cls(*match.groups()) if match else cls(text)

    def fits(self, holder: Holder, tree: Tree) -> bool:
        """Return whether an entry is meant, under one of the names of its manager."""
        if self.operation not in (None, holder.operation):
            return False
        if self.subresource is None and holder.subresource == STATUS:
            return False
        if self.subresource not in (None, holder.subresource):
            return False
        return holder.manager == self.manager or (
            holder.operation == UPDATE and self._is_other_name(holder, tree)
        )

    def _is_other_name(self, holder: Holder, tree: Tree) -> bool:
        if self.manager in HELM and holder.manager in HELM:
            return True
        return self.manager == CLIENT_SIDE and is_client_side_apply(holder, tree)


_NAME: Final = re.compile(r"(.+?) (Update|Apply)(?: (\S+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Takeover:
    """Whose entries of an object become those of the applier `to`."""

    named: frozenset[HolderName]
    to: str

    @property
    def managers(self) -> frozenset[str]:
        """The managers of these entries."""
        return frozenset(name.manager for name in self.named)

    def takes(self, holder: Holder, tree: Tree) -> bool:
        """Return whether an entry is taken over."""
        if holder.is_applier(self.to, _endpoint(holder)):
            return False
        return any(name.fits(holder, tree) for name in self.named)

    def takes_first(self, live: Object) -> bool:
        """Return whether what an object without managed fields has is taken over."""
        if metadata(live).get("managedFields"):
            return False
        is_applied = bool(annotation(live, LAST_APPLIED))
        return BEFORE_FIRST_APPLY in self.managers or (CLIENT_SIDE in self.managers and is_applied)


@dataclass(frozen=True, slots=True)
class Relabelling:
    """The effect of a write: `edits` maps an entry's index to the entries in its place.

    `sources` are the holders of the entries that lose fields, with the number of these.
    `before` and `after` are all entries of the managers that take part.
    """

    edits: Mapping[int, Sequence[Object]]
    sources: tuple[tuple[Holder, int], ...]
    before: tuple[Object, ...]
    after: tuple[Object, ...]


FieldFate = Literal["moved", "let go", "kept"]
_NOTHING: Final[Tree] = {}


def takeover(
    live: Object,
    asked: Takeover,
    served: Collection[str],
    where: Callable[[FieldPath], FieldFate] | None = None,
) -> Relabelling | None:
    """Return how entries, or the fields that `where` sorts, become the new manager's.

    None if there is nothing to do. Raises MoveRefused if ownership would be lost, and ValuesNeeded
    for an object of metadata alone if its values have to be looked at.
    """
    raw = _entries(live)
    holders = [(holder, tree) for holder, _, tree in entries(live)]
    parts: dict[int, tuple[Tree, Tree]] = {}
    lost: dict[int, int] = {}
    for index, (holder, tree) in enumerate(holders):
        if not asked.takes(holder, tree):
            continue
        moved, kept = _parted(tree, where) if where else (tree, _NOTHING)
        count = _count(tree) - _count(kept)
        if count or where is None:
            lost[index] = count
            parts[index] = moved, kept
    if not parts:
        return None
    if why := refusal(live, served):
        raise MoveRefused(why)
    edits: dict[int, Sequence[Object]] = {
        index: ({**raw[index], "fieldsV1": kept},) if kept else ()
        for index, (_, kept) in parts.items()
    }
    for endpoint in dict.fromkeys(_endpoint(holders[index][0]) for index in parts):
        here = [n for n in parts if _endpoint(holders[n][0]) == endpoint and parts[n][0]]
        if not here:
            continue
        own = [n for n, (holder, _) in enumerate(holders) if holder.is_applier(asked.to, endpoint)]
        some = [raw[n] for n in own]
        some += [{**raw[n], "fieldsV1": parts[n][0]} for n in here]
        label = {"manager": asked.to, "operation": APPLY, "apiVersion": _version(live, some)}
        edits |= dict.fromkeys(own, ())
        at = (*own, *here)[0]
        edits[at] = (_labelled(some, label, endpoint), *edits[at])
    return _relabelling(raw, edits, lost)


def _parted(
    tree: Tree, where: Callable[[FieldPath], FieldFate], above: FieldPath = ()
) -> tuple[Tree, Tree]:
    """Return the parts of a tree that move and that stay; what is let go is in neither.

    A map or list item goes along with what is in it, and so do the keys of an item. They are in
    both parts if something of it is in both. If all else is let go, the keys go where they are told
    to, and the item with them.
    """
    along = {element for element in tree if element == SELF or is_key((*above, element))}
    if len(along) == len(tree):
        along &= {SELF}
    moved: Object = {}
    kept: Object = {}
    for element in (element for element in tree if element not in along):
        below, place = tree[element], (*above, element)
        if any(inner != SELF for inner in below):
            inner_moved, inner_kept = _parted(below, where, place)
            moved |= {element: inner_moved} if inner_moved else {}
            kept |= {element: inner_kept} if inner_kept else {}
        elif (destination := where(place)) != "let go":
            (moved if destination == "moved" else kept)[element] = below
    for key in along - {SELF} if not (moved or kept) else ():
        if (destination := where((*above, key))) != "let go":
            (moved if destination == "moved" else kept)[key] = tree[key]
    for part in (moved, kept):
        part |= {element: tree[element] for element in along if part}
    return moved, kept


def moves(live: Object, change: Relabelling) -> tuple[Move, ...]:
    """Return each field that a holder loses, with its value and who holds it then."""
    raw = _entries(live)
    then = [entry for index, old in enumerate(raw) for entry in change.edits.get(index, (old,))]
    before, after, values = held(live), held(_having(then)), Values(live)

    def lost() -> Iterator[Move]:
        for holder, _, tree in entries(live):
            for field_path in leaves(tree):
                now, was = _members(after, field_path), _members(before, field_path)
                if _who(holder) in now:
                    continue
                new = [who[0] for who in now if who not in was]
                to = tuple(dict.fromkeys(new or (manager for manager, *_ in now)))
                fate: Fate = "taken" if new else "kept" if to else "unowned"
                yield Move(field_path, shown(values, field_path), holder, fate, to)

    return tuple(lost())


def _members(there: Entries, field_path: FieldPath) -> dict[tuple[str, ...], None]:
    """Return who holds a place itself, each as its manager, operation and subresource."""
    pairs = there.at(field_path).pairs
    return dict.fromkeys(_who(holder) for holder, tree in pairs if not tree or SELF in tree)


def _who(holder: Holder) -> tuple[str, ...]:
    return holder.manager, holder.operation, holder.subresource


def refusal(live: Object, served: Collection[str]) -> str:
    """Return why nothing may be written: with unserved entries any write might empty them all."""
    gone = unserved(_entries(live), served)
    if not gone:
        return ""
    return (
        f"it has fields recorded in {_versions(gone)}, which the server does not serve, and which"
        " may block every apply: first `hedgerow adopt --repair`"
    )


def repair(live: Object, version: str, served: Collection[str]) -> Relabelling | None:
    """Return how entries of unserved versions become those of a served one; None if none are.

    Who holds them stays as it is. `version` is a served group version of the object.
    """
    raw = _entries(live)
    gone = {entry["apiVersion"] for entry in unserved(raw, served)}
    lost = [index for index, entry in enumerate(raw) if entry.get("apiVersion") in gone]
    edits: dict[int, Sequence[Object]] = {}
    first: dict[tuple[Any, ...], int] = {}
    groups: dict[int, list[Object]] = {}
    for index, entry in enumerate(raw):
        moved = {**entry, "apiVersion": version} if index in lost else entry
        start = first.setdefault(_identity(moved), index)
        groups.setdefault(start, []).append(moved)
        if start != index:
            edits[index] = ()
    for index, some in groups.items():
        merged = {**some[0], "fieldsV1": _union_of(some)} if len(some) > 1 else some[0]
        if merged != raw[index]:
            edits[index] = (merged,)
    counts = {index: _count(_tree(raw[index])) for index in lost}
    return _relabelling(raw, edits, counts) if gone else None


def restoration(
    live: Object, before: Sequence[Object], after: Sequence[Object]
) -> Relabelling | None:
    """Return how the entries of some managers become again what they were `before`.

    None if they are so already. Raises MoveRefused if they are no longer as `after`.
    """
    managers = {entry.get("manager") for entry in (*before, *after)}
    raw = _entries(live)
    present = [index for index, entry in enumerate(raw) if entry.get("manager") in managers]
    now = _content(raw[index] for index in present)
    if now == _content(before):
        return None
    if now != _content(after) or not raw:
        names = ", ".join(sorted(str(name) for name in managers))
        raise MoveRefused(f"one of its managers has written it since ({names}): it stays as it is")
    edits: dict[int, Sequence[Object]] = dict.fromkeys(present, ())
    # Where the managers hold nothing any more, their entries come beside another one.
    edits[(*present, 0)[0]] = tuple(before) if present else (raw[0], *before)
    lost = [raw[n] for n in present if _content([raw[n]]) - _content(before)]
    sources = tuple((holder, _count(tree)) for holder, _, tree in entries(_having(lost)))
    return Relabelling(edits, sources, tuple(raw[n] for n in present), tuple(before))


def changed(live: Object, relabelling: Relabelling) -> tuple[Object, ...] | None:
    """Return the managers' entries of an object if they are not as a write was to make them."""
    managers = {entry.get("manager") for entry in (*relabelling.before, *relabelling.after)}
    now = tuple(entry for entry in _entries(live) if entry.get("manager") in managers)
    return None if _content(now) == _content(relabelling.after) else now


def _relabelling(
    raw: Sequence[Object], edits: Mapping[int, Sequence[Object]], lost: Mapping[int, int]
) -> Relabelling:
    given = [entry for some in edits.values() for entry in some]
    managers = {entry.get("manager") for entry in (*given, *(raw[index] for index in edits))}
    new = [edited for index, entry in enumerate(raw) for edited in edits.get(index, (entry,))]
    holders = [holder for holder, *_ in entries(_having(raw))]
    return Relabelling(
        edits,
        tuple((holders[index], count) for index, count in lost.items()),
        tuple(entry for entry in raw if entry.get("manager") in managers),
        tuple(entry for entry in new if entry.get("manager") in managers),
    )


def _entries(live: Object) -> list[Object]:
    return metadata(live).get("managedFields") or []


def _having(some: Sequence[Object]) -> Object:
    return {"metadata": {"managedFields": some}}


def _endpoint(holder: Holder) -> str:
    """Return the endpoint at which an apply declares these fields: the status, or the object."""
    return STATUS if holder.subresource == STATUS else ""


def _version(live: Object, some: Sequence[Object]) -> str:
    """Return the version for the fields of several entries.

    Of several versions it is that of the object, if it has all the places of the others.
    """
    versions = {str(entry.get("apiVersion")) for entry in some}
    if len(versions) == 1:
        return versions.pop()
    if live.keys() <= {"apiVersion", "kind", "metadata"}:
        raise ValuesNeeded(f"its fields are recorded in several versions, {_versions(some)}")
    version, values = str(live["apiVersion"]), Values(live)
    others = (_tree(entry) for entry in some if entry.get("apiVersion") != version)
    for field_path in (place for tree in others for place in leaves(tree)):
        if values.at(field_path) is ABSENT:
            raise MoveRefused(
                f"its fields are recorded in several versions, {_versions(some)}, and"
                f" {path_of(field_path)} is not in {version}"
            )
    return version


def _labelled(some: Sequence[Object], label: Object, endpoint: str) -> Object:
    first = {name: value for name, value in some[0].items() if name != "subresource"}
    below = {"subresource": endpoint} if endpoint else {}
    return {**first, **label, "fieldsV1": _union_of(some), **below}


def _tree(entry: Object) -> Tree:
    return entry.get("fieldsV1") or {}


def _union_of(some: Iterable[Object]) -> Tree:
    whole: Tree = {}
    for entry in some:
        whole = union(whole, _tree(entry))
    return whole


def _identity(entry: Object) -> tuple[Any, ...]:
    """Return the key by which the server tells entries apart: of equal ones it would keep one."""
    operation = entry.get("operation")
    version = "" if operation == APPLY else entry.get("apiVersion")
    return entry.get("manager"), operation, version, entry.get("subresource") or ""


def _content(some: Iterable[Object]) -> set[Any]:
    """Return a form of entries that does not depend on their order and spelling."""
    return {
        (*_identity(entry), entry.get("apiVersion"), entry.get("time"), _held(entry))
        for entry in some
    }


def _held(entry: Object) -> frozenset[FieldPath]:
    return frozenset(members(_tree(entry)))


def _count(tree: Tree) -> int:
    return sum(1 for _ in leaves(tree))


def _versions(some: Iterable[Object]) -> str:
    return ", ".join(sorted({str(entry.get("apiVersion")) for entry in some}))
