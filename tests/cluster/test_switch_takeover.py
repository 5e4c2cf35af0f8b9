"""`hedgerow promote` and `rollback` beside each tool that writes the BlueGreen, on a real server.

Each row: the command, then the tool's next apply, its next change, and its next removal of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from support.cluster import bluegreens
from support.cluster.manifesttools import Desk, Write
from support.helm.programs import HELM_3, HELM_4
from support.programs.typed import Typing, typing

pytestmark = pytest.mark.cluster

HASH, OTHER = "0123456789", "9876543210"
PROMOTE, ROLLBACK = "hedgerow-promote", "hedgerow-rollback"


@dataclass(frozen=True)
class Tool:
    """How somebody writes, as which field manager, and what follows from it.

    `forced` is how it writes where its apply of another value conflicts. `whole`: it removes what
    it does not have. Of a `program` it is how the command names it, and what it makes of another
    value that was pasted: `back` is the colour after its next apply.
    """

    name: str
    write: Callable[[Desk], Write]
    manager: str
    operation: str = "Update"
    forced: Callable[[Desk], Write] | None = None
    whole: bool = False
    program: str = ""
    back: str = "Green"


PERSONS = [
    Tool("kubectl apply", lambda desk: desk.kubectl("apply"), "kubectl-client-side-apply"),
    Tool(
        "kubectl apply, under another name",
        lambda desk: desk.kubectl("apply", "--field-manager=pipeline"),
        "pipeline",
    ),
    Tool(
        "kubectl apply --server-side",
        lambda desk: desk.kubectl("apply", "--server-side"),
        "kubectl",
        "Apply",
        lambda desk: desk.kubectl("apply", "--server-side", "--force-conflicts"),
    ),
    Tool("kubectl edit", lambda desk: desk.changes(desk.edit, "apply"), "kubectl-edit"),
    Tool("kubectl patch", lambda desk: desk.changes(desk.patch, "create"), "kubectl-patch"),
    Tool(
        "kubectl patch, after a server-side apply",
        lambda desk: desk.changes(desk.patch, "apply", "--server-side"),
        "kubectl-patch",
    ),
    Tool(
        "kubectl replace",
        lambda desk: desk.changes(lambda made, _: desk.kubectl("replace")(made), "create"),
        "kubectl-replace",
        whole=True,
    ),
    Tool("a dashboard", lambda desk: desk.changes(desk.dashboard, "apply"), "Mozilla"),
]
PROGRAMS = [
    Tool(
        "Helm 4",
        lambda desk: desk.release(HELM_4),
        "helm",
        "Apply",
        lambda desk: desk.release(HELM_4, "--force-conflicts"),
        program="Helm (helm)",
        back="Blue",
    ),
    # It sends what differs between its releases, so that it puts back a field that it changes.
    Tool("Helm 3", lambda desk: desk.release(HELM_3), "helm", program="Helm (helm)", back="Blue"),
    Tool(
        "Argo CD, server-side",
        lambda desk: desk.forced("argocd-controller"),
        "argocd-controller",
        "Apply",
        program="Argo CD (argocd-controller)",
    ),
    Tool(
        # gitops-engine, pkg/utils/kube/resource_ops.go: kubectl's own code, under this name
        "Argo CD, client-side",
        lambda desk: desk.kubectl("apply", "--field-manager=argocd-controller"),
        "argocd-controller",
        program="Argo CD (argocd-controller)",
    ),
    Tool(
        "Flux",
        lambda desk: desk.forced("kustomize-controller"),
        "kustomize-controller",
        "Apply",
        program="Flux (kustomize-controller)",
    ),
]


def named(tools: list[Tool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("tool", tools, ids=[tool.name for tool in tools])


class Scene:
    """A BlueGreen that a tool wrote, whose switch to Green is held."""

    def __init__(self, desk: Desk, namespace: str, tool: Tool) -> None:
        self.desk, self.namespace = desk, namespace
        self._write = tool.write(desk)
        self._force = tool.forced(desk) if tool.forced else self._write
        for colour in ("Blue", "Green"):
            assert self.write(colour) == ""

    def write(
        self, route_to: str = "Green", image: str = "web:1", *, force: bool = False, **spec: Any
    ) -> str:
        """Let the tool bring the manifest in, by force if that is needed after a conflict."""
        full = {"greenSpec": bluegreens.pods("green", image), "hold": True, **spec}
        manifest = bluegreens.bluegreen(self.namespace, route_to=route_to, **full)
        return (self._force if force else self._write)(manifest)

    def report(self) -> None:
        """Say what the operator would of the present spec."""
        status = {
            "observedGeneration": self.live["metadata"]["generation"],
            "phase": "Held",
            "routeTo": "Blue",
            "switch": {"from": "Blue", "to": "Green", "template": HASH},
        }
        body = {**bluegreens.bluegreen(self.namespace), "status": status}
        body.pop("spec")
        self.desk.api.apply(body, bluegreens.FIELD_MANAGER, subresource="status").must()

    @property
    def live(self) -> Object:
        return self.desk.api.get(bluegreens.bluegreen(self.namespace)).must()

    @property
    def spec(self) -> Object:
        return self.live["spec"]

    def holds(self, manager: str) -> Object:
        """Return what the applies of a manager hold."""
        return next(
            (
                entry["fieldsV1"]
                for entry in self.live["metadata"]["managedFields"]
                if (entry["manager"], entry["operation"]) == (manager, "Apply")
            ),
            {},
        )

    def goes_on(self, **spec: Any) -> None:
        """Let the tool apply again, change a field, and remove one: each is carried out."""
        assert self.write(**spec) == ""
        assert self.write(**spec, image="web:2", promotion="WhenAvailable", bakeSeconds=60) == ""
        assert self.spec["greenSpec"]["containers"][0]["image"] == "web:2"
        assert self.spec["bakeSeconds"] == 60
        assert self.write(**spec, image="web:2", promotion="WhenAvailable") == ""
        assert "bakeSeconds" not in self.spec


@pytest.fixture
def typed(sandbox: Sandbox, namespace: str, capsys: pytest.CaptureFixture[str]) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


@pytest.fixture
def scene(
    sandbox: Sandbox,
    api: Api,
    namespace: str,
    tmp_path: Path,
    helm_programs: Mapping[str, Path],
    tool: Tool,
) -> Scene:
    scene = Scene(Desk(sandbox, api, tmp_path, helm_programs), namespace, tool)
    scene.report()
    return scene


@named(PERSONS)
class TestPersons:
    def test_a_rollback_takes_one_field_and_the_tool_goes_on(self, scene, typed, tool):
        """Fact: what each tool's next write meets after one field was taken."""
        before = scene.live
        told = typed("rollback", "demo").out

        assert f", taken from {tool.manager} {tool.operation}\n" in told
        assert scene.spec == {**before["spec"], "routeTo": "Blue"}
        assert scene.live["metadata"].get("annotations") == before["metadata"].get("annotations")
        assert scene.holds(ROLLBACK) == {"f:spec": {"f:routeTo": {}}}
        if tool.forced:
            assert f"conflicts with {ROLLBACK}" in told
            assert f'conflict with "{ROLLBACK}"' in scene.write("Green")
            scene.goes_on(route_to="Blue")
        else:
            scene.goes_on(route_to="Green")
        assert scene.write("Green", force=True) == ""
        assert (scene.spec["routeTo"], scene.holds(ROLLBACK)) == ("Green", {})

    def test_a_promotion_sets_one_field_and_the_tool_goes_on(self, scene, typed, tool):
        """Fact: which tools replace a whole object and so remove what others set."""
        promoted(scene, typed)
        assert scene.spec.get("promoted") == (None if tool.whole else HASH)
        replaced(scene, tool)


