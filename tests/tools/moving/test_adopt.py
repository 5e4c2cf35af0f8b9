"""`hedgerow adopt`, as typed: what happens while it is at work, on the model of a cluster."""

from __future__ import annotations

import json

import pytest

from hedgerow_testing.memory.answers import Refused
from support.commands.gardens import CHILD, IMAGE, OURS, Garden
from support.server.apiserver import Reply

FROM = ("--from", "old")
COMMAND = ("adopt",)


@pytest.fixture
def garden(garden: Garden) -> Garden:
    """An image that another holds and hedgerow declares otherwise."""
    garden.declare("old", image="old:1", paused=True)
    garden.declare(image="")
    garden.contest(IMAGE)
    return garden


class TestFromOneself:
    def test_it_is_told_who_else_there_is(self, garden, typed):
        code, out, err = typed(CHILD, "--from", OURS)

        assert (code, out) == (1, "")
        assert f"{OURS} already is the manager that gets the fields" in err
        assert err.strip().endswith("name another field manager that holds fields: old")
        assert garden.writes == []

    def test_or_that_nobody_else_is(self, garden, typed):
        code, _, err = typed(CHILD, "--from", "old", "--to", "old")

        assert code == 1
        assert err.strip().endswith(f"another field manager that holds fields: {OURS}")


class TestOdd:
    def test_what_cannot_be_decoded_is_not_written(self, garden, typed):
        garden.odd = {"Deployment"}

        code, out, err = typed(CHILD, *FROM)

        assert (code, out, garden.writes) == (1, "", [])
        assert "cannot be decoded: its JSON has bytes that are no UTF-8" in err


class TestDone:
    def test_fields_are_held_first_and_then_let_go(self, garden, typed):
        code, out, _ = typed(CHILD, *FROM)

        assert code == 0
        assert garden.held("image") == {OURS}
        assert garden.held("paused") == set()
        assert [sent.manager for sent in garden.writes] == [OURS]
        assert garden.live["spec"]["template"]["spec"]["containers"][0]["image"] == "old:1"
        assert "hedgerow-bluegreen applies what it declares there" in out
        assert "What nobody holds stays as it is" in out

    def test_one_who_is_named_gets_all_and_no_more_is_told(self, garden, typed):
        code, out, _ = typed(CHILD, *FROM, "--to", "team")

        assert code == 0
        assert garden.held("paused") == {"team"}
        assert out.splitlines()[-1].endswith("fields moved from old, no value changed")

    def test_a_path_is_whole_however_long_its_keys_are(self, garden, typed):
        entries = garden.live["metadata"]["managedFields"]
        (old,) = [entry for entry in entries if entry["manager"] == "old"]
        names = [f"example.com/{'a-very-long-prefix-' * 5}{end}" for end in ("one", "two")]
        old["fieldsV1"]["f:spec"]["f:gone"] = {f"f:{name}": {} for name in names}
        live = garden.live
        live["metadata"]["managedFields"] = entries
        garden.store.put(live)

        _, out, _ = typed(CHILD, *FROM, "--dry-run")

        for name in names:
            assert f".spec.gone.{name}  (absent)" in out

    def test_what_kubectl_would_do_is_told(self, garden, typed):
        garden.also("kubectl-client-side-apply", paused=True)

        words = ("--from", "kubectl-client-side-apply", "--to", "team")

        assert "kubectl apply --server-side" in typed(CHILD, *words)[1]

    def test_it_is_shown_first(self, garden, typed):
        code, out, _ = typed(CHILD, *FROM, "--dry-run", "-o", "json")

        told = json.loads(out)
        fates = {move["path"]: (move["fate"], move.get("value")) for move in told["moves"]}
        assert (code, told["dryRun"], garden.writes) == (0, True, [])
        assert fates[IMAGE] == ("taken", "old:1")
        assert fates[".spec.paused"] == ("unowned", True)

    def test_what_is_not_there_is_told_so(self, garden, typed):
        entries = garden.live["metadata"]["managedFields"]
        (old,) = [entry for entry in entries if entry["manager"] == "old"]
        old["fieldsV1"]["f:spec"]["f:gone"] = {}
        live = garden.live
        live["metadata"]["managedFields"] = entries
        garden.store.put(live)

        assert "(absent)" in typed(CHILD, *FROM, "--dry-run")[1]
        told = json.loads(typed(CHILD, *FROM, "--dry-run", "-o", "json")[1])
        assert not any("value" in m for m in told["moves"] if m["path"] == ".spec.gone")


