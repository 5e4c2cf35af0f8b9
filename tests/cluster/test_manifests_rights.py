"""The rights of the manifests on a real server: all that the operator needs, and nothing else."""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest
import yaml

from hedgerow.deploy.overlays import Overlay, parts
from hedgerow.deploy.rights import of_cluster, of_controllers
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens, cronjobs, memcacheds
from support.cluster.granted import denied, granted, requests, used
from support.cluster.policies import ACCOUNT, Impersonated
from support.cluster.rewriting import rewrites, rewriting
from support.cluster.rights import account, bind, may
from support.operator.registered import REGISTRY, RESOURCES
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

READER = account("default", "reader")
POLICY = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
ACCESS = (
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *POLICY,
)
ROLES = ("Role", "ClusterRole")
CONFIGURATION = "ValidatingWebhookConfiguration"
LABEL = "hedgerow.dev/controller"
PORTS = {"ports": [{"port": 1}]}


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    """The custom resources, and all of `cluster` that is about who may do what."""
    api = Api(nodes_sandbox.kubeconfig)
    for resource in (bluegreens, memcacheds, cronjobs):
        resource.prepare(api)
    for manifest in of_kinds(ACCESS, "cluster"):
        api.apply(manifest, "kubectl").must()
    policies_in_force(nodes_sandbox)
    yield api
    for manifest in of_kinds(("ClusterRoleBinding",), "cluster"):
        api.delete(manifest).must()
    api.close()


def policies_in_force(sandbox: Sandbox) -> None:
    """Wait until the server holds the account to both: a refusal names the first of them only."""
    serving = {"name": "hedgerow-serving", "namespace": "hedgerow-system"}
    ours = {"apiVersion": "v1", "kind": "Secret", "metadata": serving}
    stray = {"name": "stray", "namespace": "default"}
    nobodys = {"apiVersion": "v1", "kind": "Service", "metadata": stray, "spec": PORTS}
    api = Impersonated(sandbox.kubeconfig, ACCOUNT)
    for policy, written, manager in (
        ("hedgerow-fields-have-owners", ours, "stray"),
        ("hedgerow-children", nobodys, "hedgerow-bluegreen"),
    ):
        tried = partial(api.apply, written, manager, dry_run=True)
        eventually(
            lambda policy=policy, tried=tried: f"'{policy}'" in tried().body.get("message", ""),
            what=f"{policy} in force",
        )
    api.close()


@pytest.fixture
def kubeconfig(api: Api, nodes_sandbox: Sandbox) -> Path:
    return anyio.run(nodes_sandbox.kubeconfig_for_service_account, "hedgerow-system", "hedgerow")


def of_kinds(kinds: Collection[str], overlay: Overlay, *namespaces: str) -> list[Object]:
    made = parts(overlay, "none", REGISTRY, namespaces=namespaces)
    return [obj for part in made for obj in part.objects if obj["kind"] in kinds]


class TestTheController:
    def test_it_is_refused_nothing_and_every_right_is_used(
        self,
        api: Api,
        nodes_sandbox: Sandbox,
        nodes_audit: AuditLog,
        nodes_namespace: str,
        kubeconfig: Path,
        tmp_path: Path,
    ):
        """Fact: RBAC decides, and the audit log shows, which rights each request takes."""
        mark = nodes_audit.mark()
        with Operator(kubeconfig, tmp_path / "log") as operator:
            bluegreens_at_work(bluegreens.World(api, nodes_namespace))
            memcacheds_at_work(memcacheds.World(api, nodes_namespace, nodes_sandbox))
            cronjobs_at_work(cronjobs.World(api, nodes_namespace))
            rewritten_at_work(bluegreens.World(api, nodes_namespace))
            assert operator.stop() == 0
            assert operator.logged("rights lack") == []

        asked = requests(nodes_audit, mark, ACCOUNT)
        rights = of_controllers(REGISTRY.controllers) | of_cluster()
        assert denied(asked) == []
        assert sorted(rights - used(asked, rights)) == []


