"""The operator's rights in the cluster: all that it needs, and nothing else."""

from collections.abc import Iterable

import pytest

from e2e import scraping
from e2e.caches import Cache
from e2e.colours import Coloured, colour
from e2e.deployment import ACCOUNT, NAME, NAMESPACE, REPLICAS, Deployment
from e2e.node.images import PYTHON
from e2e.node.node import Node
from e2e.pods import container, user
from hedgerow.deploy.rights import Right, of_installation
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import Entry
from hedgerow.testing.waiting import eventually
from support.cluster import cronjobs
from support.cluster.granted import denied, granted, requests, used
from support.cluster.rewriting import IMAGE as IMAGE_INSTEAD
from support.cluster.rewriting import rewriting

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(540)]

SOON = 90.0
ANYBODY = f"system:serviceaccount:{NAMESPACE}:default"
"""An account to which nobody has bound anything."""
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
SECRET = {"apiVersion": "v1", "kind": "Secret"}
LABEL = "hedgerow.dev/controller"


class TestRights:
    def test_none_is_left_unused_and_nothing_is_refused(
        self, deployment: Deployment, node: Node, api: Api, namespace: str
    ):
        mark = node.audit.mark()
        from_nothing(deployment, api)
        scraped(node, api, namespace)
        bluegreens_at_work(Coloured(api, namespace))
        memcacheds_at_work(api, namespace)
        cronjobs_at_work(cronjobs.World(api, namespace))
        with rewriting(api, namespace):
            rewritten_at_work(Coloured(api, namespace))

        asked = requests(node.audit, mark, ACCOUNT)
        may = allowed(api, ACCOUNT, NAMESPACE) - allowed(api, ANYBODY, NAMESPACE)
        print(f"{len(may)} rights, {len(asked)} requests")
        assert len(may) > 50
        assert sorted(may - used(asked, may)) == []
        assert refused(asked) == []

    def test_nothing_was_refused_since_it_was_deployed(self, deployment: Deployment, node: Node):
        deployment.leader()
        asked = requests(node.audit, 0, ACCOUNT)

        print(f"{len(asked)} requests since the beginning")
        assert len(asked) > 50
        assert refused(asked) == []

    def test_secrets_and_leases_are_its_own_ones_only(
        self, deployment: Deployment, api: Api, namespace: str
    ):
        at_home, elsewhere = (allowed(api, ACCOUNT, place) for place in (NAMESPACE, namespace))

        assert at_home - elsewhere == of_installation(NAME)
        assert elsewhere < at_home
        assert not [right for right in elsewhere if right.resource in ("secrets", "leases")]

    def test_beside_resources_it_may_what_anybody_may(self, deployment: Deployment, api: Api):
        assert paths(api, ACCOUNT) == paths(api, ANYBODY)


def refused(asked: Iterable[Entry]) -> list[tuple[str, str, str]]:
    """Return what was denied, but for writes that met a namespace's end: those are no right's."""
    return [found for found in denied(asked) if "because it is being terminated" not in found[2]]


def review(api: Api, account: str, namespace: str) -> Object:
    """Return what `kubectl auth can-i --list --as=ACCOUNT` prints."""
    reply = api.raw(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        json={"spec": {"namespace": namespace}},
        headers={"Impersonate-User": account},
    )
    status = reply.must()["status"]
    # The authorizer of nodes lists no rules; it has none for a ServiceAccount either.
    assert status.get("evaluationError", "") in (
        "",
        "node authorizer does not support user rule resolution",
    )
    return status


def allowed(api: Api, account: str, namespace: str) -> frozenset[Right]:
    """Return an account's rights in a namespace, those in the whole cluster among them."""
    return granted([{"rules": review(api, account, namespace)["resourceRules"]}])


def paths(api: Api, account: str) -> set[tuple[str, str]]:
    """Return what an account may ask for that is no resource."""
    rules = review(api, account, NAMESPACE)["nonResourceRules"]
    return {(verb, p) for rule in rules for verb in rule["verbs"] for p in rule["nonResourceURLs"]}


def from_nothing(deployment: Deployment, api: Api) -> None:
    """Start it without a Secret, beside a Lease that somebody else left behind."""
    deployment.leader()
    scale = ("scale", "-n", NAMESPACE, f"deployment/{NAME}")
    deployment.node.kubectl(*scale, "--replicas=0")
    try:
        theirs = ("pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/name={NAME}")
        deployment.node.kubectl("wait", "--for=delete", *theirs, f"--timeout={SOON:.0f}s")
        lease, secret = own(LEASE, NAME), own(SECRET, f"{NAME}-serving")
        for manifest in (lease, secret):
            api.delete(manifest).must()
        abandoned = {"holderIdentity": "gone", "leaseDurationSeconds": 1}
        api.apply({**lease, "spec": abandoned}, "somebody").must()
    finally:
        deployment.node.kubectl(*scale, f"--replicas={REPLICAS}")
    deployment.ready()
    deployment.leader()


