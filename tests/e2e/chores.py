"""Chores: work of every controller that makes use of every right of the operator."""

from __future__ import annotations

from e2e import scraping
from e2e.caches import Cache
from e2e.colours import Coloured, colour
from e2e.node.images import PYTHON
from e2e.node.node import Node
from e2e.pods import container, user
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.cluster import cronjobs
from support.cluster.rewriting import IMAGE as IMAGE_INSTEAD
from support.cluster.rewriting import rewriting

SOON = 90.0
LABEL = "hedgerow.dev/controller"


def done(node: Node, api: Api, namespace: str) -> None:
    """Have it do all of them, and return when they are done."""
    _scraped(node, api, namespace)
    _bluegreens(Coloured(api, namespace))
    _memcacheds(api, namespace)
    _cronjobs(cronjobs.World(api, namespace))
    with rewriting(api, namespace):
        _rewritten(Coloured(api, namespace))


def _scraped(node: Node, api: Api, namespace: str) -> None:
    """Have it ask who scrapes, and whether they may; its webhooks are trusted again by then."""
    token = scraping.account(node, api, namespace, "reader")
    binding = scraping.reader(api, namespace, "reader")
    host = scraping.address(api)
    try:
        eventually(lambda: scraping.told(host, scraping.trusted(api), token), SOON, "metrics")
    finally:
        api.delete(binding).must()


def _bluegreens(world: Coloured) -> None:
    """Have it come up, switch, prune a colour and a stray, and meet taken names and a claim."""
    world.route("Blue")
    world.served("Blue")
    world.route("Green")
    eventually(lambda: world.status().get("routeTo") == "Green", SOON, "the switch")
    world.route("Green", blueSpec=None)
    eventually(lambda: world.get("Deployment", "demoblue-deployment") is None, SOON, "pruned")
    world.api.apply(_stray(world), "hedgerow-bluegreen").must()
    eventually(lambda: world.get("Service", "stray") is None, SOON, "the stray gone")

    squatter = {**world.target("Service", "taken"), "spec": {"ports": [{"port": 1}]}}
    world.api.apply(squatter, "squatter").must()
    world.api.apply(_squatting(world, "takengreen-deployment"), "squatter").must()
    world.apply("taken", blueSpec=colour("Blue"), greenSpec=colour("Green"))
    eventually(lambda: world.condition("Stalled", "taken") == "True/NameTaken", SOON, "Stalled")

    claim = {"annotations": {"hedgerow.dev/claim": "Deployment/*: spec.replicas"}}
    claiming = world.target("BlueGreen", "demo")
    claiming["metadata"] |= claim
    world.api.apply(claiming, "claimant").must()
    eventually(lambda: world.condition("Stalled") == "True/ClaimRefused", SOON, "no claim allowed")


def _squatting(world: Coloured, name: str) -> Object:
    """Return a Deployment that is nobody's."""
    labels = {"app": "squatter"}
    template = {"metadata": {"labels": labels}, "spec": colour("Red")}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {**world.target("Deployment", name), "spec": spec}


def _stray(world: Coloured) -> Object:
    """Return what looks like a child of the BlueGreen that it never declared."""
    owner = world.get("BlueGreen", "demo") or {}
    named: Object = {key: owner[key] for key in ("apiVersion", "kind")}
    uid = owner["metadata"]["uid"]
    reference = {**named, "name": "demo", "uid": uid, "controller": True}
    made: Object = {**world.target("Service", "stray"), "spec": {"ports": [{"port": 1}]}}
    made["metadata"] |= {"labels": {LABEL: "bluegreen"}, "ownerReferences": [reference]}
    return made


def _memcacheds(api: Api, namespace: str) -> None:
    """Have it come up, lose its budget, and meet another's budget."""
    cache, taken = Cache(api, namespace), Cache(api, namespace, "taken")
    cache.sized(2)
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    cache.sized(1)
    eventually(lambda: api.get({**budget, **_named(cache)}).status == 404, SOON, "no budget")
    api.apply({**budget, **_named(taken), "spec": {"maxUnavailable": 1}}, "squatter").must()
    taken.apply(2)
    eventually(lambda: taken.condition("Stalled") == "True/NameTaken", SOON, "Stalled")


def _named(cache: Cache) -> Object:
    return {"metadata": cache.target["metadata"]}


def _cronjobs(world: cronjobs.World) -> None:
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


def _rewritten(world: Coloured) -> None:
    """Have admission rewrite what it declares, once the policy is in force."""
    eventually(lambda: _rewrites(world), SOON, "the policy in force")
    world.apply("rewritten", blueSpec=colour("Blue"), greenSpec=None)
    found = "RewrittenByAdmission"
    eventually(lambda: world.condition(found, "rewritten") != "", SOON, found)


def _rewrites(world: Coloured) -> bool:
    tried = world.api.apply(_squatting(world, "probe"), "test", dry_run=True).must()
    return tried["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE_INSTEAD
