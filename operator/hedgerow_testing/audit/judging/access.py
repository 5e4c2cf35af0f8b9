"""Access: the rights that an operator's Roles grant, and which of them it made use of."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final

from hedgerow.deploy.rights import Right
from hedgerow_testing.audit.judging.findings import AuditedObject, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.judging.history import LoggedRequest

_ALL: Final = "*"
_CREATED: Final = 201
_REFUSED: Final = frozenset({401, 403})
_IMPLIED: Final = ("/finalizers",)
"""Subresources that no request names: an admission plugin asks for the right to them."""


@dataclass(frozen=True, slots=True)
class Role:
    """One Role or ClusterRole of a file of rights; without a namespace it counts in all."""

    name: str
    namespace: str
    rules: tuple[Object, ...]

    @property
    def title(self) -> str:
        """Its kind and name, as a finding tells it."""
        return (
            f"Role {self.namespace}/{self.name}" if self.namespace else f"ClusterRole {self.name}"
        )


@dataclass(slots=True)
class GrantedRights:
    """The rights of some Roles, and those of them that were used."""

    roles: tuple[Role, ...]
    _used: set[Right] = field(default_factory=set[Right])
    _granted: dict[tuple[str, str, str], list[Right]] = field(
        default_factory=dict[tuple[str, str, str], list[Right]]
    )

    def __post_init__(self) -> None:
        """Sort the rights by what they are asked by."""
        for right in dict.fromkeys(self._rights()):
            key = (right.group, right.resource, right.verb)
            self._granted.setdefault(key, []).append(right)

    def take(self, request: LoggedRequest) -> None:
        """Mark the rights that a request made use of."""
        group, resource, namespace, name = request.key
        if request.code in _REFUSED:
            return
        asked = f"{resource}/{request.subresource}" if request.subresource else resource
        verbs = [request.verb]
        if request.verb == "patch" and request.code == _CREATED:
            verbs.append("create")  # an apply that creates needs both
        if request.verb == "watch":
            verbs.append("list")  # a watch that begins with the list is one where there is none
        for verb in verbs:
            for right in self._granted.get((group, asked, verb), ()):
                if right.name in {"", name} and right.namespace in {"", namespace}:
                    self._used.add(right)

    def findings(self) -> Iterator[Finding]:
        """Yield the rights that were not used, by resource, and the wildcards."""
        unused: dict[tuple[str, str, str, str], list[str]] = {}
        for rights in self._granted.values():
            for right in rights:
                if right not in self._used and not right.resource.endswith(_IMPLIED):
                    key = (right.group, right.resource, right.namespace, right.name)
                    unused.setdefault(key, []).append(right.verb)
        for (group, resource, namespace, name), verbs in unused.items():
            kind = f"{resource}.{group}" if group else resource
            about = AuditedObject(group, kind, name or _ALL, namespace)
            words = ", ".join(sorted(verbs))
            yield Finding(
                "unused-rights",
                about,
                f"the right to {words} {kind} was not used",
                count=len(verbs),
                mark=words,
            )
        for role in self.roles:
            for rule in role.rules:
                if words := ", ".join(_wildcards(rule)):
                    about = AuditedObject("rbac.authorization.k8s.io/v1", *role.title.split(" ", 1))
                    detail = f"{role.title} grants {words}; what is behind it is not judged"
                    yield Finding("wildcard-rights", about, detail, mark=words)

    @property
    def count(self) -> int:
        """The number of rights that are judged, each a verb on a resource."""
        return sum(map(len, self._granted.values()))

    def _rights(self) -> Iterator[Right]:
        for role in self.roles:
            for rule in role.rules:
                if not any(_wildcards(rule)):
                    yield from _expanded(rule, role.namespace)


def _expanded(rule: Object, namespace: str) -> Iterator[Right]:
    parts = (rule.get(part) or () for part in ("apiGroups", "resources", "verbs"))
    for group, resource, verb, name in product(*parts, rule.get("resourceNames") or ("",)):
        yield Right(group, resource, verb, name, namespace)


def _wildcards(rule: Object) -> Iterator[str]:
    for name, what in (("apiGroups", "groups"), ("resources", "resources"), ("verbs", "verbs")):
        if any(_ALL in str(one) for one in rule.get(name) or ()):
            yield f"all {what} (*)"
