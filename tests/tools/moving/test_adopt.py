"""`hedgerow adopt` of one object, as typed, on the model of a cluster."""

from __future__ import annotations

import json

import pytest

from hedgerow.kube import errors
from support.commands.gardens import CHILD, IMAGE, NAME, OURS, Garden

FROM = ("--from", "old")
COMMAND = ("adopt",)
CSA = "kubectl-client-side-apply"
COPY = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def garden(garden: Garden) -> Garden:
    """An image that another holds and hedgerow declares otherwise."""
    garden.declare("old", image="old:1", paused=True)
    garden.declare(image="")
    garden.contest(IMAGE)
    return garden


def fates(out: str) -> dict[str, str]:
    [told] = json.loads(out)["objects"]
    return {move["path"]: " ".join((move["fate"], *move["to"])) for move in told["moves"]}


class TestShown:
    def test_each_field_of_a_sole_object_is_shown_with_who_has_it_then(self, garden, typed):
        before = garden.live

        code, out, _ = typed(CHILD, *FROM)

        assert (code, garden.live, garden.writes) == (0, before, [])
        rows = [line.split() for line in out.splitlines()]
        assert rows[0] == ["FIELD", "VALUE", "FROM", "TO"]
        assert [IMAGE, "old:1", "old", "Apply", OURS] in rows
        assert [".spec.paused", "true", "old", "Apply", "nobody"] in rows
        assert f"of 1 object would be adopted by {OURS}; nothing was changed. --yes does it" in out

    def test_and_told_to_programs(self, garden, typed):
        _, out, _ = typed(CHILD, *FROM, "-o", "json")

        told = json.loads(out)
        assert (told["dryRun"], told["objects"][0]["to"]) == (True, OURS)
        assert fates(out)[IMAGE] == f"taken {OURS}"
        assert fates(out)[".spec.paused"] == "unowned"
        assert fates(out)[".spec.selector"] == f"kept {OURS}"

    def test_what_the_server_refuses_is_shown_too(self, garden, typed):
        async def refuse(sent):
            if sent.verb == "edit" and sent.dry_run:
                raise errors.Forbidden("you may not", code=403)

        garden.before = refuse

        code, out, err = typed(CHILD, *FROM)

        assert code == 1
        assert "failed: you may not" in out
        assert "1 object failed, see above" in err

    def test_a_path_is_whole_however_long_its_keys_are_and_absent_values_are_told(
        self, garden, typed
    ):
        live = garden.live
        (old,) = [e for e in live["metadata"]["managedFields"] if e["manager"] == "old"]
        names = [f"example.com/{'a-very-long-prefix-' * 5}{end}" for end in ("one", "two")]
        old["fieldsV1"]["f:spec"]["f:gone"] = {f"f:{name}": {} for name in names}
        garden.store.put(live)

        _, out, _ = typed(CHILD, *FROM)

        for name in names:
            assert f".spec.gone.{name}  (absent)" in out


class TestDone:
    def test_a_controller_gets_what_it_declares_and_the_rest_is_nobodys(self, garden, typed):
        code, out, _ = typed(CHILD, *FROM, "--yes")

        assert code == 0
        assert garden.held("image") == {OURS}
        assert garden.held("paused") == set()
        edits = [sent for sent in garden.exchanges if sent.verb == "edit"]
        assert ([sent.dry_run for sent in edits], garden.writes) == ([False], [])
        assert garden.live["spec"]["template"]["spec"]["containers"][0]["image"] == "old:1"
        assert f"{OURS} applies what it declares there" in out
        assert "What nobody holds stays as it is" in out
        assert garden.declare(image="new:1")["spec"]["paused"] is True

    def test_one_who_is_named_gets_all_and_no_more_is_told(self, garden, typed):
        code, out, _ = typed(CHILD, *FROM, "--to", "team", "--yes")

        assert code == 0
        assert garden.held("paused") == {"team"}
        assert out.splitlines()[-1].endswith("of 1 object adopted by team, no value changed.")

    def test_single_fields_go_with_the_keys_of_their_items(self, garden, typed):
        code, _, _ = typed(CHILD, *FROM, "--to", "team", "--field", IMAGE[1:], "--yes")

        assert code == 0
        assert garden.held("image") == garden.held("name") == {"team"}
        assert garden.held("paused") == {"old"}

    def test_of_its_status_an_operator_gets_all_and_removes_what_it_does_not_declare(
        self, garden, typed
    ):
        garden.note("old", routeTo="Green")

        assert typed("bluegreen/demo", *FROM, "--yes")[0] == 0

        assert garden.noted("routeTo") == ("Green", {OURS})
        garden.note(observedGeneration=1)
        assert garden.noted("routeTo") == (None, set())

    @pytest.mark.parametrize(
        ("to", "told"),
        [
            ("team", f"team gets its annotation {COPY} too: its next apply removes it."),
            ("kubectl", ""),
            ("", f"Nobody holds its annotation {COPY} then, which stays."),
        ],
    )
    def test_what_kubectl_would_do_is_told_and_who_has_its_copy(self, garden, typed, to, told):
        garden.declare(CSA, image="old:1")

        out = typed(CHILD, "--from", CSA, *(("--to", to) if to else ()))[1]

        assert "kubectl apply --server-side" in out
        assert told in out
        assert told or COPY not in out


