"""Unions: fields of Kubernetes's own kinds that exclude each other, and who is in the way of whom.

A field that nobody holds, such as a default or what is left of a manager that is gone, cannot be
removed by leaving it out of an apply. If the API server refuses a declaration beside it, the field
is taken over first: it is applied with its value, unforced, and then left out.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hedgerow.encoding import to_ascii
from hedgerow.fields.managed_fields import Entries, Holder, held
from hedgerow.fields.paths import assign, coin, is_list, is_map
from hedgerow.objects import Salvaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object


class Union(Struct, frozen=True):
    """Fields of one map of which the API server accepts only one, or only some beside a tag.

    `place` is the map's path; a list in it is written with the keys of its items: `env[name]`. Of
    `members` only one may be set; without members, of all fields but the keys of the list item.
    With a `tag`, the members may be set only if the field of that name has one of the `values`.
    """

    place: str
    members: tuple[str, ...] = ()
    tag: str = ""
    values: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The names on the way to the map, each with the keys of its items if it is a list."""
        parts = (step.rstrip("]").partition("[") for step in self.place.split("."))
        return tuple((name, tuple(filter(None, keys.split(",")))) for name, _, keys in parts)

    def excluded(self, want: Object, live: Object) -> Iterator[str]:
        """Yield the live fields beside which the server refuses what is declared of the map."""
        keys = self.steps[-1][1]
        members = [name for name in self.members or live if name in live and name not in keys]
        if self.tag:
            refused = self.tag in want and want[self.tag] not in self.values
        else:
            declared = self.members or [name for name in want if name not in keys]
            refused = any(name in want for name in declared)
        if refused:
            yield from (name for name in members if name not in want)


_PROBED: Final = ("exec", "grpc", "httpGet", "tcpSocket")
_HOOKED: Final = ("exec", "httpGet", "sleep", "tcpSocket")
_PROFILES: Final = ("appArmorProfile", "seccompProfile")


def _container(place: str) -> Iterator[Union]:
    yield Union(f"{place}.env[name]", ("value", "valueFrom"))
    yield Union(f"{place}.env[name].valueFrom")
    yield Union(f"{place}.volumeMounts[mountPath]", ("subPath", "subPathExpr"))
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield Union(f"{place}.{probe}", _PROBED)
    for hook in ("postStart", "preStop"):
        yield Union(f"{place}.lifecycle.{hook}", _HOOKED)
    yield from _profiles(place)


def _profiles(place: str) -> Iterator[Union]:
    for profile in _PROFILES:
        at = f"{place}.securityContext.{profile}"
        yield Union(at, ("localhostProfile",), "type", ("Localhost",))


def _pod(place: str) -> tuple[Union, ...]:
    """Return the unions of a pod's spec at a place."""
    return (
        Union(f"{place}.volumes[name]"),
        *_profiles(place),
        *_container(f"{place}.containers[name]"),
        *_container(f"{place}.initContainers[name]"),
    )


_INDEXED: Final = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
_WEBHOOK: Final = (Union("webhooks[name].clientConfig", ("service", "url")),)

UNIONS: Final[Mapping[tuple[str, str], tuple[Union, ...]]] = {
    ("", "PodTemplate"): _pod("template.spec"),
    ("", "ReplicationController"): _pod("spec.template.spec"),
    ("", "Service"): (Union("spec", ("loadBalancerSourceRanges",), "type", ("LoadBalancer",)),),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOK,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOK,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        Union("spec.conversion", ("webhook",), "strategy", ("Webhook",)),
        Union("spec.conversion.webhook.clientConfig", ("service", "url")),
    ),
    ("apps", "DaemonSet"): _pod("spec.template.spec"),
    ("apps", "Deployment"): (
        Union("spec.strategy", ("rollingUpdate",), "type", ("RollingUpdate",)),
        *_pod("spec.template.spec"),
    ),
    ("apps", "ReplicaSet"): _pod("spec.template.spec"),
    ("apps", "StatefulSet"): (
        Union("spec.updateStrategy", ("rollingUpdate",), "type", ("RollingUpdate",)),
        *_pod("spec.template.spec"),
    ),
    ("batch", "CronJob"): (
        Union("spec.jobTemplate.spec", _INDEXED, "completionMode", ("Indexed",)),
        *_pod("spec.jobTemplate.spec.template.spec"),
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): (
        Union("spec.limited.limitResponse", ("queuing",), "type", ("Queue",)),
    ),
    ("networking.k8s.io", "Ingress"): (Union("spec.defaultBackend", ("resource", "service")),),
    ("policy", "PodDisruptionBudget"): (Union("spec", ("maxUnavailable", "minAvailable")),),
}
"""The unions of each kind, by group and kind; `tests/cluster/test_unions.py` tries each of them."""


