"""Who may have rewritten what we declared, as far as the server tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hedgerow.kube.cluster import Listing
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.objects import ObjectRef
from hedgerow.runtime.events.mutations import MOST, candidates
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.builtin import Deployment

Object = dict[str, Any]
DEMO = ObjectRef(Deployment.api, "ns", "demo", "uid")
pytestmark = pytest.mark.anyio


class Cluster:
    """Lists what it is given, by group version and kind."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given

    async def list(self, api: ApiResource) -> Listing:
        found = self.given.get(f"{api.kind} {api.version}", Missing("no such kind", code=404))
        if isinstance(found, Exception):
            raise found
        return Listing(tuple(found), "1")


def rule(groups: list[str], resources: list[str]) -> Object:
    return {"apiGroups": groups, "resources": resources}


def webhook(name: str, *rules: Object) -> Object:
    return {"metadata": {"name": name}, "webhooks": [{"name": "w", "rules": list(rules)}]}


def policy(name: str, *rules: Object) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": list(rules)}},
    }


DEPLOYMENTS = rule(["apps"], ["deployments"])


async def asked(**given: Any) -> str:
    words = {
        "webhooks": "MutatingWebhookConfiguration v1",
        "policies": "MutatingAdmissionPolicy v1",
        "beta": "MutatingAdmissionPolicy v1beta1",
    }
    cluster: Any = Cluster({words[name]: found for name, found in given.items()})
    return await candidates(cluster, DEMO)


async def test_those_whose_rules_match_are_named():
    told = await asked(
        webhooks=[
            webhook("mirror", DEPLOYMENTS),
            webhook("all", rule(["*"], ["*/*"])),
            webhook("pods", rule([""], ["pods"])),
            webhook("none"),
        ],
        policies=[policy("limits", DEPLOYMENTS), policy("other", rule(["batch"], ["*"]))],
    )

    assert told == (
        "MutatingWebhookConfiguration/mirror, MutatingWebhookConfiguration/all,"
        " MutatingAdmissionPolicy/limits"
    )


async def test_a_policy_that_two_versions_serve_is_named_once():
    limits = policy("limits", DEPLOYMENTS)

    told = await asked(webhooks=[], policies=[limits], beta=[limits])

    assert told == "MutatingAdmissionPolicy/limits"


async def test_what_may_not_be_read_is_said():
    assert await asked(webhooks=Forbidden("no", code=403)) == (
        "others that may not be read (Forbidden)"
    )


async def test_without_any_it_is_the_server_itself():
    assert await asked(webhooks=[]) == ""


async def test_many_are_cut_short():
    hooks = [webhook(f"w{number}", DEPLOYMENTS) for number in range(MOST + 3)]

    assert (await asked(webhooks=hooks)).endswith(f"w{MOST - 1} and 3 more")
