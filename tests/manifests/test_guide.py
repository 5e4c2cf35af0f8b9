"""What the guide on clusters names is what the manifests print and the operator makes."""

from __future__ import annotations

import re

import pytest

from hedgerow.deploy.overlays import OVERLAYS, parts
from hedgerow.objects import Installation
from hedgerow.registry import Registry
from support.cluster.policies import ACCOUNT, DIRECTORY
from support.code.documents import GUIDES, commands, guide, section
from support.operator.registered import REGISTRY

GUIDE = guide("in-cluster")
BASE = Installation().base
CREATED = re.compile(r"kubectl create (clusterrolebinding|rolebinding) ([\w.-]+)")
APPLIED = re.compile(r"kubectl apply [^\n]*-k (manifests/[\w/-]+)")
ADDED = re.compile(r"`\.\./(rbac/[\w/-]+)`")
"""What a reader is told to add to the resources of an overlay."""


def everything() -> str:
    return "\n".join(commands(page.read_text("utf-8")) for page in sorted(GUIDES.glob("*.md")))


def printed(overlay: str, registry: Registry = REGISTRY) -> set[tuple[str, str]]:
    """Return kind and name of each object of an overlay."""
    made = parts(overlay, "image:1", registry, namespaces=("shop",) * (overlay == "namespaced"))
    return {(obj["kind"], obj["metadata"]["name"]) for part in made for obj in part.objects}


class TestRemoval:
    """What the guides had somebody make, removal names."""

    def test_each_binding_that_a_guide_creates_is_deleted_there(self):
        made = set(CREATED.findall(everything()))
        removal = commands(section("## Removal", GUIDE))
        forgotten = [(kind, name) for kind, name in made if f"delete {kind} {name}" not in removal]

        assert made
        assert forgotten == []

    def test_helm_does_not_know_of_it_and_its_guide_says_so(self):
        told = section("## Uninstall", guide("helm"))
        made = CREATED.findall(everything())

        assert [name for kind, name in made if f"delete {kind} {name}" not in told] == []

    def test_each_folder_that_a_guide_applies_or_adds_is_deleted_there_but_samples(self):
        overlays = {f"manifests/{overlay}" for overlay in OVERLAYS}
        applied = {*APPLIED.findall(GUIDE), *APPLIED.findall(everything())}
        added = {f"manifests/{folder}" for folder in ADDED.findall(GUIDE)}
        beside = {
            folder
            for folder in applied | added
            if folder not in overlays and not folder.startswith("manifests/samples")
        }
        removal = section("## Removal", GUIDE)

        assert {"manifests/monitoring", "manifests/policy", "manifests/rbac/metrics-auth"} <= beside
        assert [one for one in sorted(beside) if f"-k {one} " not in removal] == []


class TestAnotherOverlay:
    @pytest.mark.parametrize("overlay", ["no-webhook", "namespaced"])
    def test_what_gives_rights_and_is_not_in_it_is_deleted_before(self, overlay):
        text = section("## Overlays", GUIDE)
        both = re.findall(r"```sh\nkubectl delete (.*?)\n```", text)
        assert len(both) == 2
        named = " ".join(both if overlay == "namespaced" else both[:1]).split()
        kinds = ("ClusterRoleBinding", "ValidatingWebhookConfiguration")
        rest = {
            f"{kind.lower()}/{name}"
            for kind, name in printed("cluster") - printed(overlay)
            if kind in kinds
        }

        assert set(named) == rest


class TestServingKey:
    def test_the_secret_that_is_deleted_is_the_one_that_replicas_share(self):
        told = commands(section("### Replace the serving key", GUIDE))

        assert told.startswith(f"kubectl delete secret {BASE}-serving --namespace {BASE}-system\n")

    def test_what_is_deleted_with_it_is_printed_and_so_comes_back(self):
        told = commands(section("### Replace the serving key", GUIDE))
        named = re.findall(r"(validatingwebhookconfiguration|deployment)/([\w-]+)", told)
        known = {(kind.lower(), name) for kind, name in printed("cluster")}

        assert {kind for kind, _ in named} == {"validatingwebhookconfiguration", "deployment"}
        assert set(named) <= known


def test_the_policy_names_the_operators_account_in_one_place():
    texts = "".join(path.read_text("utf-8") for path in DIRECTORY.iterdir())

    assert texts.count(ACCOUNT) == 1