class TestTheReplica:
    def test_it_is_refused_nothing_and_every_other_right_is_used(
        self,
        api: Api,
        nodes_sandbox: Sandbox,
        nodes_audit: AuditLog,
        kubeconfig: Path,
        tmp_path: Path,
        free_port: int,
    ):
        """Fact: RBAC decides which rights serving and electing take."""
        for manifest in (
            *of_kinds((CONFIGURATION,), "cluster"),
            abandoned_lease(),
        ):
            api.apply(unasked(manifest), "kubectl").must()
        mark = nodes_audit.mark()
        flags = [*arguments("cluster"), *addresses(free_port)]
        told = environment("cluster")
        with Operator(kubeconfig, tmp_path / "log", *flags, **told) as operator:
            trust = eventually(lambda: trusted_everywhere(api), what="caBundle")
            scrape(nodes_sandbox, free_port, trust)
            assert operator.stop() == 0

        asked = requests(nodes_audit, mark, ACCOUNT)
        rights = granted(obj for obj in of_kinds(ROLES, "cluster") if is_operators(obj))
        rest = rights - of_controllers(REGISTRY.controllers) - of_cluster()
        assert denied(asked) == []
        assert len(rest) > 10
        assert sorted(rest - used(asked, rest)) == []

    def test_one_of_some_namespaces_needs_no_right_in_the_cluster(
        self,
        api: Api,
        nodes_audit: AuditLog,
        nodes_namespace: str,
        kubeconfig: Path,
        tmp_path: Path,
        free_port: int,
    ):
        """Fact: RBAC lets roles of namespaces alone suffice."""
        bound = of_kinds(("ClusterRoleBinding",), "cluster")
        for manifest in bound:
            api.delete(manifest).must()
        try:
            for manifest in of_kinds(("Role", "RoleBinding"), "namespaced", nodes_namespace):
                api.apply(manifest, "kubectl").must()
            mark = nodes_audit.mark()
            flags = [*arguments("namespaced", nodes_namespace), *addresses(free_port)]
            with Operator(kubeconfig, tmp_path / "log", *flags) as operator:
                world = bluegreens.World(api, nodes_namespace)
                world.apply()
                eventually(lambda: world.condition("Ready") == "True/Serving")
                assert operator.stop() == 0
                assert operator.logged("rights lack") == []
            assert denied(requests(nodes_audit, mark, ACCOUNT)) == []
        finally:
            for manifest in bound:
                api.apply(manifest, "kubectl").must()


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    return choose(["metrics"])["metrics"]


def arguments(overlay: Overlay, *namespaces: str) -> list[str]:
    """Return what the Deployment's pods are run with."""
    return container(overlay, *namespaces)["args"][1:]


def environment(overlay: Overlay) -> dict[str, str]:
    """Return the variables that they have, but for what only a pod knows."""
    return {one["name"]: one["value"] for one in container(overlay)["env"] if "value" in one}


def container(overlay: Overlay, *namespaces: str) -> Object:
    [deployment] = of_kinds(("Deployment",), overlay, *namespaces)
    [only] = deployment["spec"]["template"]["spec"]["containers"]
    return only


def addresses(port: int) -> list[str]:
    """Listen where no other test does."""
    return [f"--metrics-bind-address=127.0.0.1:{port}", "--webhook-bind-address=127.0.0.1:0"]


def is_operators(role: Object) -> bool:
    """Return whether a role is bound to the ServiceAccount, and not one of people."""
    bindings = of_kinds(("RoleBinding", "ClusterRoleBinding"), "cluster")
    return role["metadata"]["name"] in {binding["roleRef"]["name"] for binding in bindings}


def abandoned_lease() -> Object:
    """Return a Lease that no replica of ours wrote, and nobody renews."""
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 1}
    metadata = {"name": "hedgerow", "namespace": "hedgerow-system"}
    version = "coordination.k8s.io/v1"
    return {"apiVersion": version, "kind": "Lease", "metadata": metadata, "spec": spec}


def unasked(manifest: Object) -> Object:
    """Have webhooks that the server asks about nothing: none could be reached from here."""
    nowhere = {"namespaceSelector": {"matchLabels": {"nobody": "here"}}}
    hooks = [hook | nowhere for hook in manifest.get("webhooks", ())]
    return manifest | ({"webhooks": hooks} if hooks else {})


def trusted_everywhere(api: Api) -> str:
    """Return what the webhooks trust, once it is the same for all of them; else nothing."""
    live = [api.get(manifest).must() for manifest in of_kinds((CONFIGURATION,), "cluster")]
    bundles = {h["clientConfig"].get("caBundle", "") for obj in live for h in obj["webhooks"]}
    return b64decode(next(iter(bundles))).decode() if len(bundles) == 1 else ""


def scrape(sandbox: Sandbox, port: int, trust: str) -> None:
    """Ask for the metrics with the right and without, and without a token."""
    context = ssl.create_default_context(cadata=trust)
    asked = {name: bearer(sandbox, name) for name in ("reader", "nobody")}
    with httpx.Client(verify=context, trust_env=False, timeout=30) as http:
        url = f"https://localhost:{port}/metrics"
        codes = {name: http.get(url, headers=head).status_code for name, head in asked.items()}
        codes["stranger"] = http.get(url).status_code
    assert codes == {"reader": 200, "nobody": 403, "stranger": 401}


def bearer(sandbox: Sandbox, name: str) -> dict[str, str]:
    """Return the header of a ServiceAccount, of which the reader is bound to the ClusterRole."""
    api = Api(sandbox.kubeconfig)
    identity = {"apiVersion": "v1", "kind": "ServiceAccount"}
    api.apply({**identity, "metadata": {"name": name, "namespace": "default"}}, "test").must()
    bind(api, READER, "hedgerow-metrics-reader")
    eventually(lambda: may(api, READER, path="/metrics", verb="get"))
    api.close()
    kubeconfig = anyio.run(sandbox.kubeconfig_for_service_account, "default", name)
    user = yaml.safe_load(kubeconfig.read_text("utf-8"))["users"][0]["user"]
    return {"Authorization": f"Bearer {user['token']}"}


