"""Kind: one kind of the model: schema, defaults, validation and subresources."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.podspec import BOOLEAN, INTEGER, SCALAR, STRING
from hedgerow_testing.memory.schema import Atomic, Keyed, Map, Object, SetOf, Struct, TypedSchema
from hedgerow_testing.memory.structural import shape, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Wrong = dict[str, str]
"""Field to message, as the causes of a 422."""

OWNER = Struct(
    {
        **dict.fromkeys(["apiVersion", "kind", "name", "uid"], STRING),
        **dict.fromkeys(["controller", "blockOwnerDeletion"], BOOLEAN),
    }
)
META_CONDITION = Struct(
    {
        **dict.fromkeys(["type", "status", "reason", "message"], STRING),
        "observedGeneration": INTEGER,
        "lastTransitionTime": SCALAR,
    }
)
META = Struct(
    {
        "labels": Map(STRING),
        "annotations": Map(STRING),
        "ownerReferences": Keyed(("uid",), Atomic(OWNER)),
        "finalizers": SetOf(item=STRING),
        **dict.fromkeys(["generation", "deletionGracePeriodSeconds"], INTEGER),
        **dict.fromkeys(["creationTimestamp", "deletionTimestamp"], SCALAR),
        **dict.fromkeys(["name", "generateName", "namespace", "uid", "resourceVersion"], STRING),
    }
)


def _valid(_new: Object, _old: Object | None) -> Wrong:
    return {}


@dataclass(frozen=True)
class ServedKind:
    """One kind.

    `status`: it has a status subresource, whose writes leave the paths `status_keeps` alone;
    `generations`: which parts' changes raise `metadata.generation`; `admit` sets what the server
    alone gives; `empty` is what Go writes for an object of which nothing is set.
    """

    api: ApiResource
    parts: Mapping[str, TypedSchema]
    status: bool = False
    status_keeps: tuple[tuple[str, ...], ...] = (("f:spec",),)
    generations: tuple[str, ...] = ()
    builtin: bool = True
    empty: Mapping[str, Any] = field(default_factory=dict[str, Any])
    derive: Callable[[Object], Object] | None = None
    validate: Callable[[Object, Object | None], Wrong] = _valid
    server_sets: Callable[[Object, int], Object] = lambda body, _number: body
    keeps: Callable[[Object, Object], Object] = lambda _old, new: new

    @cached_property
    def schema(self) -> Struct:
        """The shape of the whole object."""
        identity = {"apiVersion": STRING, "kind": STRING, "metadata": META}
        return Struct({**identity, **self.parts}, derive=self.derive)

    @property
    def key(self) -> tuple[str, str]:
        """Group and kind."""
        return self.api.group, self.api.kind

    def unwritten(self, subresource: str) -> frozenset[tuple[str, ...]]:
        """Return the paths that an endpoint leaves as they are, and never books on anyone."""
        if subresource == "status":
            return frozenset(self.status_keeps)
        return frozenset({("f:status",)} if self.status and not subresource else ())


def custom(definition: Object, *, refuses: Callable[[Object], Wrong] = lambda _: {}) -> ServedKind:
    """Read a kind from its CustomResourceDefinition; `refuses` stands for its CEL rules.

    A built-in kind can be described so too; the core group is empty.
    """
    spec, version = definition["spec"], definition["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    names = spec["names"]
    group_version = "/".join(filter(None, (spec["group"], version["name"])))
    parts = {
        name: shape(inner)
        for name, inner in root["properties"].items()
        if name not in {"apiVersion", "kind", "metadata"}
    }

    def validate(new: Object, _old: Object | None) -> Wrong:
        return dict(wrong(root, new)) or refuses(new)

    return ServedKind(
        ApiResource(group_version, names["kind"], names["plural"], spec.get("scope") != "Cluster"),
        parts,
        status="status" in version.get("subresources", {}),
        status_keeps=(("f:spec",), ("f:metadata",)),
        generations=("spec",),
        builtin=False,
        validate=validate,
    )
