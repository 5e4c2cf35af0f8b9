"""`hedgerow release --unowned`: what nobody holds, and what is done about it on the model."""

from __future__ import annotations

import itertools
import json
import os
import signal
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from hedgerow.fields.paths import path_of
from hedgerow.kube import errors
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.fields.unowned import let_go, unowned
from support.commands.gardens import CHILD, NAME, OURS, Garden
from support.objects.judged import OTHER, item, live, want

Object = dict[str, Any]
LEAF: Object = {}
C = 'k:{"name":"c"}'
CLI = "hedgerow-cli"
STRATEGY = "spec.strategy.rollingUpdate"
BODY: Object = {
    "spec": {
        "replicas": 1,
        "strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        "containers": [{"name": "c", "image": "i", "command": ["x"]}, {"name": "d"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "finalizers": ["a", "b"],
    },
    "status": {"replicas": 1},
}  # fmt: skip
TREE: Object = {
    "f:spec": {
        "f:strategy": {"f:type": LEAF},
        "f:containers": {C: item("name", "image")},
        "f:finalizers": {'v:"a"': LEAF},
    }
}


def child(tree: Object = TREE, **more: Any) -> Object:
    return live(want(**{**BODY, **more}), (OTHER, tree))


def paths(*fields: str, to: str = "", obj: Object | None = None) -> list[str]:
    return [path_of(move.field_path) for move in unowned(obj or child(), fields, to)]


class TestFound:
    @pytest.mark.parametrize(
        ("fields", "found"),
        [
            (["spec.replicas"], [".spec.replicas"]),
            ([".spec.strategy.rollingUpdate"], [".spec.strategy.rollingUpdate"]),
            (["spec.strategy.**"], [".spec.strategy.rollingUpdate"]),
            (
                ["spec.strategy.rollingUpdate.maxSurge", "spec.replicas"],
                [".spec.replicas", ".spec.strategy.rollingUpdate.maxSurge"],
            ),
            (["spec.volumes"], [".spec.volumes"]),
            (['spec.containers[name="c"].*'], ['.spec.containers[name="c"].command']),
            (['spec.containers[name="d"]'], ['.spec.containers[name="d"]']),
            (['spec.finalizers[="b"]'], ['.spec.finalizers[="b"]']),
        ],
    )
    def test_the_highest_fields_that_nobody_holds(self, fields, found):
        tree = TREE | {"f:spec": {**TREE["f:spec"], "f:strategy": {"f:type": LEAF}}}
        within = {"f:rollingUpdate": {"f:maxUnavailable": LEAF}}
        if fields[0].endswith("maxSurge"):
            tree["f:spec"]["f:strategy"] |= within

        assert paths(*fields, obj=child(tree)) == found

    def test_they_are_removed_or_get_a_holder(self):
        [gone] = unowned(child(), ["spec.replicas"])
        [held] = unowned(child(), ["spec.replicas"], "helm")

        assert (gone.fate, gone.to, gone.value, gone.source.manager) == ("removed", (), 1, "")
        assert (held.fate, held.to) == ("taken", ("helm",))

    def test_a_value_of_a_secret_is_hidden(self):
        secret = live(want("Secret", "v1", data={"a": "eA=="}), (OTHER, {"f:type": LEAF}))

        [move] = unowned(secret, ["data.a"], "helm")

        assert move.value == "(hidden)"


class TestRefused:
    @pytest.mark.parametrize(
        ("field", "why"),
        [
            ("spec.strategy", "Deployment/x: .spec.strategy.type is held by other"),
            ("spec.strategy.type", "Deployment/x: .spec.strategy.type is held by other"),
            ("spec.nothing", "Deployment/x has no field called spec.nothing that nobody holds"),
            ("status.replicas", "no field called status.replicas that nobody holds"),
            ("metadata.uid", "no field called metadata.uid that nobody holds"),
            ("spec.replicas;", "more than a path"),
            ("spec.volumes[0]", "is no path"),
            ("spec.volumes[*].emptyDir", "no field called spec.volumes[*].emptyDir that"),
            ("spec.strategy.rollingUpdate.maxSurge", "nobody holds .spec.strategy.rollingUpdate"),
            ('spec.containers[name="d"].name', 'nobody holds .spec.containers[name="d"] either'),
        ],
    )  # fmt: skip
    def test_what_is_held_or_not_there_or_would_take_more_with_it(self, field, why):
        with pytest.raises(MoveRefused) as refused:
            unowned(child(), [field])

        assert why in str(refused.value)

    def test_an_item_that_nobody_holds_as_such_would_go_as_a_whole(self):
        tree = {"f:spec": {"f:containers": {C: {"f:image": LEAF}}}}

        with pytest.raises(MoveRefused, match="nobody holds"):
            unowned(child(tree), ['spec.containers[name="c"].command'])
        assert paths('spec.containers[name="c"].command', to="helm", obj=child(tree))

    def test_without_managed_fields_the_next_apply_books_all(self):
        with pytest.raises(MoveRefused, match="before-first-apply"):
            unowned(live(want(**BODY)), ["spec.replicas"])


