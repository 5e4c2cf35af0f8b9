"""`hedgerow release`, as typed: what happens while it is at work, on the model of a cluster."""

from __future__ import annotations

import json

import pytest

from hedgerow.kube import errors
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from support.commands.gardens import CHILD, NAME, OURS, Garden

REPLICAS = ("--field", "spec.replicas")
pytestmark = pytest.mark.usefixtures("garden")
COMMAND = ("release",)


@pytest.fixture
def garden(garden: Garden) -> Garden:
    garden.declare(replicas=5)
    return garden


def let_go(garden: Garden) -> None:
    """Be the operator that lets go of what is yielded."""
    garden.declare()


class TestOperator:
    def test_one_that_lets_go_is_waited_for(self, garden, typed):
        garden.also("scaler", replicas=5)
        reads = [lambda: None, lambda: None, lambda: let_go(garden)]
        before = garden.before

        async def hook(sent):
            if sent.verb == "read" and sent.api.kind == "Deployment" and reads:
                reads.pop(0)()
            await before(sent)

        garden.before = hook

        code, out, _ = typed(CHILD, *REPLICAS)

        assert (code, reads) == (0, [])
        assert f"{OURS} let go of 1 field, no value changed" in out
        assert [sent.manager for sent in garden.writes] == ["hedgerow-cli"]
        assert garden.held("replicas") == {"scaler"}

    def test_one_that_does_not_is_not_waited_for_longer_than_said(self, garden, typed):
        garden.also("scaler", replicas=5)

        code, _, _ = typed(CHILD, *REPLICAS, "--wait", "50ms")

        assert code == 0
        assert [sent.manager for sent in garden.writes] == ["hedgerow-cli", OURS]
        assert garden.held("replicas") == {"scaler"}

    def test_one_that_let_go_of_all_at_the_last_moment_leaves_nothing_to_do(self, garden, typed):
        garden.declare("team", replicas=5)
        garden.interruptions[1] = lambda: garden.store.apply(garden.target, OURS)

        assert typed(CHILD, *REPLICAS, "--wait", "0")[0] == 0
        assert [sent.manager for sent in garden.writes] == ["hedgerow-cli"]


class TestOdd:
    def test_what_cannot_be_decoded_is_not_written(self, garden, typed):
        garden.odd = {"Deployment"}

        code, out, err = typed(CHILD, *REPLICAS, "--to", "team")

        assert (code, out, garden.writes) == (1, "", [])
        assert "cannot be decoded: its JSON has bytes that are no UTF-8" in err


class TestMeanwhile:
    def test_a_write_that_meets_a_change_is_made_anew(self, garden, typed):
        garden.interruptions[2] = lambda: garden.also("other", minReadySeconds=3)

        assert typed(CHILD, *REPLICAS, "--to", "team", "--wait", "0")[0] == 0

        assert garden.held("replicas") == {"team"}
        assert garden.live["spec"]["minReadySeconds"] == 3

    def test_an_object_that_never_rests_is_given_up(self, garden, typed):
        for number in range(2, 7):
            garden.interruptions[number] = lambda n=number: garden.also("other", minReadySeconds=n)

        code, _, err = typed(CHILD, *REPLICAS, "--to", "team", "--wait", "0")

        assert code == 1
        assert "changes all the time" in err

    def test_one_that_is_made_anew_is_left_alone(self, garden, typed):
        garden.interruptions[1] = garden.anew

        code, _, err = typed(CHILD, *REPLICAS, "--to", "team", "--wait", "0")

        assert code == 1
        assert "deleted and created again" in err

    def test_a_value_that_somebody_changes_is_told(self, garden, typed):
        garden.also("scaler", replicas=5)
        spec = {**garden.target, "spec": {"replicas": 9}}
        garden.interruptions[1] = lambda: garden.store.apply(spec, "scaler", force=True)

        code, out, err = typed(CHILD, *REPLICAS, "--wait", "0")

        assert code == 1
        assert "but a value has changed meanwhile; .spec.replicas: 5 → 9" in err
        assert "no value changed" not in out
        assert f"{OURS} let go of 1 field" in out


