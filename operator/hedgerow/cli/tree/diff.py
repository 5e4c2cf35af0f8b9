"""Tree diff: the changes between two versions of the trees, one sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.objects import PROGRAM
from hedgerow.plan.conflict_messages import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow.cli.tree.resources import TreeNode
    from hedgerow_schemas.base import Condition, ContestedField

NodeKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A change of one object."""

    namespace: str
    object: str
    words: str


def tree_changes(
    before: Iterable[TreeNode], after: Iterable[TreeNode], program: str = PROGRAM
) -> tuple[TreeChange, ...]:
    """Return what was added, changed or removed, in order; past objects do not count."""
    old, new = _by_key(before), _by_key(after)
    told = [
        TreeChange(node.namespace, str(node), words)
        for key, node in new.items()
        if not node.past
        for words in _words(old.get(key), node, program)
    ]
    gone = (m for key, m in old.items() if key not in new and not m.past)
    return (*told, *(TreeChange(m.namespace, str(m), _removal(m)) for m in gone))


def _by_key(trees: Iterable[TreeNode]) -> Mapping[NodeKey, TreeNode]:
    nodes = (node for tree in trees for node in _all(tree))
    return {(node.namespace, node.kind, node.name): node for node in nodes}


def _all(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    for child in node.children:
        yield from _all(child)


def _removal(node: TreeNode) -> str:
    return "gone" if node.uid else "no longer missed"


def _words(old: TreeNode | None, new: TreeNode, program: str) -> Iterator[str]:
    if old is None or old.past:
        yield f"new, {new.readiness.words}"
    elif old.uid and old.uid != new.uid:
        yield f"recreated, {new.readiness.words}" if new.uid else new.readiness.words
    else:
        yield from _progress(old, new)
    yield from _conditions(old.conditions if old else (), new.conditions)
    before = dict.fromkeys(old.conflicts if old else ())
    yield from (_held(c, program) for c in new.conflicts if c not in before)
    paths = {conflict.path for conflict in new.conflicts}
    yield from (f"{c.path} is no longer contested" for c in before if c.path not in paths)


def _progress(old: TreeNode, new: TreeNode) -> Iterator[str]:
    """Yield an object's changes; a resource's own Ready is reported as a condition."""
    if old.readiness != new.readiness and old.conditions == new.conditions:
        yield f"{new.readiness.words} (was {old.readiness.words})"
    if old.changed != new.changed and new.changed:
        yield f"changed by {new.changed.manager}"


def _conditions(old: Iterable[Condition], new: Iterable[Condition]) -> Iterator[str]:
    before = {condition.type: condition for condition in old}
    for condition in new:
        was = before.pop(condition.type, None)
        if was is None or _content(was) != _content(condition):
            reason = f"{condition.reason}: {condition.message}".rstrip(": ")
            yield f"{condition.type}={condition.status} {reason}".rstrip()
    yield from (f"no longer {kind}" for kind in before)


def _content(condition: Condition) -> tuple[str, ...]:
    return condition.status, condition.reason, condition.message


def _held(conflict: ContestedField, program: str) -> str:
    return f"{conflict.path}: {sentence(conflict, program)}"
