"""What passes over many sources cost, in calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from hedgerow.contract import Observed
from hedgerow.controllers.secretsync.controller import Secret, Selection, TargetNamespace, compose
from hedgerow.controllers.secretsync.sources import LABEL, TARGET_NAME

HOME, MANAGER, TYPE = "secretsync", "hedgerow-secretsync", "k8s.ziwon.dev/secretsync"
SIZES = (100, 800)
GROWTH = 2.25**3
"""How many times more calls eight times as many sources may take: n log n."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = TargetNamespace.model_validate(
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
)


def sources(size: int, *, shared: bool) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": TYPE,
            "metadata": {
                "name": f"s{number}",
                "namespace": HOME,
                "uid": f"u{number}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"k8s.ziwon.dev/target-name": "app"} if shared else {},
            },
            "data": {"password": "b25l", f"key{number}": "dHdv"},
        }
        for number in range(size)
    ]


class TestSteps:
    @pytest.mark.parametrize("shared", [True, False], ids=["one target", "a target each"])
    def test_a_pass_of_a_namespace_is_linear_in_the_sources(self, shared):
        def observed(size: int) -> Observed:
            related = tuple(map(Secret, sources(size, shared=shared)))
            once = compose(Selection(), TARGET, Observed(now=NOW, related=related))
            copies = tuple(
                Secret({"metadata": {"name": one.name, **one.fields["metadata"]}})
                for one in once.children
            )
            return Observed(now=NOW, related=related, children=copies)

        small, large = taken(observed)

        assert large < small * GROWTH

    def test_a_pass_is_linear_in_the_copies_of_mistaken_sources(self):
        def observed(size: int) -> Observed:
            mistaken = [
                one | {"metadata": one["metadata"] | {"annotations": {TARGET_NAME: "No Name"}}}
                for one in sources(size, shared=False)
            ]
            names = [f"s{number}" for number in range(size)]
            copies = [
                {"metadata": {"name": name, "labels": {f"{LABEL}/{name}": HOME}}} for name in names
            ]
            return observed_of(mistaken, copies)

        small, large = taken(observed)

        assert large < small * GROWTH

    def test_a_pass_is_linear_in_the_keys_of_others_in_an_immutable_copy(self):
        def observed(size: int) -> Observed:
            (source,) = sources(1, shared=False)
            data = source["data"] | {f"theirs{number}": "" for number in range(size)}
            fields = {"f:data": {f"f:{key}": {} for key in data}}
            theirs = {"manager": "tenant", "operation": "Update", "fieldsV1": fields}
            meta = {"name": "s0", "managedFields": [theirs]}
            copy = {"type": TYPE, "immutable": True, "metadata": meta, "data": data}
            return observed_of([source | {"immutable": True}], [copy])

        small, large = taken(observed)

        assert large < small * GROWTH


def observed_of(related: list[Any], copies: list[Any]) -> Observed:
    views = [tuple(map(Secret, some)) for some in (related, copies)]
    return Observed(now=NOW, related=views[0], children=views[1], field_manager=MANAGER)


def taken(observed: Callable[[int], Observed]) -> list[int]:
    """Return the calls of a pass of one namespace over what is observed, for each of the sizes."""
    return [calls(given) for given in map(observed, SIZES)]


def calls(given: Observed) -> int:
    number = 0

    def called(_: Any, event: str, __: Any) -> None:
        nonlocal number
        number += event in {"call", "c_call"}

    sys.setprofile(called)
    try:
        compose(Selection(), TARGET, given)
    finally:
        sys.setprofile(None)
    return number
