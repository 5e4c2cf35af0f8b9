"""`hedgerow release`, as typed: what happens while it is at work, on the model of a cluster."""

from __future__ import annotations

import json

import pytest

from hedgerow.kube import errors
from hedgerow.plan.yield_and_claim import YIELD
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from support.commands.gardens import CHILD, IMAGE, NAME, OURS, RESOURCE, Garden
from support.server.apiserver import refusal

REPLICAS = ("--field", "spec.replicas")
pytestmark = pytest.mark.usefixtures("garden")
COMMAND = ("release",)


@pytest.fixture
def garden(garden: Garden) -> Garden:
    garden.declare(replicas=5)
    return garden


class TestShared:
    def test_what_others_hold_too_is_yielded_and_let_go_of_at_once(self, garden, typed):
        garden.also("scaler", replicas=5)
        before = garden.live["spec"]

        code, out, _ = typed(CHILD, *REPLICAS, "--yes")

        assert code == 0
        assert "1 field of 1 object released, no value changed." in out
        assert [sent.manager for sent in garden.writes] == ["hedgerow-cli"]
        assert garden.held("replicas") == {"scaler"}
        assert garden.live["spec"] == before


class TestLetGoAlready:
    @pytest.fixture(autouse=True)
    def shared(self, garden) -> None:
        garden.also("scaler", replicas=5)

    def test_a_second_time_there_is_nothing_to_do(self, typed):
        typed(CHILD, *REPLICAS, "--yes")

        code, out, _ = typed(CHILD, *REPLICAS, "--yes")

        assert code == 0
        assert f"{OURS} holds nothing of Deployment/{NAME} that is called spec.replicas" in out
        assert "Nothing was released (1 object with nothing to do)." in out

    @pytest.mark.parametrize("refused", [False, True])
    def test_the_annotation_is_told_whatever_comes_after_it(self, garden, typed, refused):
        def operate() -> None:
            garden.declare()
            if refused:
                garden.answers["edit Deployment"] = refusal(403, "Forbidden", "no")

        garden.interruptions[2] = operate

        code, out, _ = typed(CHILD, *REPLICAS, "--yes")

        assert code == refused
        assert f"BlueGreen/demo is annotated to yield: Deployment/{NAME}: spec.replicas" in out
        assert garden.held("replicas") == {"scaler"}


class TestNewHolder:
    def test_what_only_we_hold_goes_to_it_and_no_value_is_applied(self, garden, typed):
        assert typed(CHILD, *REPLICAS, "--to", "team", "--yes")[0] == 0

        assert garden.held("replicas") == {"team"}
        assert [str(sent) for sent in garden.writes] == ["apply BlueGreen default/demo"]

    def test_without_fields_all_goes_but_what_marks_it_as_ours(self, garden, typed):
        garden.also("scaler", replicas=5)

        assert typed(CHILD, "--to", "team", "--yes")[0] == 0

        assert garden.held("replicas") == {"scaler"}
        assert garden.held("image") == garden.held("selector") == {"team"}
        assert garden.held("hedgerow.dev/controller") == {OURS}
        assert garden.held("ownerReferences") == {OURS}

    def test_a_write_that_meets_a_change_is_made_anew(self, garden, typed):
        garden.interruptions[2] = lambda: garden.also("other", minReadySeconds=3)

        assert typed(CHILD, *REPLICAS, "--to", "team", "--yes")[0] == 0
        assert garden.held("replicas") == {"team"}

    def test_another_release_at_the_same_time_has_its_fields_yielded_too(self, garden, typed):
        def other() -> None:
            meta = {**RESOURCE["metadata"], "annotations": {YIELD: "A/x: a"}}
            garden.store.apply({**RESOURCE, "metadata": meta}, "hedgerow-cli")

        garden.interruptions[1] = other

        assert typed(CHILD, *REPLICAS, "--to", "team", "--yes")[0] == 0
        notes = garden.store.get(RESOURCE)["metadata"]["annotations"]
        assert notes[YIELD] == f"A/x: a; Deployment/{NAME}: spec.replicas"

    def test_it_is_undone_by_its_record(self, garden, typed, tmp_path):
        before, saved = garden.live["metadata"]["managedFields"], str(tmp_path / "undo")
        garden.also("scaler", replicas=5)
        before = garden.live["metadata"]["managedFields"]
        words = (CHILD, "--to", "team", "--yes", "--save", saved)
        assert "what `hedgerow release --undo` needs" in typed(*words)[1]

        assert "would be restored" in typed("--undo", saved)[1]
        code, out, _ = typed("--undo", saved, "--yes")
        assert code == 0
        assert "If BlueGreen/demo was annotated to yield these fields, it still is" in out
        now = garden.live["metadata"]["managedFields"]
        assert sorted(map(str, now)) == sorted(map(str, before))

    @pytest.mark.parametrize("yes", [(), ("--yes",)])
    def test_what_the_server_refuses_is_told(self, garden, typed, yes):
        async def hook(sent):
            if sent.verb == "edit":
                raise errors.Forbidden("may not patch", code=403)

        garden.before = hook

        code, out, _ = typed(CHILD, *REPLICAS, "--to", "team", *yes)

        assert code == 1
        assert "failed: may not patch" in out
        assert garden.held("replicas") == {OURS}

    @pytest.mark.parametrize("name", ["x" * 129, "a\tb", "a\nb", "\u200b"])
    def test_what_is_no_name_of_a_field_manager_is_wrong_usage(self, garden, typed, name):
        code, _, err = typed(CHILD, *REPLICAS, "--to", name)

        assert code == 2
        assert "at most 128 printable characters" in err
        assert garden.exchanges == []

    def test_one_of_that_length_is_a_name(self, garden, typed):
        assert typed(CHILD, *REPLICAS, "--to", "x" * 128, "--yes")[0] == 0
        assert garden.held("replicas") == {"x" * 128}


