"""What passes over many sources cost, in steps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from hedgerow.controllers.secretsync.sources import LABEL, TARGET_NAME
from support.code.counted import Counter, load

HOME, MANAGER, TYPE = "secretsync", "hedgerow-secretsync", "k8s.ziwon.dev/secretsync"
SIZES = (100, 800)
GROWTH = 2.25**3
"""How many times more steps eight times as many sources may take: n log n."""
COUNTER = Counter()
NAMES = ["hedgerow.contract", "hedgerow.controllers.secretsync.controller", "hedgerow_schemas.base"]


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
        modules = load(COUNTER, NAMES)
        controller, contract = modules[NAMES[1]], modules[NAMES[0]]
        view = controller.Secret
        taken = []
        for size in SIZES:
            related = tuple(map(view, sources(size, shared=shared)))
            namespace = controller.TargetNamespace.model_validate(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
            )
            now = datetime(2026, 1, 1, tzinfo=UTC)
            once = controller.compose(
                controller.Selection(), namespace, contract.Observed(now=now, related=related)
            )
            copies = tuple(
                view({"metadata": {"name": one.name, **one.fields["metadata"]}})
                for one in once.children
            )
            observed = contract.Observed(now=now, related=related, children=copies)
            copying = partial(controller.compose, controller.Selection(), namespace, observed)
            taken.append(COUNTER.count(copying))

        assert taken[1] < taken[0] * GROWTH

    def test_a_pass_is_linear_in_the_copies_of_mistaken_sources(self):
        def observed(modules: Any, size: int) -> Any:
            mistaken = [
                one | {"metadata": one["metadata"] | {"annotations": {TARGET_NAME: "No Name"}}}
                for one in sources(size, shared=False)
            ]
            names = [f"s{number}" for number in range(size)]
            copies = [
                {"metadata": {"name": name, "labels": {f"{LABEL}/{name}": HOME}}} for name in names
            ]
            return observed_of(modules, mistaken, copies)

        small, large = taken(observed)

        assert large < small * GROWTH

    def test_a_pass_is_linear_in_the_keys_of_others_in_an_immutable_copy(self):
        def observed(modules: Any, size: int) -> Any:
            (source,) = sources(1, shared=False)
            data = source["data"] | {f"theirs{number}": "" for number in range(size)}
            fields = {"f:data": {f"f:{key}": {} for key in data}}
            theirs = {"manager": "tenant", "operation": "Update", "fieldsV1": fields}
            meta = {"name": "s0", "managedFields": [theirs]}
            copy = {"type": TYPE, "immutable": True, "metadata": meta, "data": data}
            return observed_of(modules, [source | {"immutable": True}], [copy])

        small, large = taken(observed)

        assert large < small * GROWTH


def observed_of(modules: Any, related: list[Any], copies: list[Any]) -> Any:
    contract, controller = modules[NAMES[0]], modules[NAMES[1]]
    views = [tuple(map(controller.Secret, some)) for some in (related, copies)]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return contract.Observed(now=now, related=views[0], children=views[1], field_manager=MANAGER)


def taken(observed: Callable[[Any, int], Any]) -> list[int]:
    """Return the steps of a pass of one namespace over what is observed, for each of the sizes."""
    modules = load(COUNTER, NAMES)
    controller = modules[NAMES[1]]
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    namespace = controller.TargetNamespace.model_validate(body)
    compose = partial(controller.compose, controller.Selection(), namespace)
    return [COUNTER.count(partial(compose, observed(modules, size))) for size in SIZES]
