"""Tree kinds: which of hedgerow's kinds a word means, and the kinds of their descendants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow_schemas.base import ApiResource, CustomResource
from hedgerow_schemas.builtin import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import Resource

REPLICA_SET: Final = ApiResource("apps/v1", "ReplicaSet", "replicasets")
BELOW: Final[Mapping[str, tuple[ApiResource, ...]]] = {
    "Deployment": (REPLICA_SET, Pod.api),
    "Job": (Pod.api,),
}
"""The kinds that Kubernetes's own controllers create for a child, as far as they are shown."""


@dataclass(frozen=True, slots=True)
class Family:
    """One of our kinds, the kinds of its children, and those of all its descendants."""

    api: ApiResource
    names: frozenset[str]
    owned: tuple[str, ...]
    descendants: tuple[ApiResource, ...]
    is_custom: bool = True
    manager: str = ""
    """The last word of the names of the controller's field managers."""


def families(controllers: Iterable[Controller[Resource]]) -> tuple[Family, ...]:
    """Return the family of each controller's resource."""
    return tuple(_family(controller) for controller in controllers)


def meant(word: str, among: Sequence[Family]) -> Family | None:
    """Return the family that a word means, written as in kubectl: `bg`, `cronjobs.batch.….io`."""
    name, _, rest = word.lower().partition(".")
    for family in among:
        api = family.api
        if name in family.names and rest in {"", api.group, f"{api.version}.{api.group}"}:
            return family
    return None


def _family(controller: Controller[Resource]) -> Family:
    api = controller.resource.api
    owned = tuple(view.api for view in controller.owns)
    below = (each for child in owned for each in BELOW.get(child.kind, ()))
    resource = controller.resource
    short = resource.definition.short_names if issubclass(resource, CustomResource) else ()
    return Family(
        api,
        frozenset({api.plural, api.kind.lower(), *short}),
        tuple(child.kind for child in owned),
        tuple(dict.fromkeys((*owned, *below))),
        is_custom=controller.is_custom,
        manager=controller.name,
    )