@named(PROGRAMS)
class TestPrograms:
    def test_a_rollback_is_left_to_it_and_the_line_to_paste_works(self, scene, typed, tool):
        """Fact: kubectl patches what a program holds, and the program puts it back."""
        before = scene.live
        refused = typed("rollback", "demo")

        assert (refused.code, refused.out) == (3, "")
        assert refused.err.startswith(f"hedgerow: {tool.program} holds .spec.routeTo of")
        assert scene.live == before
        scene.goes_on()
        [line] = re.findall(r"`(kubectl patch .*)`", refused.err)
        assert scene.desk.shell(line) == ""
        assert scene.spec["routeTo"] == "Blue"
        assert ("kubectl-patch" in scene.write("Green")) is bool(tool.forced)
        assert scene.spec["routeTo"] == tool.back
        # What the command said is to be written there.
        assert scene.write("Blue") == ""
        scene.goes_on(route_to="Blue")
        assert scene.write("Green", force=True) == ""
        assert scene.spec["routeTo"] == "Green"

    def test_a_promotion_sets_one_field_and_it_goes_on(self, scene, typed, tool):
        """Fact: a field that a program's manifest lacks outlives its applies."""
        promoted(scene, typed)
        assert scene.spec["promoted"] == HASH
        assert scene.holds(PROMOTE) == {"f:spec": {"f:promoted": {}}}
        replaced(scene, tool)


def promoted(scene: Scene, typed: Typing) -> None:
    """Promote what is held, which sets one field, and let the tool go on."""
    before = scene.live
    assert "taken from" not in typed("promote", "demo").out
    assert scene.spec == {**before["spec"], "promoted": HASH}
    assert scene.live["metadata"].get("annotations") == before["metadata"].get("annotations")
    assert scene.holds(PROMOTE) == {"f:spec": {"f:promoted": {}}}
    scene.goes_on()


def replaced(scene: Scene, tool: Tool) -> None:
    """Let the tool write another promotion, which is as any other change."""
    refused = scene.write(promoted=OTHER)
    assert (f'conflict with "{PROMOTE}"' in refused) is bool(tool.forced)
    assert scene.write(promoted=OTHER, force=True) == ""
    assert (scene.spec["promoted"], scene.holds(PROMOTE)) == (OTHER, {})