class TestMeanwhile:
    def test_it_is_begun_anew_and_told_as_it_was_found_at_first(self, garden, typed):
        garden.interruptions[2] = lambda: garden.also("other", minReadySeconds=3)

        code, out, _ = typed(CHILD, *FROM, "-o", "json")

        assert code == 0
        assert garden.held("image") == {OURS}
        fates = {move["path"]: move["fate"] for move in json.loads(out)["moves"]}
        assert fates[IMAGE] == "taken"

    def test_an_operator_that_gives_it_up_again_has_it_at_last(self, garden, typed):
        for number in (2, 4, 6, 8):
            garden.interruptions[number] = lambda: garden.declare(image="")

        assert typed(CHILD, *FROM)[0] == 0

        assert garden.held("image") == set()
        assert garden.declare(image="new:1")["spec"]["template"]["spec"]["containers"]

    @pytest.mark.parametrize(
        "hasty", [(2, 4, 6, 8), (2, 4, 6, 8, 10)], ids=["then at rest", "and again"]
    )
    def test_of_its_status_an_operator_has_in_the_end_what_it_does_not_declare(
        self, garden, typed, hasty
    ):
        """Or nobody would ever remove it."""
        garden.note("old", routeTo="Green")
        for number in hasty:
            garden.interruptions[number] = lambda n=number: garden.note(observedGeneration=n)

        assert typed("bluegreen/demo", *FROM)[0] == 0

        assert garden.noted("routeTo") == ("Green", {OURS})
        garden.note(observedGeneration=1)
        assert garden.noted("routeTo") == (None, set())

    def test_an_object_that_never_rests_is_given_up(self, garden, typed):
        for number in range(1, 20):
            garden.interruptions[number] = lambda n=number: garden.also("other", minReadySeconds=n)

        code, _, err = typed(CHILD, *FROM)

        assert code == 1
        assert "changes all the time" in err
        assert "old" in garden.held("image")

    def test_one_that_is_made_anew_is_left_alone(self, garden, typed):
        garden.interruptions[1] = garden.anew

        code, _, err = typed(CHILD, *FROM)

        assert code == 1
        assert "deleted and created again" in err

    def test_admission_that_changes_what_is_applied_ends_it(self, garden, typed, monkeypatch):
        apply = garden.store.apply

        def admitted(body, manager, **more):
            live, created = apply(body, manager, **more)
            live["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror/old:1"
            return live, created

        monkeypatch.setattr(garden.store, "apply", admitted)

        code, _, err = typed(CHILD, *FROM)

        assert code == 1
        assert "image: old:1 → mirror/old:1" in err
        assert "old" in garden.held("image")

    def test_a_conflict_ends_it(self, garden, typed):
        cause = {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "y"',
            "field": ".spec.x",
        }
        refused = Refused(409, "Conflict", "x", [cause])
        garden.answers["apply Deployment"] = Reply(refused.code, refused.status)

        code, _, err = typed(CHILD, *FROM)

        assert code == 3
        assert "fields adopted so far stay adopted" in err


class TestRefused:
    def test_what_is_not_named_and_not_controlled(self, garden, typed):
        garden.store.delete(garden.owner)

        code, _, err = typed(CHILD, *FROM)

        assert code == 1
        assert "no hedgerow resource controls" in err

    def test_an_object_that_is_not_there(self, garden, typed):
        code, _, err = typed("deployment/none", *FROM)

        assert code == 1
        assert "does not exist in namespace default" in err

    def test_the_manager_is_to_be_named(self, garden, typed):
        assert typed(CHILD)[0] == 2