def own(kind: Object, name: str) -> Object:
    return {**kind, "metadata": {"namespace": NAMESPACE, "name": name}}


def scraped(node: Node, api: Api, namespace: str) -> None:
    """Have it ask who scrapes, and whether they may; its webhooks are trusted again by then."""
    token = scraping.account(node, api, namespace, "reader")
    binding = scraping.reader(api, namespace, "reader")
    host = scraping.address(api)
    try:
        eventually(lambda: scraping.told(host, scraping.authority(api), token), SOON, "metrics")
    finally:
        api.delete(binding).must()


def bluegreens_at_work(world: Coloured) -> None:
    """Have it come up, switch, prune a colour and a stray, and meet taken names."""
    world.route("Blue")
    world.served("Blue")
    world.route("Green")
    eventually(lambda: world.status().get("routeTo") == "Green", SOON, "the switch")
    world.route("Green", blueSpec=None)
    eventually(lambda: world.get("Deployment", "demoblue-deployment") is None, SOON, "pruned")
    world.api.apply(stray(world), "hedgerow-bluegreen").must()
    eventually(lambda: world.get("Service", "stray") is None, SOON, "the stray gone")

    squatter = {**world.target("Service", "taken"), "spec": {"ports": [{"port": 1}]}}
    world.api.apply(squatter, "squatter").must()
    world.api.apply(squatting(world, "takengreen-deployment"), "squatter").must()
    world.apply("taken", blueSpec=colour("Blue"), greenSpec=colour("Green"))
    eventually(lambda: world.condition("Stalled", "taken") == "True/NameTaken", SOON, "Stalled")


def squatting(world: Coloured, name: str) -> Object:
    """Return a Deployment that is nobody's."""
    labels = {"app": "squatter"}
    template = {"metadata": {"labels": labels}, "spec": colour("Red")}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {**world.target("Deployment", name), "spec": spec}


def stray(world: Coloured) -> Object:
    """Return what looks like a child of the BlueGreen that it never declared."""
    owner = world.get("BlueGreen", "demo") or {}
    named: Object = {key: owner[key] for key in ("apiVersion", "kind")}
    uid = owner["metadata"]["uid"]
    reference = {**named, "name": "demo", "uid": uid, "controller": True}
    made: Object = {**world.target("Service", "stray"), "spec": {"ports": [{"port": 1}]}}
    made["metadata"] |= {"labels": {LABEL: "bluegreen"}, "ownerReferences": [reference]}
    return made


def memcacheds_at_work(api: Api, namespace: str) -> None:
    """Have it come up, lose its budget, and meet another's budget."""
    cache, taken = Cache(api, namespace), Cache(api, namespace, "taken")
    cache.sized(2)
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    cache.sized(1)
    eventually(lambda: api.get({**budget, **named(cache)}).status == 404, SOON, "no budget")
    api.apply({**budget, **named(taken), "spec": {"maxUnavailable": 1}}, "squatter").must()
    taken.apply(2)
    eventually(lambda: taken.condition("Stalled") == "True/NameTaken", SOON, "Stalled")


def named(cache: Cache) -> Object:
    return {"metadata": cache.target["metadata"]}


def cronjobs_at_work(world: cronjobs.World) -> None:
    """Have a Job run and go for its history, and meet others' Jobs."""
    pods = user(container(PYTHON, command=("true",)))
    template = {"spec": {"template": {"spec": pods}}}
    world.apply("often", "@every 10s", jobTemplate=template, successfulJobsHistoryLimit=0)
    first = eventually(lambda: world.names("often"), SOON, "a Job")[0]
    eventually(lambda: world.get(first, "Job") is None, SOON, "the Job gone")
    world.delete("often")

    taken = world.apply("taken", "@every 1s", jobTemplate=template, suspend=True)
    begin = int(cronjobs.created(taken).timestamp())
    suspended = {"spec": {**template["spec"], "suspend": True}}
    for second in range(begin, begin + 60):
        world.api.apply({**world.target(f"taken-{second}", "Job"), **suspended}, "squatter").must()
    world.edit("taken", suspend=False)
    eventually(lambda: "NameTaken" in world.condition("Stalled", "taken"), SOON, "Stalled")


def rewritten_at_work(world: Coloured) -> None:
    """Have admission rewrite what it declares, once the policy is in force."""
    eventually(lambda: rewrites(world), SOON, "the policy in force")
    world.apply("rewritten", blueSpec=colour("Blue"), greenSpec=None)
    found = "RewrittenByAdmission"
    eventually(lambda: world.condition(found, "rewritten") != "", SOON, found)


def rewrites(world: Coloured) -> bool:
    tried = world.api.apply(squatting(world, "probe"), "test", dry_run=True).must()
    return tried["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE_INSTEAD
