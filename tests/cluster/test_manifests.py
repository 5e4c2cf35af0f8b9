"""The manifests on a real server: built by kubectl, printed by hedgerow, applied, and judged."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hedgerow.deploy.overlays import OVERLAYS
from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from support.cluster.bluegreens import ROOT
from support.operator.registered import RESOURCES

pytestmark = pytest.mark.cluster

MANIFESTS = ROOT / "manifests"
INSTALLER = "hedgerow-install"
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def kubectl(bare_sandbox: Sandbox) -> Kubectl:
    """kubectl on a server that has no definition of ours; one that fails fails the test."""

    def run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        at = ("--kubeconfig", str(bare_sandbox.kubeconfig))
        command = [str(bare_sandbox.kubectl), *at, *words]
        ended = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended

    return run


@pytest.fixture(scope="module")
def hedgerow() -> Callable[..., str]:
    """The command line, as typed; gives what it printed."""

    def run(*words: str) -> str:
        from typer.testing import CliRunner

        from hedgerow.cli import app

        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture(scope="module")
def api(bare_sandbox: Sandbox) -> Iterator[Api]:
    api = Api(bare_sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module")
def applied(
    api: Api, kubectl: Kubectl, hedgerow: Callable[..., str]
) -> Iterator[subprocess.CompletedProcess[str]]:
    """What kubectl says of everything that `hedgerow manifests` prints, in an empty cluster."""
    flags = ("--server-side", f"--field-manager={INSTALLER}", "--validate=strict")
    text = hedgerow("manifests")
    yield kubectl("apply", *flags, "-f", "-", given=text)
    # The webhooks first: nobody answers for them. The namespace would never be gone.
    for (kind, _, _), obj in reversed(documents(text).items()):
        if kind != "Namespace":
            api.delete(obj).must()


def documents(text: str) -> dict[tuple[str, str, str], Object]:
    """Return YAML documents by kind, namespace and name."""
    found = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
    named = {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for obj in found
    }
    assert len(named) == len(found)
    return named


class TestWhatIsPrinted:
    @pytest.mark.parametrize("overlay", OVERLAYS)
    def test_it_is_what_kubectl_builds_of_the_overlay(self, kubectl, hedgerow, overlay):
        """Fact: what kubectl's kustomize builds of the directories."""
        namespaces = ("-n", "default") if overlay == "namespaced" else ()
        printed = documents(hedgerow("manifests", "--overlay", overlay, *namespaces))
        built = documents(kubectl("kustomize", str(MANIFESTS / overlay)).stdout)

        assert printed.keys() == built.keys()
        for identity, obj in built.items():
            assert printed[identity] == obj, identity

    @pytest.mark.oldest
    def test_it_is_applied_in_one_go_and_the_server_does_not_warn(self, applied, hedgerow):
        """Fact: the server's order, validation and warnings for all objects at once."""
        lines = applied.stdout.splitlines()

        assert len(lines) == len(documents(hedgerow("manifests")))
        assert {line.rpartition(" ")[2] for line in lines} == {"serverside-applied"}
        assert applied.stderr == ""

    @pytest.mark.oldest
    @pytest.mark.usefixtures("applied")
    def test_applied_again_it_changes_nothing(self, api, kubectl, hedgerow):
        """Fact: how the server respells and fills in what is in the manifests."""
        text = hedgerow("manifests")
        flags = ("apply", "--server-side", f"--field-manager={INSTALLER}", "-f", "-")
        targets = list(documents(text).values())
        for resource in RESOURCES:
            api.served(resource.api.group_version)  # all is said of the definitions by then
        before = [api.get(target).version for target in targets]
        kubectl(*flags, given=text)

        assert [api.get(target).version for target in targets] == before

    @pytest.mark.oldest
    @pytest.mark.usefixtures("applied")  # with the definitions, which are the same for each
    def test_other_overlays_and_instances_are_valid_too(self, kubectl, hedgerow):
        """Fact: the server validates each object of every overlay."""
        flags = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
        for words in (
            ("--overlay", "no-webhook"),
            ("--overlay", "namespaced", "-n", "default"),
            ("--instance", "x", "--image", "registry.example/hedgerow@sha256:" + "0" * 64),
            ("--shards", "2"),
        ):
            kubectl("apply", *flags, "-f", "-", given=hedgerow("manifests", "--no-crds", *words))


