"""From whom a field is taken, to whom it is left, and what is told of it: by field managers."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.managed_fields import Holder
from hedgerow_tools.switch.decision import Setting
from hedgerow_tools.switch.other_holders import applier, in_the_way, later, patch

Object = dict[str, Any]
OURS = "hedgerow-rollback"
SETTING = Setting("routeTo", "Blue")
COPY = {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}
PATCH = (
    "kubectl patch bluegreens.app.demo.kakao.com demo -n shop --type merge"
    """ -p '{"spec":{"routeTo":"Blue"}}'"""
)


def live(*entries: tuple[str, str, Object]) -> Object:
    """Return a BlueGreen whose fields these managers hold."""
    managed = [
        {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": tree}
        for manager, operation, tree in entries
    ]
    meta = {"name": "demo", "namespace": "shop", "managedFields": managed}
    return {"kind": "BlueGreen", "metadata": meta, "spec": {"routeTo": "Green"}}


ROUTED: Object = {"f:spec": {"f:routeTo": {}}}
FIRST: Object = {"f:metadata": COPY, **ROUTED}

PERSONS = [
    *(("kubectl", operation) for operation in ("Apply", "Update")),
    *(
        (f"kubectl-{way}", "Update")
        for way in (
            "client-side-apply", "create", "edit", "patch", "replace", "annotate", "label", "set",
            "scale", "rollout", "autoscale", "run", "expose", "argo-rollouts",
        )
    ),
    ("before-first-apply", "Update"),
    *(
        (name, "Update")
        for name in ("Mozilla", "k9s", "lens", "node-fetch", "headlamp", "dashboard", "curl", "")
    ),
]  # fmt: skip
APPLIERS = [
    ("helm", "Apply", "Helm"),
    ("helm", "Update", "Helm"),
    ("Helm", "Update", "Helm"),
    ("argocd-controller", "Apply", "Argo CD"),
    ("argocd-controller", "Update", "Argo CD"),
    ("argocd-application-controller", "Update", "Argo CD"),
    ("kustomize-controller", "Apply", "Flux"),
    ("helm-controller", "Update", "Flux"),
    ("flux", "Apply", "Flux"),
    ("fleetagent", "Update", "Fleet"),
    ("kapp", "Update", "kapp"),
    ("pulumi-kubernetes-1a2b", "Apply", "pulumi-kubernetes-1a2b"),
    ("ci", "Apply", "ci"),
    ("hedgerow-promote", "Apply", "hedgerow-promote"),
    ("kubectlish", "Apply", "kubectlish"),
]


class TestHolders:
    @pytest.mark.parametrize(("manager", "operation"), PERSONS)
    def test_a_persons_tool_is_not_in_the_way(self, manager, operation):
        holder = Holder(manager, operation)

        assert applier(holder) is None
        assert in_the_way(live(), SETTING, [holder]) == ""

    @pytest.mark.parametrize(("manager", "operation", "name"), APPLIERS)
    def test_who_applies_is_named_with_what_to_change_there(self, manager, operation, name):
        holder = Holder(manager, operation)
        found = applier(holder)
        told = in_the_way(live(), SETTING, [Holder("kubectl-edit", "Update"), holder])

        assert found
        assert found.name == name
        assert told.startswith(name if name == manager else f"{name} ({manager}) ")
        assert f"write `routeTo: Blue` below `spec:` {found.where}; if that cannot wait" in told
        assert f"`{PATCH}`" in told

    def test_several_are_named(self):
        found = [Holder("helm", "Apply"), Holder("flux\x1b", "Apply"), Holder("helm", "Update")]

        told = in_the_way(live(), SETTING, found)

        assert told.startswith("Helm (helm) and flux\\u001b hold .spec.routeTo of BlueGreen/demo")

    def test_what_is_pasted_is_one_word_of_a_shell(self):
        line = patch(live(), Setting("promoted", "'; x"))

        assert line.endswith("""-p '{"spec":{"promoted":"'"'"'; x"}}'""")


LATER: list[tuple[list[tuple[str, str, Object]], str]] = [
    ([], ""),
    ([(OURS, "Apply", ROUTED), ("hedgerow-bluegreen", "Apply", {"f:status": {}})], ""),
    ([("kubectl-edit", "Update", ROUTED)], ""),
    (
        [("kubectl", "Apply", ROUTED), (OURS, "Apply", ROUTED)],
        (
            "from now on, an apply by `kubectl apply --server-side` with another routeTo conflicts"
            " with hedgerow-rollback, unless it is forced (--force-conflicts): write"
            " `routeTo: Blue` in its manifest too"
        ),
    ),
    (
        [("kubectl-client-side-apply", "Update", FIRST)],
        (
            "the next `kubectl apply` of a manifest with another routeTo sets that again: write"
            " `routeTo: Blue` there too"
        ),
    ),
    ([("kubectl-client-side-apply", "Update", {"f:metadata": COPY, "f:spec": {}})], ""),
]


class TestLater:
    @pytest.mark.parametrize(("entries", "told"), LATER)
    def test_the_next_apply_of_a_manifest_is_told_of(self, entries, told):
        assert list(later(live(*entries), SETTING, OURS)) == [*filter(None, [told])]
