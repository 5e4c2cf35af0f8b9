"""`hedgerow promote` and `hedgerow rollback`, as typed on a real server, where no operator runs."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.testing.api import Api, Object
from support.cluster import bluegreens
from support.programs.typed import Typing, typing

pytestmark = pytest.mark.cluster

HASH = "0123456789"
ARGO = "argocd-controller"


class Switch:
    """A BlueGreen that somebody applied, and the status that the operator would write."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.target = bluegreens.bluegreen(namespace) | {"spec": {}}

    def report(self, **status: Any) -> None:
        """Apply its status as the operator does, about its present spec."""
        generation = self.live["metadata"]["generation"]
        body = {**self.target, "status": {"observedGeneration": generation, **status}}
        body.pop("spec")
        self.api.apply(body, bluegreens.FIELD_MANAGER, subresource="status").must()

    @property
    def live(self) -> Object:
        return self.api.get(self.target).must()

    def holders(self, field: str) -> set[str]:
        """Return who holds a field of the spec."""
        return {
            f"{entry['manager']} {entry['operation']}"
            for entry in self.live["metadata"]["managedFields"]
            if f"f:{field}" in entry["fieldsV1"].get("f:spec", {})
        }


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


@pytest.fixture
def switch(api, namespace) -> Switch:
    return Switch(api, namespace)


def held(to: str = "Green") -> Object:
    source = {"Green": "Blue", "Blue": "Green"}[to]
    switch = {"from": source, "to": to, "template": HASH}
    return {"phase": "Held", "routeTo": source, "switch": switch}


def test_what_kubectl_applied_stays_and_one_field_is_set(switch, typed, audit_log):
    ports = [{"name": "http", "port": 80}, {"name": "more", "port": 81, "targetPort": "x"}]
    manifest = bluegreens.bluegreen(switch.namespace, route_to="Green", hold=True, ports=ports)
    manifest["metadata"]["annotations"] = {"note": "kept"}
    before = switch.api.apply(manifest, "kubectl").must()
    switch.report(**held())
    mark = audit_log.mark()

    shown = typed("promote", "demo", "--dry-run")
    assert f'.spec.promoted: (absent) → "{HASH}"\n' in shown.out
    assert switch.live["spec"] == before["spec"]
    told = typed("promote", "demo", "-o", "json").json
    assert (told["field"], told["value"], told["changed"]) == (".spec.promoted", HASH, True)
    assert [change["path"] for change in told["changes"]] == [".spec.promoted"]
    assert switch.live["spec"] == {**before["spec"], "promoted": HASH}
    assert switch.live["metadata"]["annotations"] == {"note": "kept"}
    switch.report(**held())
    again = typed("promote", "demo")
    assert (again.code, "already; nothing was changed" in again.out) == (0, True)

    back = typed("rollback", "demo")
    assert (back.code, back.err) == (0, "")
    assert "Blue still gets traffic" in back.out
    assert switch.live["spec"] == {**before["spec"], "promoted": HASH, "routeTo": "Blue"}
    assert switch.holders("promoted") == {"hedgerow-promote Apply"}
    assert switch.holders("routeTo") == {"hedgerow-rollback Apply"}
    writes = audit_log.writes(mark, namespace=switch.namespace, agent="hedgerow")
    assert ["dryRun" in write["requestURI"] for write in writes] == [True, False, False]
    assert {write["verb"] for write in writes} == {"patch"}
    assert all("force=true" in write["requestURI"] for write in writes)


def test_a_field_that_git_holds_is_not_taken_and_what_to_change_there_is_told(switch, typed):
    git = bluegreens.bluegreen(switch.namespace, route_to="Green", hold=True)
    before = switch.api.apply(git, ARGO).must()
    switch.report(**held())

    refused = typed("rollback", "demo")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err == (
        f"hedgerow: Argo CD ({ARGO}) holds .spec.routeTo of BlueGreen/demo and would put it back,"
        " so nothing was changed: write `routeTo: Blue` below `spec:` in Git; if that cannot wait,"
        " turn off its automated sync and then `kubectl patch bluegreens.app.demo.kakao.com demo"
        f""" -n {switch.namespace} --type merge -p '{{"spec":{{"routeTo":"Blue"}}}}'`\n"""
    )
    assert switch.live["spec"] == before["spec"]