class TestComponents:
    @pytest.fixture
    def built(self, kubectl: Kubectl, tmp_path: Path) -> Callable[..., dict]:
        """Build `cluster` with components."""

        def build(*components: str) -> dict[Any, Object]:
            # kustomize wants relative paths, and follows no link to find what they lead to.
            up = "/".join([".."] * (len(tmp_path.resolve().parts) - 1))
            kustomization = {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": [f"{up}{MANIFESTS}/cluster"],
                "components": [f"{up}{MANIFESTS}/components/{name}" for name in components],
            }
            (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
            return documents(kubectl("kustomize", str(tmp_path)).stdout)

        return build

    def test_with_cert_manager_the_operator_needs_no_secret_and_publishes_nothing(self, built):
        """Fact: what kubectl's kustomize makes of the component."""
        found = built("cert-manager")
        role = found["Role", "hedgerow-system", "hedgerow-system"]
        granted = {name for rule in role["rules"] for name in rule["resources"]}
        spec = found["Deployment", "hedgerow-system", "hedgerow"]["spec"]["template"]["spec"]
        [container] = spec["containers"]
        [mounted] = [m for m in container["volumeMounts"] if m["name"] == "certificate"]
        [volume] = [v for v in spec["volumes"] if v["name"] == "certificate"]
        certificate = found["Certificate", "hedgerow-system", "hedgerow"]["spec"]

        assert granted == {"leases"}
        assert ("ClusterRole", "", "hedgerow-webhook") not in found
        assert ("ClusterRoleBinding", "", "hedgerow-webhook") not in found
        assert f"--certificate-directory={mounted['mountPath']}" in container["args"]
        assert volume["secret"]["secretName"] == certificate["secretName"]
        configuration = found["ValidatingWebhookConfiguration", "", "hedgerow"]
        source = {"cert-manager.io/inject-ca-from": "hedgerow-system/hedgerow"}
        assert configuration["metadata"]["annotations"] == source
        for service in ("hedgerow-webhook", "hedgerow-metrics"):
            assert ("Service", "hedgerow-system", service) in found
            assert f"{service}.hedgerow-system.svc" in certificate["dnsNames"]

    def test_the_service_monitor_finds_the_service_and_trusts_whoever_made_the_certificate(
        self, built
    ):
        """Fact: what kubectl's kustomize makes of components together."""
        for components, secret in (
            (("service-monitor",), "hedgerow-serving"),
            (("service-monitor", "cert-manager"), "hedgerow-certificate"),
        ):
            found = built(*components)
            monitor = found["ServiceMonitor", "hedgerow-system", "hedgerow"]["spec"]
            service = found["Service", "hedgerow-system", "hedgerow-metrics"]
            [endpoint] = monitor["endpoints"]

            wanted = monitor["selector"]["matchLabels"]
            assert wanted.items() <= service["metadata"]["labels"].items()
            assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
            assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": secret, "key": "ca.crt"}
            assert endpoint["tlsConfig"]["serverName"] == "hedgerow-metrics.hedgerow-system.svc"


@pytest.mark.oldest
@pytest.mark.usefixtures("applied")
class TestInTheCluster:
    def test_pod_security_lets_the_operators_pod_in_and_no_laxer_one(self, api):
        """Fact: the server's PodSecurity admission judges the operator's pod."""
        deployment = target("apps/v1", "Deployment", "hedgerow")
        template = api.get(deployment).must()["spec"]["template"]
        pod = {**target("v1", "Pod", "probe"), "spec": template["spec"]}
        laxer = {**pod, "spec": {**pod["spec"], "hostNetwork": True}}

        assert api.apply(pod, "test", dry_run=True).must()["spec"]["serviceAccountName"] == (
            "hedgerow"
        )
        assert (
            'violates PodSecurity "restricted'
            in api.apply(laxer, "test", dry_run=True).body["message"]
        )


def target(api_version: str, kind: str, name: str) -> Object:
    metadata = {"name": name, "namespace": "hedgerow-system"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