class TestPeople:
    @pytest.mark.parametrize(
        ("role", "does", "does_not"),
        [
            ("view", {"get", "list", "watch"}, {"create", "patch", "delete", "update"}),
            ("edit", {"get", "create", "patch", "delete", "deletecollection"}, {"update"}),
        ],
    )
    def test_those_who_view_and_edit_a_namespace_do_so_with_the_custom_resources(
        self, api: Api, nodes_namespace: str, role: str, does: set[str], does_not: set[str]
    ):
        """Fact: the server aggregates our roles into view, edit and admin."""
        user = f"hedgerow-{role}-test"
        bind(api, user, role, nodes_namespace)

        for resource in RESOURCES:
            about = {"group": resource.api.group, "resource": resource.api.plural}
            asked = partial(may, api, user, namespace=nodes_namespace, **about)
            for verb in does:
                eventually(partial(asked, verb=verb), what=f"{user}: {verb} {about}")
            for verb in does_not:
                assert not asked(verb=verb)


def bluegreens_at_work(world: bluegreens.World) -> None:
    """Have it come up, flip, be robbed, claim, prune, and meet a taken name."""
    world.apply()
    eventually(lambda: world.condition("Ready") == "True/Serving")
    world.apply(route_to="Green")
    eventually(lambda: world.selected() == "Green")
    world.set_image("demoblue-deployment", "blue", "example/theirs:9")
    eventually(lambda: world.condition("Contested") == "True/FieldConflict")
    path = "Deployment/demoblue-deployment:" + IMAGE
    world.allow_claims()
    world.edit("BlueGreen", "demo", {"metadata": {"annotations": {CLAIM: path}}}, "annotator")
    eventually(lambda: world.image("demoblue-deployment") == "example/echo:1")

    world.apply(greenSpec=None)
    eventually(lambda: world.get("Deployment", "demogreen-deployment") is None)
    stray = child(world, "Service", "stray", {"spec": PORTS})
    world.api.apply(stray, "hedgerow-bluegreen").must()
    eventually(lambda: world.get("Service", "stray") is None)

    squatter = {**world.target("Service", "taken"), "spec": PORTS}
    world.api.apply(squatter, "squatter").must()
    other = {**world.target("Deployment", "takengreen-deployment"), "spec": pods()}
    world.api.apply(other, "squatter").must()
    world.apply("taken")
    eventually(lambda: world.condition("Stalled", "taken") == "True/NameTaken")


IMAGE = '.spec.template.spec.containers[name="blue"].image'


def pods() -> Object:
    labels = {"app": "squatter"}
    template = {"metadata": {"labels": labels}, "spec": bluegreens.pods("one")}
    return {"selector": {"matchLabels": labels}, "template": template}


def child(world: bluegreens.World, kind: str, name: str, fields: Object) -> Object:
    """Return what looks like a child of the BlueGreen that it never declared."""
    owner = world.get("BlueGreen", "demo") or {}
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": "BlueGreen",
        "name": "demo",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    made = {**world.target(kind, name), **fields}
    made["metadata"] |= {"labels": {LABEL: "bluegreen"}, "ownerReferences": [reference]}
    return made


def memcacheds_at_work(world: memcacheds.World) -> None:
    """Have it come up, be scaled by both sides, lose its budget, and meet another's budget."""
    world.make(size=2)
    eventually(lambda: world.condition("Ready") == "True/Serving")
    world.scale("cache", 3)
    eventually(lambda: world.condition("Contested") == "True/FieldConflict")
    world.make(size=3)
    eventually(lambda: world.condition("Contested") != "True/FieldConflict")
    world.make(size=1)
    eventually(lambda: world.get("PodDisruptionBudget", "cache") is None)
    squatter = {**world.target("PodDisruptionBudget", "taken"), "spec": {"maxUnavailable": 1}}
    world.api.apply(squatter, "squatter").must()
    world.make("taken", size=2)
    eventually(lambda: world.condition("Stalled", "taken") == "True/NameTaken")


def cronjobs_at_work(world: cronjobs.World) -> None:
    """Have Jobs start, go for their history, and meet another's Job."""
    world.apply("often", "@every 1s", successfulJobsHistoryLimit=1)
    first = eventually(lambda: world.names("often"))[0]
    eventually(lambda: first not in world.names("often"))
    begin = cronjobs.seconds_of(world.names("often")[-1])
    for second in range(begin, begin + 40):
        world.api.apply(job(world, f"taken-{second}"), "squatter").must()
    world.apply("taken", "@every 1s")
    eventually(lambda: "NameTaken" in world.condition("Stalled", "taken"))


def rewritten_at_work(world: bluegreens.World) -> None:
    """Have admission rewrite what it declares, once the policy is in force."""
    with rewriting(world.api, world.namespace):
        eventually(lambda: rewrites(world), what="the policy in force")
        world.apply("rewritten")
        eventually(lambda: world.condition("RewrittenByAdmission", "rewritten") != "")


def job(world: cronjobs.World, name: str) -> Object:
    spec = {**cronjobs.template()["spec"], "suspend": True}
    return {**world.target(name, "Job"), "spec": spec}
