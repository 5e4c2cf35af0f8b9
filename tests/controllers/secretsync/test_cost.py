"""What passes over many sources cost, in steps and in passes."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from controllers.secretsync.syncing import HOME, TYPE, Syncing, coded, secret
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
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
                "finalizers": ["k8s.ziwon.dev/secretsync"],
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
            once = controller.copies(
                controller.Selection(), namespace, contract.Observed(now=now, related=related)
            )
            copies = tuple(
                view({"metadata": {"name": one.name, **one.fields["metadata"]}})
                for one in once.children
            )
            observed = contract.Observed(now=now, related=related, children=copies)
            copying = partial(controller.copies, controller.Selection(), namespace, observed)
            taken.append(COUNTER.count(copying))

        assert taken[1] < taken[0] * GROWTH


@pytest.mark.anyio
class TestPasses:
    async def test_a_change_of_one_source_is_no_pass_of_the_others(self):
        sync = Syncing("team-a")
        for number in range(10):
            sync.source(f"app{number}", {"password": "one"})
        await sync.settle()
        _, reporting = sync.worlds
        sync.source("app0", {"password": "two"})
        reporting.deliver()

        assert len(reporting.runner.queue) == 1

    async def test_what_we_write_on_a_source_is_no_pass_of_the_namespaces(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        copying, _ = sync.worlds
        said = {"metadata": {"annotations": {STATUS_ANNOTATION: "{}"}}}
        sync.server.merge(secret("app", HOME), said, "somebody")
        copying.deliver()
        assert len(copying.runner.queue) == 0

        other = {"metadata": {"annotations": {"k8s.ziwon.dev/target-name": "other"}}}
        sync.server.merge(secret("app", HOME), other, "somebody")
        copying.deliver()
        assert len(copying.runner.queue) > 0


@pytest.mark.anyio
class TestText:
    async def test_many_that_want_one_key_say_so_within_bounds(self):
        sync = Syncing("team-a")
        for number in range(30):
            sync.source(f"s{number:02}", {"password": "one"}, target="app")
        await sync.settle()

        for number in (0, 15, 29):
            told = sync.told(f"s{number:02}")["Contested"]
            assert told.startswith("KeyConflict: Secret/s0")
            assert told.endswith("; other sources have keys of Secret/app too")
            assert told.count("has the key password") == 3
        of_one = [event for event in sync.events() if event[1] == "s15"]
        assert len(of_one) <= 6

    async def test_what_one_manager_holds_of_a_copy_is_told_together(self):
        sync = Syncing("team-a", "team-b")
        keys = {f"key{number:02}": "one" for number in range(30)}
        sync.source("app", keys)
        await sync.settle()
        sync.put("app", "team-a", dict.fromkeys(keys, "mine"), by="alice")
        sync.put("app", "team-b", {"key07": "mine"}, by="bob")
        sync.source("app", dict.fromkeys(keys, "two"))
        await sync.settle()

        assert sync.told("app")["Contested"] == (
            "FieldConflict: Secret/app: .data.key00 and at least 10 more fields are held by alice"
            " (Apply), in team-a; Secret/app: .data.key07 is held by bob (Apply), in team-b"
        )
        told = [event for event in sync.events() if event[0] == HOME]
        assert len(told) == 2

    async def contest(self, sync: Syncing) -> None:
        """Have each of twenty keys of a copy held by somebody else."""
        keys = {f"key{number:02}": "one" for number in range(20)}
        sync.source("app", keys)
        await sync.settle()
        for key in keys:
            sync.put("app", "team-a", {key: "mine"}, by=f"by-{key}")
        sync.source("app", dict.fromkeys(keys, "two"))
        await sync.settle()

    async def test_however_much_is_wrong_few_things_are_told(self):
        sync = Syncing("team-a")
        await self.contest(sync)

        told = sync.told("app")["Contested"]
        assert told.count("is held by") == 7
        assert told.endswith("; at least 10 more are not listed")
        assert len([event for event in sync.events() if event[0] == HOME]) <= 8

    async def test_each_kind_of_what_is_wrong_is_told_before_more_of_one(self):
        sync = Syncing("team-a", "team-b")
        sync.put("app", "team-b", {"theirs": "x"})
        await self.contest(sync)

        told = sync.told("app")["Stalled"]
        assert told.count("is held by") == 6
        assert "Secret/app exists in team-b and is not a copy" in told
        assert told.endswith("; at least 10 more are not listed")
