"""Whoever has the role `view`: what `hedgerow install` lets them see, and what is left out."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import anyio
import pytest

from hedgerow_schemas.guestbook import Guestbook
from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens
from support.programs.typed import Garden, answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hedgerow_schemas.base import Object

pytestmark = pytest.mark.cluster

RBAC = "rbac.authorization.k8s.io"
CRDS = "apiextensions.k8s.io/v1"
VIEWER, EDITOR = "hedgerow-viewer", "hedgerow-editor"
LEFT_OUT = "which you may not read here: "


def role(name: str) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}}


def binding(namespace: str, user: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user, "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


def sees(api: Api, name: str) -> bool:
    rules = api.get(role(name)).must().get("rules") or []
    return any("bluegreens" in rule.get("resources", ()) for rule in rules)


@pytest.fixture
def api(nodes_sandbox) -> Iterator[Api]:
    api = Api(nodes_sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture
def installed(nodes_sandbox, capsys):
    """Install, and return how that ended; the roles are gone before and afterwards."""
    admin = ("--kubeconfig", str(nodes_sandbox.kubeconfig))

    def install(*words: str):
        return answer(capsys, "install", "--plain", *words, *admin)

    return install


@pytest.fixture
def without_roles(api) -> Iterator[None]:
    for name in (VIEWER, EDITOR):
        api.delete(role(name))
    eventually(lambda: not sees(api, "view"), 30, "view without our kinds")
    yield
    for name in (VIEWER, EDITOR):
        api.delete(role(name))


@pytest.fixture
def without_guestbooks(api) -> None:
    """Take away the definition that another module may have left: no installation brings it."""
    name = f"{Guestbook.api.plural}.{Guestbook.api.group}"
    api.delete({"apiVersion": CRDS, "kind": "CustomResourceDefinition", "metadata": {"name": name}})
    path = f"/apis/{Guestbook.api.group_version}"
    eventually(lambda: api.raw("GET", path).status == 404, 30, "no Guestbooks")


@pytest.fixture
def garden(api) -> Garden:
    bluegreens.prepare(api)
    namespace = api.namespace(f"viewers-{secrets.token_hex(3)}")
    garden = Garden(api, namespace)
    garden.declare()
    return garden


@pytest.fixture
def viewer(nodes_sandbox, api, garden) -> Path:
    """The kubeconfig of a user who has `view` in the garden's namespace, and nothing else."""
    user = f"viewer-of-{garden.namespace}"
    api.apply(binding(garden.namespace, user), "admin").must()
    return anyio.run(nodes_sandbox.kubeconfig_for, user)


@pytest.mark.usefixtures("without_roles")
class TestView:
    def test_without_our_roles_the_kinds_are_left_out_and_counted(
        self, capsys, garden, viewer, api
    ):
        """Fact: RBAC's role view knows no custom resources."""
        place = ("-n", garden.namespace, "--kubeconfig", str(viewer))
        eventually(lambda: answer(capsys, "owners", f"deploy/{garden.NAME}", *place).code == 0, 30)

        tree = answer(capsys, "tree", *place)
        assert (tree.code, tree.out) == (0, "")
        assert LEFT_OUT in tree.err
        assert "BlueGreen" in tree.err

        for flags in ((), ("--contested",)):
            owners = answer(capsys, "owners", f"deploy/{garden.NAME}", *flags, *place)
            assert owners.code == 0
            assert f"1 kind is left out, {LEFT_OUT}BlueGreen" in owners.err

        named = answer(capsys, "tree", "bluegreen/demo", *place)
        assert named.code == 1
        assert "cannot list resource" in named.err

    @pytest.mark.usefixtures("without_guestbooks")
    def test_an_installation_lets_them_see_the_kinds(self, capsys, garden, viewer, api, installed):
        """Fact: the server aggregates our roles into view and edit."""
        ended = installed()
        assert f"clusterrole/{VIEWER} created" in ended.out
        assert f"clusterrole/{EDITOR} created" in ended.out
        eventually(lambda: sees(api, "view") and sees(api, "edit"), 30, "the aggregated roles")

        place = ("-n", garden.namespace, "--kubeconfig", str(viewer))
        tree = eventually(
            lambda: found if (found := answer(capsys, "tree", *place)).out else None,
            30,
            "a tree",
        )
        assert (tree.code, tree.err) == (0, "")
        assert "BlueGreen/demo" in tree.out
        owners = answer(capsys, "owners", f"deploy/{garden.NAME}", "--contested", *place)
        assert (owners.code, owners.err) == (0, "")
        assert owners.out.endswith("no field is contested\n")
        # Of a kind that no installation brings by default, RBAC says the same as of any other.
        planned = answer(capsys, "plan", "demo", *place)
        assert "guestbook" not in planned.out + planned.err