def in_the_way(want: Object, live: Object, manager: str) -> tuple[FieldPath, ...]:
    """Return the fields that nobody holds and beside which the server refuses a declaration.

    What `manager` holds and no longer declares goes by the apply itself. If another manager holds
    something of a field that is in the way, the result is empty: taking over the rest would not
    help. So it is if no managed fields are recorded: the next apply books all fields to a manager.
    And so it is for a salvaged object: to take over is to apply what was read.
    """
    there = held(live)
    if not there.pairs or isinstance(live, Salvaged):
        return ()
    found = dict(_excluded(want, live, there))
    holders = chain.from_iterable(found.values())
    if not all(holder.is_applier(manager, "") for holder in holders):
        return ()
    return tuple(field_path for field_path, holders in found.items() if not holders)


def _excluded(
    want: Object, live: Object, there: Entries
) -> Iterator[tuple[FieldPath, tuple[Holder, ...]]]:
    """Yield the live fields that a declaration excludes, each with who holds something of it."""
    group = str(live.get("apiVersion", "")).rpartition("/")[0]
    for union in UNIONS.get((group, str(live.get("kind", ""))), ()):
        for spot in _spots(_Spot((), want, live, there), union.steps):
            for name in union.excluded(spot.want, spot.live):
                entries = spot.there.below("f:" + name)
                yield (
                    (*spot.field_path, "f:" + name),
                    tuple(holder for holder, _ in entries.pairs),
                )


class _Spot(Struct, frozen=True):
    """One map: what is declared and live of it, and the entries that contain it."""

    field_path: FieldPath
    want: Object
    live: Object
    there: Entries


def _spots(top: _Spot, steps: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[_Spot]:
    """Yield the maps at a place, of which something is declared and something is live."""
    spots = [top]
    for name, keys in steps:
        spots = list(chain.from_iterable(_below(spot, name, keys) for spot in spots))
    return iter(spots)


def _below(spot: _Spot, name: str, keys: tuple[str, ...]) -> Iterator[_Spot]:
    """Yield the map of that name, or if it is a list the items that are declared and live."""
    element = "f:" + name
    want, live, there = spot.want.get(name), spot.live.get(name), spot.there.below(element)
    field_path = (*spot.field_path, element)
    if is_map(want) and is_map(live) and not keys:
        yield _Spot(field_path, want, live, there)
    elif is_list(want) and is_list(live) and keys:
        for item, declared, found in _items(want, live, there, keys):
            yield _Spot((*field_path, item), declared, found, there.below(item))


def _items(
    want: list[Any], live: list[Any], there: Entries, keys: tuple[str, ...]
) -> Iterator[tuple[str, Object, Object]]:
    """Yield the element of each list item that is declared and live, with both."""
    shape = ("k:" + to_ascii(dict.fromkeys(keys, "")),)
    known = dict.fromkeys(element for element in there.elements() if element.startswith("k:"))
    elements = [
        element or coin(item, shape)
        for item, element in zip(live, assign(live, known), strict=True)
    ]
    found = dict(zip(elements, live, strict=True))
    number = Counter(elements)
    for item, element in zip(want, assign(want, filter(None, found)), strict=True):
        if element and number[element] == 1 and is_map(item):
            yield element, item, found[element]
