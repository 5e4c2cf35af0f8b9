"""`hedgerow owners --by-manager`, as typed, on the model of a cluster."""

from __future__ import annotations

import json

import pytest

from hedgerow_tools.objects.listing import say_unread
from support.commands.gardens import CHILD, NAME, Garden
from support.server.apiserver import Reply, refusal

LEFT = "--from 'a Update' --to a"
SCALED = "--from 'kube-controller-manager Update scale' --to a"
pytestmark = pytest.mark.usefixtures("garden")
COMMAND = ("owners",)


@pytest.fixture
def garden(garden: Garden) -> Garden:
    """A Deployment that `a` applies and updates, and that an autoscaler has scaled."""
    live = garden.declare("a")
    del live["metadata"]["ownerReferences"]
    garden.store.put(live)
    garden.store.merge(garden.target, {"spec": {"paused": True}}, "a")
    relabel(garden, "a", "Update", apiVersion="apps/v1")
    return garden


def relabel(garden: Garden, of: str, operation: str, **more: str) -> None:
    live = garden.live
    for entry in live["metadata"]["managedFields"]:
        if (entry["manager"], entry["operation"]) == (of, operation):
            entry.update(more)
    garden.store.put(live)


def scale(garden: Garden) -> None:
    """Have its autoscaler write the replicas."""
    garden.store.merge(garden.target, {"spec": {"replicas": 3}}, "kube-controller-manager")
    relabel(garden, "kube-controller-manager", "Update", subresource="scale")


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ("", "name one KIND/NAME, such as deployment/web, or several objects with --by"),
            ("-l a=b", "or several objects with --by-manager"),
            ("deploy/a deploy/b", "or several objects with --by-manager"),
            ("--by-manager -o html", "--by-manager goes without"),
            ("--by-manager --contested", "--by-manager goes without"),
            ("--by-manager -l a --all", "name the objects in one way"),
        ],
    )
    def test_what_makes_no_sense_is_told(self, garden, typed, words, told):
        code, out, err = typed(*words.split())

        assert (code, out, garden.exchanges) == (2, "", [])
        assert told in err


class TestCounted:
    def test_managers_and_leftovers_are_told_with_the_command(self, typed):
        code, out, _ = typed("--by-manager")

        assert code == 0
        assert out.startswith("2 objects of 2 kinds in namespace default: ")
        assert "a        Apply      " in out
        assert "1 Deployment\n" in out
        assert "- 1 object that a both applies and updates: it conflicts with itself in them" in out
        assert out.endswith(f"\n    hedgerow adopt --all -n default {LEFT}\n")
        told = json.loads(typed("--by-manager", "-o", "json", "-n", "default")[1])
        assert [one["reason"] for one in told["leftovers"]] == ["several names"]

    @pytest.mark.parametrize(
        ("words", "where", "chosen"),
        [
            ((CHILD,), "in namespace default", f"deployment.apps/{NAME} -n default"),
            ((CHILD, "svc/none"), "in namespace default", f"deployment.apps/{NAME} -n default"),
            (("-A",), "in all namespaces", "--all -n default"),
            (("--all",), "in namespace default", "--all -n default"),
        ],
    )
    def test_objects_are_chosen_as_by_every_command(self, typed, words, where, chosen):
        words = (*words, "--all") if words == ("-A",) else words
        code, out, err = typed("--by-manager", *words)

        assert code == 0
        assert f" {where}: " in out
        assert f"    hedgerow adopt {chosen} {LEFT}\n" in out
        assert ("not looked at: Service/none: it does not exist" in err) == ("svc/none" in words)

    def test_labels_choose_and_nothing_may_be_left_over(self, typed):
        code, out, _ = typed("--by-manager", "-l", "no=such")

        assert code == 0
        assert out.startswith("0 objects of 0 kinds in namespace default with labels no=such: ")
        assert out.endswith("Nothing is left over.\n")

    @pytest.mark.parametrize("target", [None, NAME, "other"])
    def test_an_autoscaler_that_is_gone_is_told_if_that_can_be_known(self, garden, typed, target):
        scale(garden)
        scaler = {
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "hpa", "namespace": "default"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": target}},
        }  # fmt: skip
        garden.store.put(scaler)
        if target is None:
            garden.answers["list HorizontalPodAutoscaler"] = refusal(403, "Forbidden", "no")

        out = typed("--by-manager")[1]

        assert (SCALED in out) == (target == "other")
        assert ("whose replicas an autoscaler wrote that is gone" in out) == (target == "other")

    def test_former_names_and_unserved_versions(self, garden, typed):
        relabel(garden, "a", "Update", manager="kubectl-client-side-apply", apiVersion="apps/v0")

        out = typed("--by-manager")[1]

        former = "kubectl-client-side-apply"
        assert f"adopt --all -n default --from {former} --to a\n" in out
        assert "which is what a was before; a applies them:" in out
        assert "1 object with fields recorded in apps/v0, which the server does not serve" in out
        assert "adopt --repair --all -n default\n" in out

    def test_what_was_there_before_the_first_apply(self, garden, typed):
        relabel(garden, "a", "Update", manager="before-first-apply")

        out = typed("--by-manager")[1]

        assert "everybody who wrote before the first apply (before-first-apply): what" in out
        assert "adopt --all -n default --from before-first-apply --to a\n" in out

    def test_what_is_damaged_is_left_out_and_named(self, garden, typed):
        garden.odd = {"BlueGreen", "Deployment"}

        code, out, err = typed("--by-manager")

        assert code == 0
        assert out.startswith("0 objects")
        assert f"not looked at: BlueGreen/default/demo, Deployment/default/{NAME}: cannot be" in err

    def test_what_is_nested_too_deep_is_left_out_and_named(self, garden, typed):
        live = garden.live
        live["metadata"]["managedFields"][0]["fieldsV1"] = "TREE"
        tree = '{"f:a":' * 5000 + "{}" + "}" * 5000
        item = json.dumps(live)
        listed = '{"metadata": {}, "items": [' + item.replace('"TREE"', tree) + "]}"
        garden.answers["list Deployment"] = Reply(200, listed.encode())

        code, _, err = typed("--by-manager")

        assert code == 0
        assert f"not looked at: Deployment/default/{NAME}: cannot be decoded" in err


class TestOne:
    def test_versions_that_are_not_served_are_told_in_one_line_with_the_remedy(self, garden, typed):
        assert "does not serve" not in typed(CHILD)[1]
        relabel(garden, "a", "Update", apiVersion="apps/v0")

        out = typed(CHILD)[1].replace("\n", " ")

        command = f"`hedgerow adopt --repair deployment.apps/{NAME} -n default --yes`"
        assert "fields are recorded in apps/v0, which the server does not serve" in out
        assert command in out
        assert json.loads(typed(CHILD, "-o", "json")[1])["unserved"] == ["apps/v0"]


@pytest.mark.parametrize(
    ("count", "said"),
    [(5, "k0, k1, k2, k3, k4: you may not list them"), (200, "200 kinds (-o json has them): you")],
)
def test_many_kinds_that_were_not_looked_at_are_counted(capsys, count, said):
    say_unread({f"k{number}.": "you may not list them" for number in range(count)})

    assert f"not looked at: {said}" in capsys.readouterr().err
