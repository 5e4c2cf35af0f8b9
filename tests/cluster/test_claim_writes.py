"""A claim past its author's rights: each kind, each way to write it.

A claim has the operator take fields by force. Whoever may not patch each kind of child by hand is
refused it by the API server, whether or not a webhook of ours is asked as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import anyio
import pytest
import yaml

from hedgerow.contract import Controller
from hedgerow.deploy import authors
from hedgerow.deploy.names import Names
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import admitted
from support.cluster.policies import Impersonated
from support.cluster.rights import grant
from support.cluster.worlds import with_custom_resources
from support.code.sources import ROOT
from support.operator.registered import ALL

pytestmark = pytest.mark.cluster

NAMES = Names("claiming")
POLICY = f"'{NAMES.base}-authors'"
PLACE = "claim-writes"
CUSTOM = [one for one in ALL.controllers if one.is_custom]
NEW_SPECS: dict[str, Object] = {
    "bluegreens": {"routeTo": "Green"},
    "cronjobs": {"suspend": True},
    "guestbooks": {"size": 2},
    "memcacheds": {"size": 4},
}
"""Another spec of each kind's sample; a new kind needs one."""
EVERYTHING = "*/*: **"


@dataclass(frozen=True)
class Author:
    """Somebody who writes resources of one kind in the namespace, and what they begin with."""

    api: Api
    plain: Object
    claimed: Object
    other: Object

    @property
    def collection(self) -> str:
        return self.api.path(self.plain).rpartition("/")[0]

    def post(self, body: Object) -> Reply:
        return self.api.raw("POST", self.collection, json=body)

    def put(self, body: Object) -> Reply:
        live = self.api.get(self.plain).must()
        return self.api.put(
            {**live, **body, "metadata": {**live["metadata"], **body["metadata"]}}, "x"
        )

    def json(self, *operations: Object) -> Reply:
        return self.api.merge(self.plain, list(operations), "x", kind="json")


def annotated(obj: Object, claim: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {CLAIM: claim}}}