class TestNewHolder:
    """One who cannot hold the fields is found out before anything is written."""

    def refuse(self, garden: Garden, error: errors.KubeError, *, dry_run: bool = True) -> None:
        before = garden.before

        async def hook(sent):
            if sent.manager == "team" and sent.dry_run == dry_run:
                raise error
            await before(sent)

        garden.before = hook

    @pytest.mark.parametrize(
        "error",
        [
            errors.Invalid("denied by policy", code=422),
            errors.Forbidden("may not patch", code=403),
            errors.Conflict("in the way", code=409),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_what_it_may_not_hold_is_refused_and_nothing_is_yielded(self, garden, typed, error):
        self.refuse(garden, error)

        code, out, err = typed(CHILD, *REPLICAS, "--to", "team", "--wait", "0")

        assert (code, out) == (3, "")
        assert f"team cannot hold them: {error.message}; nothing was changed" in err
        assert garden.writes == []
        assert (garden.store.get(garden.owner) or {})["metadata"].get("annotations", {}) == {}

    def test_a_dry_run_finds_it_out_too(self, garden, typed):
        self.refuse(garden, errors.Invalid("denied by policy", code=422))

        assert typed(CHILD, *REPLICAS, "--to", "team", "--dry-run")[0] == 3

    def test_a_refusal_later_on_tells_that_it_is_yielded_already(self, garden, typed):
        self.refuse(garden, errors.Invalid("denied by policy", code=422), dry_run=False)

        code, _, err = typed(CHILD, *REPLICAS, "--to", "team", "--wait", "0")

        assert code == 1
        assert "BlueGreen/demo yields them already" in err
        assert "denied by policy" in err

    @pytest.mark.parametrize("name", ["x" * 129, "a\tb", "a\nb", "\u200b"])
    def test_what_is_no_name_of_a_field_manager_is_wrong_usage(self, garden, typed, name):
        code, _, err = typed(CHILD, *REPLICAS, "--to", name)

        assert code == 2
        assert "at most 128 printable characters" in err
        assert garden.exchanges == []

    def test_one_of_that_length_is_a_name(self, garden, typed):
        assert typed(CHILD, *REPLICAS, "--to", "x" * 128, "--wait", "0")[0] == 0
        assert garden.held("replicas") == {"x" * 128}


class TestTold:
    def test_what_would_be_reset_is_told_and_nothing_is_written(self, garden, typed):
        code, out, err = typed(CHILD, *REPLICAS)
        assert (code, out) == (3, "")
        assert ".spec.replicas: 5 → 1" in err
        assert "nothing was changed" in err
        assert garden.writes == []

    def test_a_value_that_is_the_default_would_be_nobodys(self, garden, typed):
        garden.declare(replicas=1)

        _, _, err = typed(CHILD, *REPLICAS)

        assert "nobody would hold them" in err

    def test_it_is_shown_first_with_what_is_yielded(self, garden, typed):
        code, out, _ = typed(CHILD, *REPLICAS, "--to", "team", "--dry-run")

        header, line, field_policy = out.splitlines()
        assert code == 0
        assert header.split() == ["FIELD", "VALUE", "FROM", "TO"]
        assert line.split() == [".spec.replicas", "5", OURS, "Apply", "team"]
        assert (
            field_policy
            == f"BlueGreen/demo would be annotated to yield: Deployment/{NAME}: spec.replicas"
        )
        assert garden.writes == []

    def test_it_is_told_to_programs_and_without_terms_once_they_are_there(self, garden, typed):
        first = json.loads(typed(CHILD, *REPLICAS, "--to", "t", "--wait", "0", "-o", "json")[1])
        garden.declare(replicas=5)
        again = json.loads(typed(CHILD, *REPLICAS, "--wait", "0", "-o", "json")[1])

        assert first["resource"] == "BlueGreen/demo"
        assert first["yield"] == f"Deployment/{NAME}: spec.replicas"
        assert first["object"]["name"] == NAME
        assert first["moves"] == [
            {
                "path": ".spec.replicas",
                "value": 5,
                "fate": "taken",
                "from": {"manager": OURS, "operation": "Apply"},
                "to": ["t"],
            }
        ]
        assert "yield" not in again

    def test_what_is_only_contested_is_told_as_yielded_alone(self, garden, typed):
        garden.contest(".spec.paused")

        _, out, _ = typed(CHILD, "--field", "spec.paused", "--wait", "0")

        assert out.splitlines()[0] == (
            f"BlueGreen/demo is annotated to yield: Deployment/{NAME}: spec.paused"
        )


class TestWait:
    @pytest.mark.parametrize("given", ["30", "-1s", "61m", "soon"])
    def test_it_takes_a_duration_as_every_option_does(self, typed, given):
        code, _, err = typed(CHILD, *REPLICAS, "--wait", given)

        assert code == 2
        assert (
            f"--wait takes a duration such as 30s or 1m30s, an hour at most, not {given!r}" in err
        )


class TestRefused:
    @pytest.mark.parametrize("field", ["spec.a; Service/x: b", "spec.a\nService/x: b", "a;"])
    def test_a_field_that_would_be_an_entry_of_its_own(self, garden, typed, field):
        code, _, err = typed(CHILD, "--field", field, "--to", "team")

        assert code == 1
        assert "is more than a path" in err
        assert len(err.splitlines()) == 1
        assert garden.writes == []

    def test_a_release_to_oneself(self, garden, typed):
        assert typed(CHILD, "--to", OURS)[0] == 1

    def test_of_another_instance_there_is_nothing(self, garden, typed):
        code, _, err = typed(CHILD, "--instance", "east")

        assert code == 1
        assert "hedgerow-east-bluegreen holds nothing" in err

    @pytest.mark.parametrize("target", ["deployment", "deployment/", "a/b/c", "deployment/.."])
    def test_what_is_no_target(self, garden, typed, target):
        code, _, err = typed(target)

        assert code == 2
        assert "is no KIND/NAME" in err

    def test_a_child_whose_resource_is_not_the_one_there(self, garden, typed):
        garden.store.delete(garden.owner)

        code, _, err = typed(CHILD)

        assert code == 1
        assert "no child of a hedgerow resource" in err

    def test_a_word_of_several_meanings_is_told(self, garden, typed):
        other = ApiResource("other.example.com/v1", "Deployment", "deployments")
        garden.store.serve(ServedKind(other, {}))
        code, _, err = typed(f"deployments/{NAME}", *REPLICAS)

        assert code == 3
        assert "taken for deployments.v1.apps; it could also mean deployments.v1.other" in err

    def test_an_annotation_of_another(self, garden, typed):
        meta = {"metadata": {"annotations": {YIELD: "Service/*: a"}}}
        garden.store.merge(garden.owner, meta, "kubectl-annotate")

        code, _, err = typed(CHILD, *REPLICAS, "--to", "team")

        assert code == 3
        assert "held by kubectl-annotate" in err
        assert "`kubectl annotate --overwrite bluegreens.app.demo.kakao.com demo '" in err
        asked = [(str(sent), sent.force) for sent in garden.writes]
        assert asked == [("apply BlueGreen default/demo", False)], "refused; nothing else is tried"
