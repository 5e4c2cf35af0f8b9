"""What passes over many sources cost, in steps and in passes."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from controllers.secretsync.syncing import HOME, TYPE, Syncing, coded, secret
from support.code.counted import Counter, load

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
            "data": {"password": coded("one"), f"key{number}": coded("two")},
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


@pytest.mark.anyio
class TestPasses:
    async def test_what_nobody_reads_of_a_source_is_no_pass_of_the_namespaces(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        said = {"metadata": {"annotations": {"example.com/said": "{}"}}}
        sync.server.merge(secret("app", HOME), said, "somebody")
        sync.world.deliver()
        assert len(sync.world.runner.queue) == 0

        other = {"metadata": {"annotations": {"k8s.ziwon.dev/target-name": "other"}}}
        sync.server.merge(secret("app", HOME), other, "somebody")
        sync.world.deliver()
        assert len(sync.world.runner.queue) > 0


@pytest.mark.anyio
class TestText:
    async def test_however_many_keys_of_a_copy_are_contested_it_is_one_event(self):
        sync = Syncing("team-a")
        keys = {f"key{number:02}": "one" for number in range(20)}
        sync.source("app", keys)
        await sync.settle()
        for key in keys:
            sync.put("app", "team-a", {key: "mine"}, by=f"by-{key}")
        sync.source("app", dict.fromkeys(keys, "two"))
        await sync.settle()

        assert sync.events() == [(HOME, "app", "FieldConflict")]