def added(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


Write = Callable[[Author], Reply]
CREATES: dict[str, Write] = {
    "a POST": lambda author: author.post(author.claimed),
    "a POST of no name": lambda author: author.post(
        {
            **author.claimed,
            "metadata": {
                "annotations": author.claimed["metadata"]["annotations"],
                "generateName": "generated-",
            },
        }
    ),
    "an apply": lambda author: author.api.apply(author.claimed, "author"),
    "a forced apply": lambda author: author.api.apply(author.claimed, "author", force=True),
}
CLAIMS: dict[str, Write] = {
    "an apply": lambda author: author.api.apply(author.claimed, "author", force=True),
    "a merge patch": lambda author: author.api.merge(
        author.plain, {"metadata": {"annotations": {CLAIM: "Job/x: a"}}}, "author"
    ),
    "a JSON patch": lambda author: author.json(added("/metadata/annotations", {CLAIM: EVERYTHING})),
    "a PUT": lambda author: author.put(author.claimed),
}
SPECS: dict[str, Write] = {
    "an apply": lambda author: author.api.apply(
        annotated(author.other, EVERYTHING), "author", force=True
    ),
    "an apply of the spec alone": lambda author: author.api.apply(
        author.other, "another", force=True
    ),
    "a merge patch": lambda author: author.api.merge(
        author.plain, {"spec": author.other["spec"]}, "author"
    ),
    "a JSON patch": lambda author: author.json(added("/spec", author.other["spec"])),
    "a PUT": lambda author: author.put(annotated(author.other, EVERYTHING)),
    "a PUT with a smaller claim": lambda author: author.put(annotated(author.other, "Job/x: a")),
    "another claim": lambda author: author.api.merge(
        author.plain, {"metadata": {"annotations": {CLAIM: "Job/x: a"}}}, "author"
    ),
}


@pytest.fixture(scope="module")
def admin(sandbox: Sandbox) -> Iterator[Api]:
    """The administrator, while the policy is in force in one namespace."""
    admin = with_custom_resources(Api(sandbox.kubeconfig))
    admin.namespace(PLACE)
    policy, binding = authors.policy(NAMES, CUSTOM)
    here = {"matchLabels": {"kubernetes.io/metadata.name": PLACE}}
    binding["spec"]["matchResources"] = {"namespaceSelector": here}
    for manifest in (policy, binding):
        admin.apply(manifest, "kubectl").must()
    try:
        yield admin
    finally:
        for manifest in (policy, binding):
            admin.delete(manifest).must()
        admin.close()


@pytest.fixture
def webhook(admin: Api, sandbox: Sandbox) -> Iterator[admitted.Replica]:
    """One that is asked as well."""
    name = "hedgerow-claiming"
    grant(admin, admitted.USER, admitted.rules(name))
    kubeconfig = anyio.run(sandbox.kubeconfig_for, admitted.USER)
    with admitted.replicas(1, kubeconfig, name, PLACE, admitted.OFTEN) as (replica,):
        admitted.configure(admin, name, PLACE, replica.port)
        probe = annotated(sample(ALL["cronjob"][0]), "nonsense")
        eventually(
            lambda: admin.apply(probe, "x", dry_run=True).body.get("reason") == "Invalid",
            what="the webhooks in force",
        )
        yield replica
        admitted.remove(admin, name)


def sample(controller: Controller[Any]) -> Object:
    """Return a resource of a controller's kind."""
    texts = [path.read_text("utf-8") for path in (ROOT / "manifests/samples").glob("*.yaml")]
    every = (one for text in texts for one in yaml.safe_load_all(text))
    found = next(one for one in every if one["kind"] == controller.resource.api.kind)
    identity = {key: found[key] for key in ("apiVersion", "kind", "spec")}
    return {**identity, "metadata": {"name": found["metadata"]["name"], "namespace": PLACE}}


def rule(api: ApiResource, *verbs: str, subresource: str = "") -> Object:
    resources = [f"{api.plural}/{subresource}" if subresource else api.plural]
    return {"apiGroups": [api.group], "resources": resources, "verbs": list(verbs)}


def of_editor(controller: Controller[Any]) -> list[Object]:
    """All that an editor has, and the right to update, which is not granted by us."""
    api = controller.resource.api
    return [
        rule(api, "get", "create", "patch", "update", "delete"),
        rule(api, "get", "patch", subresource="status"),
        rule(api, "get", "patch", subresource="scale"),
    ]


def written(controller: Controller[Any]) -> list[ApiResource]:
    return [kind.api for kind in controller.owns]


@pytest.fixture(params=CUSTOM, ids=lambda one: one.name)
def controller(request: pytest.FixtureRequest) -> Controller[Any]:
    return request.param


@pytest.fixture
def editor(admin: Api, sandbox: Sandbox, controller: Controller[Any]) -> Iterator[Author]:
    """Somebody who may write the resources, and nothing that is made of them."""
    user = f"claiming-{controller.name}"
    grant(admin, user, of_editor(controller), PLACE)
    api, plain = Impersonated(sandbox.kubeconfig, user), sample(controller)
    other = {**plain, "spec": {**plain["spec"], **NEW_SPECS[controller.resource.api.plural]}}
    author = Author(api, plain, annotated(plain, EVERYTHING), other)
    admin.delete(plain)
    eventually(
        lambda: is_refused(api.apply(author.claimed, "author", dry_run=True)),
        what="the policy in force",
    )
    yield author
    admin.delete(plain)
    api.close()


def is_refused(reply: Reply) -> bool:
    return reply.status == 403 and POLICY in str(reply.body.get("message"))


@pytest.mark.oldest
class TestNobodyClaims:
    """Of what they may not write: each test is one kind, and tries each way."""

    def test_by_creating(self, editor: Author):
        """Fact: policies are asked for POST and apply, with a name or without."""
        told = {name: is_refused(write(editor)) for name, write in CREATES.items()}

        assert told == dict.fromkeys(CREATES, True)
        assert editor.post(editor.plain).ok

    def test_by_changing(self, editor: Author):
        """Fact: policies are asked for every kind of patch and PUT."""
        editor.post(editor.plain).must()
        told = {name: is_refused(write(editor)) for name, write in CLAIMS.items()}

        assert told == dict.fromkeys(CLAIMS, True)
        assert CLAIM not in str(editor.api.get(editor.plain).must()["metadata"].get("annotations"))

    def test_nor_chooses_the_values_of_what_others_claimed(self, editor: Author, admin: Api):
        """Fact: policies see the spec that each kind of write would come to."""
        admin.apply(editor.claimed, "owner").must()
        before = admin.get(editor.plain).must()
        told = {name: is_refused(write(editor)) for name, write in SPECS.items()}

        assert told == dict.fromkeys(SPECS, True)
        assert admin.get(editor.plain).must()["spec"] == before["spec"]

    def test_by_way_of_the_status(self, editor: Author):
        """Fact: the server takes nothing but the status from a write of the status."""
        editor.post(editor.plain).must()
        claim = {"metadata": {"annotations": {CLAIM: EVERYTHING}}, "spec": editor.other["spec"]}
        before = editor.api.get(editor.plain).must()

        after = editor.api.merge(editor.plain, claim, "author", "status").must()
        assert after["spec"] == before["spec"]
        assert CLAIM not in str(after["metadata"].get("annotations"))

    def test_who_lacks_one_kind_of_child_is_refused_as_well(
        self, editor: Author, admin: Api, controller: Controller[Any], sandbox: Sandbox
    ):
        """Fact: the authorizer answers a policy for each kind by itself."""
        kinds = written(controller)
        for lacking in kinds:
            user = f"claiming-{controller.name}-but-{lacking.plural}"
            others = [rule(kind, "patch") for kind in kinds if kind != lacking]
            grant(admin, user, [*of_editor(controller), *others], PLACE)
            api = Impersonated(sandbox.kubeconfig, user)
            one = replace(editor, api=api)
            refusal = one.post(one.claimed)
            api.close()

            assert is_refused(refusal)
            assert f"right to patch {lacking.plural} there" in refusal.body["message"]


@pytest.mark.oldest
def test_who_may_write_all_of_them_does(
    editor: Author, admin: Api, controller: Controller[Any], sandbox: Sandbox
):
    """Fact: the authorizer answers yes for each kind of child."""
    user = f"claiming-{controller.name}-owner"
    children = [rule(kind, "patch") for kind in written(controller)]
    grant(admin, user, [*of_editor(controller), *children], PLACE)
    api = Impersonated(sandbox.kubeconfig, user)
    owner = replace(editor, api=api)

    assert owner.post(owner.claimed).ok
    assert api.apply(annotated(owner.other, EVERYTHING), "author", force=True).ok
    api.close()


@pytest.mark.oldest
def test_the_number_of_replicas_is_changed_under_a_claim_by_way_of_scale(
    admin: Api, sandbox: Sandbox
):
    """Fact: the server shows a policy nothing of the resource in a write of its scale."""
    controller = ALL["memcached"][0]
    claimed = annotated(sample(controller), EVERYTHING)
    admin.delete(claimed)
    admin.apply(claimed, "owner").must()
    grant(admin, "claiming-scale", of_editor(controller), PLACE)
    api = Impersonated(sandbox.kubeconfig, "claiming-scale")

    assert api.merge(claimed, {"spec": {"replicas": 1}}, "author", "scale").ok
    assert is_refused(api.merge(claimed, {"spec": {"size": 2}}, "author"))
    api.close()
    admin.delete(claimed)


@pytest.mark.parametrize("controller", [ALL["cronjob"][0]], indirect=True)
def test_where_a_webhook_is_asked_as_well_nobody_claims_either(
    editor: Author, webhook: admitted.Replica
):
    """Fact: where a webhook is asked as well, a policy refuses the same."""
    before = webhook.asked
    editor.post(editor.plain).must()
    told = {name: is_refused(write(editor)) for name, write in CLAIMS.items()}

    assert told == dict.fromkeys(CLAIMS, True)
    assert webhook.asked > before