class TestUndone:
    @pytest.mark.parametrize("more", [(), ("--field", "spec.*"), ("--to", "team")])
    def test_every_move_can_be_undone_also_of_what_nobody_held_then(
        self, garden, typed, tmp_path, more
    ):
        garden.contest(IMAGE, ".spec.paused")
        before, saved = garden.live["metadata"]["managedFields"], str(tmp_path / "undo")
        assert typed(CHILD, *FROM, *more, "--yes", "--save", saved)[0] == 0
        assert garden.live["metadata"]["managedFields"] != before

        shown = typed("--undo", saved)[1]
        assert "of 1 object would be restored; nothing was changed. --yes does it." in shown
        assert typed("--undo", saved, "--yes")[0] == 0

        assert sorted(map(str, garden.live["metadata"]["managedFields"])) == sorted(
            map(str, before)
        )


class TestMeanwhile:
    def test_what_somebody_changes_is_looked_at_again(self, garden, typed):
        garden.interruptions[1] = lambda: garden.also("other", minReadySeconds=3)

        assert typed(CHILD, *FROM, "--yes")[0] == 0
        assert garden.held("image") == {OURS}

    @pytest.mark.parametrize(
        ("error", "times", "left"),
        [
            (errors.Throttled("later", code=429), 1, ""),
            (errors.Unauthenticated("who", code=401), 1, ""),
            (errors.Throttled("later", code=429), 9, "later"),
        ],
        ids=["too many requests", "another login", "too many requests each time"],
    )
    def test_what_was_not_carried_out_is_looked_at_again(self, garden, typed, error, times, left):
        def refuse() -> None:
            raise error

        garden.interruptions |= dict.fromkeys(range(1, times + 1), refuse)

        code, _, err = typed(CHILD, *FROM, "--yes")

        assert (code == 0, left in err) == (not left, True)
        assert garden.held("image") == ({"old"} if left else {OURS})

    def test_an_object_that_never_rests_is_given_up(self, garden, typed):
        for number in range(1, 20):
            garden.interruptions[number] = lambda n=number: garden.also("other", minReadySeconds=n)

        code, out, _ = typed(CHILD, *FROM, "--yes")

        assert code == 1
        assert "it changes all the time" in out
        assert "old" in garden.held("image")


class TestRefused:
    def test_it_is_told_who_else_there_is(self, garden, typed):
        code, out, _ = typed(CHILD, "--from", "nobody", "--to", "team")

        assert (code, garden.writes) == (0, [])
        assert f"nobody holds nothing of it; others: {OURS}, old" in out
        code, out, _ = typed(CHILD, *FROM, "--to", "team", "--field", "spec.never")
        assert "old holds nothing of it that is called spec.never" in out

    def test_what_a_controller_knows_nothing_of(self, garden, typed):
        code, out, _ = typed(CHILD, *FROM, "--field", "spec.paused", "--yes")

        assert code == 1
        assert "let the operator look at it first" in out
        assert garden.held("paused") == {"old"}

    def test_what_is_no_path_and_what_a_controller_does_not_write(self, garden, typed):
        assert "no path" in typed(CHILD, *FROM, "--field", "a..b")[1]
        words = ("bluegreen/demo", "--from", "user Update scale")
        assert "declares nothing of it but its status" in typed(*words)[1]

    def test_what_is_not_named_and_not_controlled(self, garden, typed):
        garden.store.delete(garden.owner)

        code, out, _ = typed(CHILD, *FROM)

        assert code == 1
        assert "no hedgerow resource controls it" in out

    def test_an_object_that_is_not_there_or_cannot_be_decoded(self, garden, typed):
        code, out, _ = typed("deployment/none", *FROM)
        assert code == 1
        assert "it does not exist in namespace default" in out

        garden.odd = {"Deployment"}
        code, out, _ = typed(CHILD, *FROM)
        assert (code, garden.writes) == (1, [])
        assert "cannot be decoded: its JSON has bytes that are no UTF-8" in out

    def test_what_the_server_makes_of_it_is_compared(self, garden, typed, tmp_path, monkeypatch):
        saved = str(tmp_path / "undo")
        assert typed(CHILD, *FROM, "--to", "team", "--yes", "--save", saved)[0] == 0
        edit = garden.store.edit

        def dropping(*words, **how):
            after = edit(*words, **how)
            entries = after["metadata"]["managedFields"]
            after["metadata"]["managedFields"] = [e for e in entries if e["manager"] != "old"]
            return after

        monkeypatch.setattr(garden.store, "edit", dropping)

        code, out, _ = typed("--undo", saved, "--yes")

        assert code == 1
        assert f"Deployment default/{NAME}: failed: the server stores other managed fields" in out
        assert "Nothing was restored" in out
