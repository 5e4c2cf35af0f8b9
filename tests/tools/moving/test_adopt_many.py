"""`hedgerow adopt` of many objects, as typed, on the model of a cluster."""

from __future__ import annotations

import json

import pytest

from hedgerow.kube import errors
from support.commands.gardens import CHILD, NAME, OURS, Garden

TO = ("--to", "helm")
MANIFEST = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {NAME}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: gone}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{generateName: x-}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: 7}}
---
apiVersion: odd/v1
kind: Odd
metadata: {{name: x}}
---
apiVersion: apps/v1
kind: List
items:
- {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {NAME}}}}}
"""
pytestmark = pytest.mark.usefixtures("garden")
COMMAND = ("adopt",)


@pytest.fixture
def garden(garden: Garden) -> Garden:
    garden.declare("old", image="old:1", paused=True)
    garden.declare(image="")
    live = garden.live
    del live["metadata"]["ownerReferences"]
    garden.store.put(live)
    return garden


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "m.yaml"
    path.write_text(MANIFEST, "utf-8")
    return str(path)


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ("", "name the objects in one way"),
            ("deploy/x", "name with --from the managers"),
            ("--from a --to b", "name the objects in one way"),
            ("--from a,b --to c", "name the objects in one way"),
            ("-l a=b --all --from a --to b", "name the objects in one way"),
            ("deploy/x -l a=b --from a --to b", "name the objects in one way"),
            ("-f x -k y --from a --to b", "name the objects in one way"),
            ("-l a=b --to b", "name with --from the managers"),
            ("-A --repair deploy/x", "--all-namespaces goes with -l or --all"),
            ("-A --repair --all -n x", "--namespace and --all-namespaces exclude each other"),
            ("--repair --all --from a", "--repair goes without --from and --to"),
            ("--repair --all --field a", "--repair goes without --from and --to"),
            ("--repair", "name the objects in one way"),
            ("--undo f --all", "--undo goes with --yes"),
            ("--undo f --to x", "--undo goes with --yes"),
            ("--undo f --save g", "--undo goes with --yes"),
            (f"--all --from a --to {'x' * 129}", "at most 128 printable characters"),
        ],
    )
    def test_what_makes_no_sense_is_told_and_nothing_is_asked(self, garden, typed, words, told):
        code, out, err = typed(*words.split())

        assert (code, out, garden.exchanges) == (2, "", [])
        assert told in err

    def test_files_are_read_before_anything_is_asked_of_a_cluster(self, garden, typed, tmp_path):
        bad = tmp_path / "bad.yaml"
        bad.write_text("{", "utf-8")
        code, _, err = typed("-f", str(bad), "--from", "old", *TO)

        assert (code, garden.exchanges) == (1, [])
        assert "bad.yaml" in err

    def test_an_undo_file_is_read_first(self, garden, typed, file):
        assert typed("--undo", file)[0] == 1
        assert "no file that `hedgerow adopt --save` wrote" in typed("--undo", file)[2]
        assert typed("--undo", "/nowhere")[0] == 1
        assert garden.exchanges == []


class TestFiles:
    def test_each_object_is_told_of_and_what_is_none_does_not_stop_the_others(
        self, garden, typed, file
    ):
        words = ("-f", file, "--from", "old", *TO)

        code, out, err = typed(*words)
        assert code == 1
        assert garden.held("image") == {"old"}
        assert f"Deployment default/{NAME}  " in out
        assert "failed: it has no metadata.name" in out
        assert "failed: its metadata.name is no string" in out
        assert "Odd x" in out
        assert "failed: the server does not serve it" in out
        assert "of 1 object would be adopted by helm (1 object not there); nothing" in out
        assert "3 objects failed" in err

        code, out, err = typed(*words, "--yes")
        assert code == 1
        assert garden.held("image") == {"helm"}
        assert f"Deployment default/{NAME}: " in out
        assert "fields adopted from old Apply" in out
        assert "adopted by helm, no value changed" in out

        told = json.loads(typed(*words, "--yes", "-o", "json")[1])
        fates = [one["fate"] for one in told["objects"]]
        assert fates == ["failed", "failed", "failed", "nothing", "absent"]
        assert (told["dryRun"], told["complete"]) == (False, True)

    def test_an_object_of_another_namespace_than_that_of_n_fails(self, garden, typed, tmp_path):
        path = tmp_path / "m.json"
        metadata = {"name": NAME, "namespace": "default"}
        path.write_text(json.dumps({**garden.target, "metadata": metadata}), "utf-8")
        words = ("-f", str(path), "--from", "old", *TO)

        assert typed(*words, "-n", "default")[0] == 0
        code, out, _ = typed(*words, "-n", "shop")
        assert code == 1
        assert "failed: it names the namespace default, and -n names shop" in out


class TestSelected:
    def test_kinds_that_cannot_be_listed_are_named(self, garden, typed):
        async def forbid(sent):
            if (sent.verb, sent.api.kind) == ("list", "BlueGreen"):
                raise errors.Forbidden("no", code=403)

        garden.before = forbid

        code, out, err = typed("--all", "--from", "old", *TO, "-o", "json")

        assert code == 0
        assert [one["name"] for one in json.loads(out)["objects"]] == [NAME]
        assert [*json.loads(out)["unread"].values()] == ["you may not list them"]
        assert "not looked at: bluegreens.v1.app.demo.kakao.com: you may not list them" in err

    def test_where_nothing_can_be_listed_the_reason_is_the_error(self, garden, typed):
        async def refuse(sent):
            if sent.verb == "list":
                raise errors.Invalid("unable to parse requirement", code=400)

        garden.before = refuse

        code, out, err = typed("-l", "a in", "--from", "old", *TO)

        assert (code, out) == (1, "")
        assert "unable to parse requirement" in err

    def test_what_a_controller_made_is_left_alone_unless_it_is_named(self, garden, typed, file):
        live = garden.live
        live["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}
        ]
        garden.store.put(live)

        code, out, err = typed("--all", "--from", "old", *TO)

        assert code == 0
        assert "Nothing would be adopted." in out
        assert "1 object that a controller made left alone: name them to move their" in err
        for words in ((CHILD,), ("-f", file)):
            assert "of 1 object would be adopted by helm" in typed(*words, "--from", "old", *TO)[1]

    @pytest.mark.parametrize("more", [("-A",), ("-n", "default")])
    def test_objects_of_the_namespace_or_of_all(self, garden, typed, more):
        assert typed("-l", "a=b", "--from", "old", *TO, *more)[0] == 0
        code, out, _ = typed("--all", "--from", "old", *TO, *more, "--yes")

        assert code == 0
        assert "of 1 object adopted by helm" in out
        assert garden.held("image") == {"helm"}

    def test_one_that_is_damaged_or_changes_all_the_time_is_told(self, garden, typed):
        calls = iter(range(9))
        garden.interruptions = {
            n: lambda: garden.also("z", minReadySeconds=next(calls)) for n in range(1, 9)
        }

        code, out, _ = typed("--all", "--from", "old", *TO, "--yes")
        assert code == 1
        assert "failed: it changes all the time; try again" in out

        garden.odd = {"Deployment"}
        _, _, err = typed("--all", "--from", "old", *TO, "--yes")
        assert f"not looked at: Deployment/default/{NAME}: cannot be decoded: its JSON" in err


class TestWithoutManagedFields:
    def test_it_gets_them_by_an_apply_of_nothing(self, garden, typed):
        live = garden.live
        live["metadata"]["managedFields"] = []
        garden.store.put(live)
        words = (CHILD, "--from", "old,before-first-apply", *TO)

        assert "would be adopted by helm" in typed(*words)[1]
        assert garden.live["metadata"]["managedFields"] == []
        code, out, _ = typed(*words, "--yes")

        assert code == 0
        assert "before-first-apply is everybody who wrote before the first apply" in out
        assert garden.held("image") == {"helm"}


class TestEarlyEnd:
    @pytest.mark.parametrize("output", ["text", "json"])
    def test_a_signal_ends_it_after_what_was_begun(
        self, garden, typed, tmp_path, monkeypatch, output
    ):
        garden.interrupt("edit")
        monkeypatch.setattr("hedgerow_tools.moving.outcomes.AT_ONCE", 1)
        saved = str(tmp_path / "undo")

        words = (CHILD, "deployment/gone", "--from", "old", *TO, "--save", saved)
        code, out, err = typed(*words, "--yes", "-o", output)

        assert code == 130
        assert "interrupted by SIGINT" in err
        assert garden.held("image") == {"helm"}
        if output == "json":
            assert json.loads(out)["complete"] is False
        else:
            assert "It ended early" in out
        garden.before = garden.interrupted
        code, out, _ = typed("--undo", saved, "--yes")
        assert (code, garden.held("image")) == (0, {"old"})
        assert "fields restored from helm Apply" in out
        assert "(1 object with nothing to do)" in typed("--undo", saved, "--yes")[1]
        garden.anew()
        assert "deleted and created again since" in typed("--undo", saved, "--yes")[1]
        assert garden.held("image") == {OURS}

    def test_a_record_that_somebody_edited_harms_nothing(self, garden, typed, tmp_path):
        saved = tmp_path / "undo"
        words = (CHILD, "--from", "old", *TO, "--save", str(saved), "--yes")
        assert f"{saved} has what `hedgerow adopt --undo` needs" in typed(*words)[1]
        text = saved.read_text("utf-8")
        for old, new, told in (
            ('"f:image":{}', '"f:image":7', "its record is no list of managed fields entries"),
        ):
            saved.write_text(text.replace(old, new, 1), "utf-8")

            code, out, _ = typed("--undo", str(saved), "--yes")

            assert code == 1
            assert told in out
            assert garden.held("image") == {"helm"}

    def test_a_server_that_goes_away_ends_it(self, garden, typed):
        def gone():
            raise errors.Unreachable("it is gone", sent=True)

        garden.interruptions = {1: gone}

        code, out, err = typed("--all", "--from", "old", *TO, "--yes")

        assert code == 4
        assert "It ended early: 1 object left" in out
        assert "it is gone" in err


class TestRepair:
    def test_entries_of_unserved_versions_are_relabelled(self, garden, typed):
        live = garden.live
        for entry in live["metadata"]["managedFields"]:
            entry["apiVersion"] = "apps/v1beta1"
        garden.store.put(live)

        assert "first `hedgerow adopt --repair`" in typed(CHILD, "--from", "old", *TO)[1]
        assert "would be repaired" in typed("--repair", "--all")[1]
        code, out, _ = typed("--repair", CHILD, "--yes")

        assert code == 0
        assert "fields repaired from hedgerow-bluegreen Apply, old Apply" in out
        versions = {entry["apiVersion"] for entry in garden.live["metadata"]["managedFields"]}
        assert versions == {"apps/v1"}
        assert "Nothing was repaired." in typed("--repair", "--all", "--yes")[1]
