"""The objects of every overlay: that they fit together, and keep what they promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hedgerow.deploy.names import HEALTH, METRICS, WEBHOOK, Names
from hedgerow.deploy.overlays import OVERLAYS, parts
from hedgerow.deploy.workload import GRACE, PAUSE
from hedgerow.process import stopping
from hedgerow.process.leaderelection.elector import RELEASE
from hedgerow.process.leaderelection.thread import LEAVE
from hedgerow.serving.httpserver import server as served
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.loop_latency import TOO_LATE
from hedgerow.settings import Settings
from hedgerow_testing.generate import crd_file
from support.operator.registered import ALL, REGISTRY

ROOT = Path(__file__).parents[2]
IMAGE = "hedgerow:1"
OPT_IN = [controller for controller in ALL.controllers if controller.opt_in]
LEFT_OUT = {
    "definitions": {crd_file(controller.resource) for controller in OPT_IN if controller.is_custom},
    "samples": {
        "bluegreen-checked.yaml",
        "bluegreen-whenavailable.yaml",
        *(f"{one.name}.yaml" for one in OPT_IN),
    },
    "monitoring": {"rules.yaml"},
}
"""What is there and not to be applied with the rest: another form of the same, or opt-in."""


def objects(overlay: str, instance: str = "") -> list[dict]:
    namespaces = ("shop", "shop-test") if overlay == "namespaced" else ()
    made = parts(overlay, IMAGE, REGISTRY, names=Names(instance), namespaces=namespaces)
    return [obj for part in made for obj in part.objects]


def only(overlay: str, kind: str, instance: str = "") -> dict:
    [found] = [obj for obj in objects(overlay, instance) if obj["kind"] == kind]
    return found


def pod(overlay: str, instance: str = "") -> dict:
    return only(overlay, "Deployment", instance)["spec"]["template"]


def container(overlay: str) -> dict:
    [found] = pod(overlay)["spec"]["containers"]
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
class TestEveryOverlay:
    def test_no_two_objects_are_the_same(self, overlay):
        identities = [
            (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"])
            for obj in objects(overlay)
        ]

        assert len(identities) == len(set(identities))

    def test_the_namespace_comes_first_and_takes_confined_pods_only(self, overlay):
        first = objects(overlay)[0]

        labels = first["metadata"]["labels"]
        modes = {key.rpartition("/")[2]: value for key, value in labels.items() if "pod-" in key}
        assert (first["kind"], first["metadata"]["name"]) == ("Namespace", "hedgerow-system")
        assert modes == {"enforce": "restricted", "audit": "restricted", "warn": "restricted"}

    @pytest.mark.parametrize("instance", ["", "x"])
    def test_whatever_selects_selects_the_pods_of_its_own_installation(self, overlay, instance):
        labels = pod(overlay, instance)["metadata"]["labels"]
        selectors = [
            obj["spec"].get("selector", {}) | obj["spec"].get("podSelector", {})
            for obj in objects(overlay, instance)
            if obj["kind"] in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
        ]

        assert len(selectors) >= 4
        assert [s.get("matchLabels", s) for s in selectors] == [labels] * len(selectors)
        assert labels["app.kubernetes.io/instance"] == ("hedgerow-x" if instance else "hedgerow")

    def test_the_pods_of_each_shard_are_those_of_one_deployment_and_of_all_else(self, overlay):
        made = parts(overlay, IMAGE, REGISTRY, namespaces=("shop",), shards=3)
        every = [obj for part in made for obj in part.objects]
        deployments = [obj for obj in every if obj["kind"] == "Deployment"]
        pods = [one["spec"]["template"]["metadata"]["labels"] for one in deployments]
        others = [
            obj["spec"].get("selector", {}) | obj["spec"].get("podSelector", {})
            for obj in every
            if obj["kind"] in ("Service", "PodDisruptionBudget", "NetworkPolicy")
        ]

        assert len(others) >= 3
        for one, labels in zip(deployments, pods, strict=True):
            selector = one["spec"]["selector"]["matchLabels"]
            assert [other for other in pods if selector.items() <= other.items()] == [labels]
            assert all(s.get("matchLabels", s).items() <= labels.items() for s in others)
            spread = one["spec"]["template"]["spec"]["topologySpreadConstraints"]
            assert {str(each["labelSelector"]["matchLabels"]) for each in spread} == {str(selector)}

    def test_services_and_policies_name_ports_that_the_pods_have(self, overlay):
        ports = {port["name"] for port in container(overlay)["ports"]}
        services = [obj for obj in objects(overlay) if obj["kind"] == "Service"]
        policies = [obj for obj in objects(overlay) if obj["kind"] == "NetworkPolicy"]

        targets = {port["targetPort"] for s in services for port in s["spec"]["ports"]}
        admitted = {p["port"] for n in policies for i in n["spec"]["ingress"] for p in i["ports"]}
        assert targets == admitted == ports - {"health"}

    def test_the_budget_lets_a_replica_go_and_never_all(self, overlay):
        allowed = only(overlay, "PodDisruptionBudget")["spec"]["maxUnavailable"]

        assert 0 < allowed < only(overlay, "Deployment")["spec"]["replicas"]

    def test_the_program_takes_its_arguments(self, overlay):
        settings, command = told(container(overlay)["args"])
        environment = {one["name"]: one.get("value") for one in container(overlay)["env"]}

        assert command == "run"
        assert settings.leader_elect
        assert settings.metrics_secure
        # As a variable, which another overlay may set to false: an argument would win over it.
        assert environment.get("ENABLE_WEBHOOKS") == ("true" if overlay == "cluster" else None)
        assert settings.namespaces == (("shop", "shop-test") if overlay == "namespaced" else ())

    def test_ports_are_those_that_the_settings_have_by_default(self, overlay):
        settings, _ = told(container(overlay)["args"])

        ports = {port["name"]: port["containerPort"] for port in container(overlay)["ports"]}
        assert ports["metrics"] == Address.parse(settings.metrics_bind_address).port == METRICS
        assert ports["health"] == Address.parse(settings.health_probe_bind_address).port == HEALTH
        assert ports.get("webhook", WEBHOOK) == Address.parse(settings.webhook_bind_address).port

    def test_a_stopped_pod_has_the_time_that_it_takes_to_stop(self, overlay):
        assert pod(overlay)["spec"]["terminationGracePeriodSeconds"] == GRACE
        assert LEAVE > RELEASE
        assert GRACE >= PAUSE + stopping.GRACE + LEAVE + served.GRACE

    def test_a_loop_that_stands_still_costs_the_container(self, overlay):
        probe = container(overlay)["livenessProbe"]

        assert TOO_LATE < 60 == probe["periodSeconds"] * probe["failureThreshold"]

    def test_the_root_is_read_only_and_what_is_written_is_small_and_in_memory(self, overlay):
        spec = pod(overlay)["spec"]

        assert container(overlay)["securityContext"]["readOnlyRootFilesystem"] is True
        assert [volume.get("emptyDir", {}).get("medium") for volume in spec["volumes"]] == [
            "Memory"
        ]

    def test_only_the_pods_themselves_mount_the_token(self, overlay):
        assert only(overlay, "ServiceAccount")["automountServiceAccountToken"] is False
        assert pod(overlay)["spec"]["automountServiceAccountToken"] is True
        assert pod(overlay)["spec"]["serviceAccountName"] == "hedgerow"


def told(arguments: list[str]) -> tuple[Settings, str]:
    """Read arguments as the command line does, which has one option for each setting."""
    command, *options = arguments
    given: dict = {}
    for option in options:
        name, equals, value = option.removeprefix("--").partition("=")
        name = {"namespace": "namespaces"}.get(name.replace("-", "_"), name.replace("-", "_"))
        if name == "namespaces":
            given.setdefault(name, []).append(value)
        else:
            given[name] = value if equals else True
    return Settings(**given), command


class TestPolicy:
    @pytest.mark.parametrize(("instance", "base"), [("", "hedgerow"), ("two", "hedgerow-two")])
    def test_the_operators_account_is_held_to_its_promise(self, instance: str, base: str):
        held, bound = (
            next(
                obj
                for obj in objects("cluster", instance)
                if obj["kind"] == kind and obj["metadata"]["name"] == f"{base}-fields-have-owners"
            )
            for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        )
        [condition] = held["spec"]["matchConditions"]

        assert condition["expression"] == (
            f'request.userInfo.username in ["system:serviceaccount:hedgerow-system:{base}"]'
        )
        assert bound["spec"] == {
            "policyName": held["metadata"]["name"], "validationActions": ["Deny"],
        }  # fmt: skip

    def test_its_comments_are_in_the_file(self):
        text = (ROOT / "manifests" / "policy" / "policy.yaml").read_text("utf-8")

        assert "# No DELETE: who holds a field of an object does not say whose" in text


class TestWebhooks:
    def test_they_lead_to_the_service_that_is_there(self):
        services = {
            (obj["metadata"]["name"], obj["metadata"]["namespace"]): obj["spec"]["ports"][0]["port"]
            for obj in objects("cluster", "x")
            if obj["kind"] == "Service"
        }
        places = [
            hook["clientConfig"]["service"]
            for obj in objects("cluster", "x")
            for hook in obj.get("webhooks", ())
        ]

        assert len(places) >= 3
        for place in places:
            assert services[place["name"], place["namespace"]] == place["port"]

    def test_their_configurations_come_last_but_for_the_pods_and_trust_nobody_yet(self):
        kinds = [obj["kind"] for obj in objects("cluster")]
        hooks = [hook for obj in objects("cluster") for hook in obj.get("webhooks", ())]

        assert kinds[-1] == "Deployment"
        assert kinds[-2].endswith("WebhookConfiguration")
        assert [hook for hook in hooks if "caBundle" in hook["clientConfig"]] == []

    @pytest.mark.parametrize("overlay", ["namespaced", "no-webhook"])
    def test_there_is_nothing_of_them_in_the_other_overlays(self, overlay):
        assert [obj for obj in objects(overlay) if "webhook" in str(obj).lower()] == []


class TestCommittedFiles:
    def test_every_image_has_a_tag_that_stays(self):
        paths = [ROOT / "manifests" / overlay / "deployment.yaml" for overlay in OVERLAYS]
        texts = [path.read_text("utf-8") for path in paths]
        images = [image for text in texts for image in re.findall(r"image: (\S+)", text)]

        assert len(images) == len(OVERLAYS)
        assert [
            image for image in images if not re.fullmatch(r"hedgerow:\d+\.\d+\.\d+", image)
        ] == []

    def test_each_network_policy_says_why(self):
        for path in (ROOT / "manifests").rglob("network-policy.yaml"):
            comments = [line for line in path.read_text("utf-8").splitlines() if line[:1] == "#"]
            assert len(comments) > 2, path

    def test_there_are_no_components_but_those_that_are_built_by_kubectl(self):
        found = {path.name for path in (ROOT / "manifests" / "components").iterdir()}

        assert found == {"cert-manager", "service-monitor"}

    def test_there_is_a_sample_of_every_resource(self):
        paths = (ROOT / "manifests/samples").glob("*.yaml")
        documents = [yaml.safe_load(path.read_text("utf-8")) for path in paths]
        kinds = {one["kind"] for one in documents} - {"Kustomization"}

        assert kinds == {resource.api.kind for resource in ALL.resources}

    def test_every_kustomization_names_what_is_there_and_leaves_nothing_out(self):
        for path in (ROOT / "manifests").rglob("kustomization.yaml"):
            found = yaml.safe_load(path.read_text("utf-8"))
            named = {*found.get("resources", ()), *found.get("components", ())}
            files = {other.name for other in path.parent.glob("*.yaml")} - {path.name}
            files -= LEFT_OUT.get(path.parent.name, set())
            assert [name for name in named if not (path.parent / name).exists()] == []
            assert {name for name in named if name.endswith(".yaml")} == files, path