class TestLetGo:
    def test_who_held_something_applies_just_that_again(self):
        before, after = child(), {"metadata": {"resourceVersion": "9"}}

        body = let_go(before, OTHER, after)

        assert body["metadata"]["resourceVersion"] == "9"
        assert body["spec"]["strategy"] == {"type": "Recreate"}

    def test_who_held_nothing_applies_nothing(self):
        body = let_go(child(), "nobody", {"metadata": {"resourceVersion": "9"}})

        assert sorted(body) == ["apiVersion", "kind", "metadata"]
        assert body["metadata"]["resourceVersion"] == "9"


pytestmark = pytest.mark.usefixtures("garden")
COMMAND = ("release", "--unowned")


@pytest.fixture
def garden(garden: Garden) -> Garden:
    """A Deployment whose volume is what a manager left that is gone, and that has defaults."""
    garden.declare()
    volumes = [{"name": "v", "emptyDir": {}}]
    garden.also("gone", template={"spec": {"volumes": volumes}}, minReadySeconds=5)
    there = garden.live
    entries = [one for one in there["metadata"]["managedFields"] if one["manager"] != "gone"]
    there["metadata"]["managedFields"] = entries
    garden.store.put(there)
    return garden


class TestTyped:
    def test_it_is_removed_by_two_applies_and_leaves_nobody_behind(self, garden, typed):
        before = garden.live["spec"]

        code, out, _ = typed(CHILD, "--field", "spec.minReadySeconds", "--yes")

        assert code == 0
        assert ".spec.minReadySeconds  5      nobody  nobody" in out
        assert f"Deployment/{NAME}: removed 1 field that nobody held" in out
        del before["minReadySeconds"]
        assert garden.live["spec"] == before
        assert [(sent.manager, sent.force) for sent in garden.writes] == [(CLI, False)] * 2
        assert garden.held("minReadySeconds") == set()
        assert {e["manager"] for e in garden.live["metadata"]["managedFields"]} == {OURS}

    def test_it_is_shown_first_and_nothing_is_written(self, garden, typed):
        before = garden.live

        code, out, _ = typed(CHILD, "--field", "spec.minReadySeconds")

        assert code == 0
        assert "1 field that nobody holds would be removed" in out
        assert garden.live == before
        assert garden.writes == []

    def test_with_a_holder_it_stays_and_that_ones_next_apply_removes_it(self, garden, typed):
        generation = garden.live["metadata"]["generation"]

        code, out, _ = typed(CHILD, "--field", STRATEGY, "--to", "helm", "-o", "json", "--yes")

        assert code == 0
        [move] = json.loads(out)["moves"]
        assert (move["path"], move["fate"]) == (f".{STRATEGY}", "taken")
        assert (move["from"], move["to"]) == ({}, ["helm"])
        assert garden.held("maxSurge") == {"helm"}
        assert garden.live["metadata"]["generation"] == generation
        garden.also("helm", strategy={"type": "Recreate"})
        assert garden.live["spec"]["strategy"] == {"type": "Recreate"}

    @pytest.mark.parametrize(("dry", "verb"), [(("--yes",), "holds"), ((), "would hold")])
    def test_the_new_holder_is_told(self, garden, typed, dry, verb):
        _, out, _ = typed(CHILD, "--field", STRATEGY, "--to", "helm", *dry)

        assert f"helm {verb} 1 field that nobody held, no value changed" in out

    def test_a_default_comes_back_and_that_is_no_success(self, garden, typed):
        garden.also("other", strategy={"type": "RollingUpdate"})

        code, _, err = typed(CHILD, "--field", STRATEGY, "--yes")

        assert code == 1
        assert f"the server has set .{STRATEGY} again, as a default; with --to MANAGER" in err
        assert garden.held("maxSurge") == set()

    def test_what_somebody_holds_is_left(self, garden, typed):
        before = garden.live

        code, _, err = typed(CHILD, "--field", "spec.selector")

        assert (code, garden.live) == (1, before)
        assert f".spec.selector is held by {OURS}" in err

    def test_what_changes_meanwhile_is_looked_at_again(self, garden, typed):
        garden.interruptions[1] = lambda: garden.also("other", revisionHistoryLimit=3)
        garden.interruptions[3] = lambda: garden.also("other", revisionHistoryLimit=4)

        assert typed(CHILD, "--field", "spec.minReadySeconds", "--yes")[0] == 0

        assert "minReadySeconds" not in garden.live["spec"]
        assert garden.live["spec"]["revisionHistoryLimit"] == 4

    def test_what_somebody_takes_meanwhile_is_left(self, garden, typed):
        garden.interruptions[1] = lambda: garden.also("other", minReadySeconds=5)

        code, _, err = typed(CHILD, "--field", "spec.minReadySeconds", "--yes")

        assert code == 1
        assert ".spec.minReadySeconds is held by other" in err
        assert garden.held("minReadySeconds") == {"other"}

    @pytest.mark.parametrize("to", [(), ("--to", "helm")])
    def test_what_may_not_be_taken_over_stays_unowned(self, garden, typed, to):
        async def hook(sent):
            if sent.verb == "apply":
                raise errors.Forbidden("may not", code=403)

        garden.before = hook

        code, _, err = typed(CHILD, "--field", "spec.minReadySeconds", *to, "--yes")

        assert code == 3
        assert "cannot hold them: may not; nothing was changed" in err
        assert garden.held("minReadySeconds") == set()

    def test_what_the_server_does_not_let_go_of_has_a_holder_then(self, garden, typed):
        def refuse() -> None:
            raise errors.Invalid("it is required", code=422)

        garden.interruptions[2] = refuse

        code, _, err = typed(CHILD, "--field", "spec.minReadySeconds", "--yes")

        assert code == 3
        assert f"it is required; {CLI} holds them now" in err
        assert f"hedgerow adopt Deployment/{NAME} --from {CLI} --to MANAGER" in err
        assert garden.held("minReadySeconds") == {CLI}

    @pytest.mark.parametrize("number", [1, 2])
    def test_between_the_two_applies_nothing_interrupts_it(self, garden, typed, number):
        garden.interruptions[number] = lambda: os.kill(os.getpid(), signal.SIGINT)
        before = garden.before

        async def hook(sent: Any) -> None:
            await before(sent)
            for _ in range(9):  # the loop hears of the signal
                await checkpoint()

        garden.before = hook

        code, _, err = typed(CHILD, "--field", "spec.minReadySeconds", "--yes")

        assert code == 130
        assert "interrupted by SIGINT" in err
        assert "minReadySeconds" not in garden.live["spec"]
        assert {e["manager"] for e in garden.live["metadata"]["managedFields"]} == {OURS}

    @pytest.mark.parametrize("number", [1, 2])
    def test_what_admission_changes_by_the_way_is_told(self, garden, typed, monkeypatch, number):
        apply, count = garden.store.apply, itertools.count(1)

        def rewritten(*body: Any, **how: Any) -> tuple[Object, bool]:
            after, created = apply(*body, **how)
            images = {"containers": [{"name": "c", "image": "webhook:1"}]}
            if next(count) == number:
                after["spec"]["template"]["spec"] = images
            return after, created

        monkeypatch.setattr(garden.store, "apply", rewritten)

        code, _, err = typed(CHILD, "--field", "spec.minReadySeconds", "--yes")

        assert code == 1
        assert "admission changed values that were to stay" in err
        assert "new:1 → webhook:1" in err

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            ([CHILD], "and its fields with --field"),
            (["--field", "spec.x"], "name the objects in one way"),
            ([CHILD, "--field", "spec.x", "--drop"], "--drop goes with --instance"),
            (["--controller", "scaler", CHILD], "--controller go without"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, typed, words, why):
        code, _, err = typed(*words)

        assert code == 2
        assert why in " ".join(err.replace("│", " ").split())