class TestMany:
    @pytest.mark.parametrize("words", [("-l", "hedgerow.dev/controller=bluegreen"), ("-f",)])
    def test_children_are_chosen_as_by_every_command(self, garden, typed, tmp_path, words):
        file = tmp_path / "m.yaml"
        file.write_text(json.dumps(garden.target), "utf-8")
        words = (*words, str(file)) if words == ("-f",) else words

        assert typed(*words, *REPLICAS, "--to", "team", "--yes")[0] == 0
        assert garden.held("replicas") == {"team"}


class TestTold:
    @pytest.mark.parametrize("yes", [(), ("--yes",)])
    def test_what_nobody_would_hold_is_kept(self, garden, typed, yes):
        code, out, err = typed(CHILD, *REPLICAS, *yes)

        assert code == 3
        assert f"kept: nobody but {OURS} holds 1 field of these, .spec.replicas: name" in out
        assert "1 object kept, see above" in err
        assert garden.writes == []
        assert garden.held("replicas") == {OURS}

    def test_it_is_shown_first_with_what_is_yielded(self, garden, typed):
        code, out, _ = typed(CHILD, *REPLICAS, "--to", "team")

        header, line, summary, field_policy = out.splitlines()
        assert code == 0
        assert header.split() == ["FIELD", "VALUE", "FROM", "TO"]
        assert line.split() == [".spec.replicas", "5", OURS, "Apply", "team"]
        assert summary.startswith("1 field of 1 object would be released to team; nothing was")
        assert (
            field_policy
            == f"BlueGreen/demo would be annotated to yield: Deployment/{NAME}: spec.replicas"
        )
        assert garden.writes == []
        assert garden.held("replicas") == {OURS}

    def test_it_is_told_to_programs_and_without_terms_once_they_are_there(self, garden, typed):
        words = (CHILD, *REPLICAS, "--yes", "-o", "json")
        [first] = json.loads(typed(*words, "--to", "t")[1])["objects"]
        garden.declare(replicas=5)
        [again] = json.loads(typed(*words)[1])["objects"]

        assert (first["fate"], first["to"], first["fields"]) == ("released", "t", 1)
        assert first["resource"] == "BlueGreen/demo"
        assert first["yield"] == f"Deployment/{NAME}: spec.replicas"
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

        _, out, _ = typed(CHILD, "--field", "spec.paused", "--yes")

        assert out.splitlines()[-1] == (
            f"BlueGreen/demo is annotated to yield: Deployment/{NAME}: spec.paused"
        )


