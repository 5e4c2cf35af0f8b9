"""Admission: the frame and the CEL expressions that admission policies have in common."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from hedgerow.encoding import to_ascii

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hedgerow.contract import Fields
    from hedgerow.deploy.names import Names
    from hedgerow_schemas.base import ApiResource, Object

VERSION: Final = "admissionregistration.k8s.io/v1"
WRITTEN_BY_SERVER: Final[Fields] = (
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)
"""What may differ after any update."""
WIDEST: Final = 1000
"""The most keys of a map that are looked at: the API server's time for it is quadratic."""


def admission_policy(
    names: Names,
    name: str,
    rules: tuple[Iterable[tuple[str, str]], Sequence[str]],
    variables: Mapping[str, str],
    validations: Iterable[Object],
    *,
    conditions: Mapping[str, str] | None = None,
) -> list[Object]:
    """Return a ValidatingAdmissionPolicy and its binding.

    `rules` are the resources that it judges, each a group and a plural, and the operations.
    `variables` and `conditions` are expressions by name.
    """
    plurals: defaultdict[str, set[str]] = defaultdict(set)
    for group, plural in rules[0]:
        plurals[group].add(plural)
    judged = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": list(rules[1]),
            "resources": sorted(resources),
        }
        for group, resources in sorted(plurals.items())
    ]
    named, met = (
        [{"name": key, "expression": expression} for key, expression in some.items()]
        for some in (variables, conditions or {})
    )
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": judged},
        **({"matchConditions": met} if met else {}),
        "variables": named,
        "validations": list(validations),
    }
    made = names.cluster_wide(VERSION, "ValidatingAdmissionPolicy", name)
    return [made | {"spec": spec}, binding(names, name)]


def binding(names: Names, name: str) -> Object:
    """Return a policy's binding: it applies everywhere, and denies all that is not allowed."""
    made = names.cluster_wide(VERSION, "ValidatingAdmissionPolicyBinding", name)
    return made | {"spec": {"policyName": name, "validationActions": ["Deny"]}}


def either(expressions: Iterable[str]) -> str:
    """Return the expression that one of these is true."""
    return " || ".join(f"({expression})" for expression in expressions) or "false"


def is_of(api: ApiResource) -> str:
    """Return the expression that the request is for this kind, in any version."""
    return (
        f"request.resource.group == {to_ascii(api.group)}"
        f" && request.resource.resource == {to_ascii(api.plural)}"
    )


def unchanged_but(fields: Fields) -> str:
    """Return the expression that an update changes nothing but these fields.

    Maps are compared key by key, down to the fields; of everything else, the whole value. A map
    with more than `WIDEST` keys counts as changed. Managed fields are not looked at, so it holds
    for every kind of write, whatever is forged there.
    """
    return same_but("object", "oldObject", (*fields, *WRITTEN_BY_SERVER))


def same_but(left: str, right: str, fields: Fields) -> str:
    """Return the expression that two maps differ in nothing but these fields.

    They are compared as `unchanged_but` says; `o` is no name for one of them.
    """
    return " && ".join(_same((left, right), "", fields))


def _same(maps: tuple[str, str], at: str, fields: Fields) -> Iterator[str]:
    """Yield an expression for each map on the way to the fields; `at` leads to the first."""
    below: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for first, *rest in fields:
        below[first].append(tuple(rest))
    keys = f"o{at}.orValue({{}})" if at else "o"
    left, right = maps
    yield (
        f"[{left}, {right}].all(o, {keys}.size() <= {WIDEST}"
        f" && {keys}.all(k, k in {to_ascii(sorted(below))}"
        f" || {left}{at}[?k] == {right}{at}[?k]))"
    )
    for name, within in sorted(below.items()):
        if () not in within:
            yield from _same(maps, f"{at}[?{to_ascii(name)}]", tuple(within))