class TestOfOthers:
    """Fields of managers that have nothing to do with hedgerow."""

    @pytest.fixture(autouse=True)
    def foreign(self, garden) -> None:
        garden.store.delete(garden.target)
        live = garden.declare("helm", replicas=5)
        del live["metadata"]["ownerReferences"]
        garden.store.put(live)
        garden.also("team", replicas=5, minReadySeconds=7)

    @pytest.mark.parametrize(
        ("words", "code", "told", "replicas", "seconds"),
        [
            ("", 1, "name with --from who gives fields up: helm, team", "helm team", "team"),
            ("--from no", 0, "no holds nothing of it; others: helm, team", "helm team", "team"),
            ("--from team", 3, "nobody but team holds 1 field of these", "helm team", "team"),
            ("--from team --field spec.replicas", 0, "1 field released", "helm", "team"),
            ("--from team --to x", 0, "2 fields released from team", "helm", "x"),
            ("--from team,helm --to x --field spec.replicas", 0, "released from", "x", "team"),
        ],
    )
    def test_named_managers_give_up_what_others_hold_or_get(
        self, garden, typed, words, code, told, replicas, seconds
    ):
        before = garden.live
        spec = before["spec"]
        typed(CHILD, *words.split())
        assert garden.live == before

        ended, out, _ = typed(CHILD, *words.split(), "--yes")

        assert (ended, garden.live["spec"]) == (code, spec)
        assert told in out
        assert garden.held("replicas") == set(replicas.split())
        assert garden.held("minReadySeconds") == set(seconds.split())

    @pytest.mark.parametrize(("others", "code"), [(("argo",), 0), ((), 3)])
    def test_items_of_which_only_the_keys_are_held_go_too(self, garden, typed, others, code):
        container = {"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
        for manager in ("flux", *others):
            garden.also(manager, template={"spec": {"containers": [container]}})
        spec = garden.live["spec"]

        assert typed(CHILD, "--from", "flux", "--yes")[0] == code

        assert garden.held("containerPort") == (set(others) or {"flux"})
        assert garden.live["spec"] == spec


class TestItems:
    """A container of which somebody else holds the image, and not the name."""

    @pytest.mark.parametrize(
        ("words", "code", "name", "image"),
        [
            ("{}.image", 0, OURS, "kubectl-set"),
            ("{}.image --to team", 0, OURS, "kubectl-set"),
            ("{}.**", 3, OURS, f"{OURS} kubectl-set"),
            ("{}.** --to team", 0, "team", "kubectl-set"),
        ],
    )
    def test_the_key_that_nobody_else_holds_stays_or_goes_to_the_new_holder(
        self, garden, typed, words, code, name, image
    ):
        containers = [{"name": "c", "image": "set:1"}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        garden.store.merge(garden.target, patch, "kubectl-set")
        garden.declare(image="set:1", replicas=5)
        item = IMAGE.removesuffix(".image")

        assert typed(CHILD, "--yes", "--field", *words.format(item).split())[0] == code
        assert garden.held("name") == {name}
        assert garden.held("image") == set(image.split())


class TestRefused:
    @pytest.mark.parametrize("field", ["spec.a; Service/x: b", "spec.a\nService/x: b", "a;"])
    def test_a_field_that_would_be_an_entry_of_its_own(self, garden, typed, field):
        code, out, _ = typed(CHILD, "--field", field, "--to", "team", "--yes")

        assert code == 1
        assert "is more than a path" in out
        assert garden.writes == []

    def test_a_release_to_oneself(self, garden, typed):
        assert typed(CHILD, "--to", OURS)[0] == 1

    @pytest.mark.parametrize("target", ["deployment", "deployment/", "a/b/c", "deployment/.."])
    def test_what_is_no_target(self, garden, typed, target):
        code, _, err = typed(target)

        assert code == 2
        assert "is no KIND/NAME" in err

    def test_a_child_whose_resource_is_not_the_one_there(self, garden, typed):
        garden.store.delete(garden.owner)

        code, out, _ = typed(CHILD)

        assert code == 1
        assert (
            f"no hedgerow resource controls it; name with --from who gives fields up: {OURS}" in out
        )

    def test_a_word_of_several_meanings_is_told(self, garden, typed):
        other = ApiResource("other.example.com/v1", "Deployment", "deployments")
        garden.store.serve(ServedKind(other, {}))
        code, _, err = typed(f"deployments/{NAME}", *REPLICAS)

        assert code == 3
        assert "taken for deployments.v1.apps; it could also mean deployments.v1.other" in err

    def test_an_annotation_of_another(self, garden, typed):
        meta = {"metadata": {"annotations": {YIELD: "Service/*: a"}}}
        garden.store.merge(garden.owner, meta, "kubectl-annotate")

        code, out, _ = typed(CHILD, *REPLICAS, "--to", "team", "--yes")

        assert code == 3
        assert "held by kubectl-annotate" in out
        assert "`kubectl annotate --overwrite bluegreens.app.demo.kakao.com demo '" in out
        asked = [(str(sent), sent.force) for sent in garden.writes]
        assert asked == [("apply BlueGreen default/demo", False)], "refused; nothing else is tried"
