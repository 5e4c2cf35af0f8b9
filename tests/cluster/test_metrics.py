"""The guarded metrics on a real API server: real tokens of real ServiceAccounts, over TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hedgerow.kube import reviews
from hedgerow.kube.client import connect
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.metrics import Meters
from hedgerow.serving.authorization import Access
from hedgerow.serving.metrics import metrics_app
from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from serving.serving import pair, served
from support.cluster.rights import account, grant

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]

READS = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
REVIEWS = [
    {"apiGroups": [f"{group}.k8s.io"], "resources": [kind], "verbs": ["create"]}
    for group, kind in (
        ("authentication", "tokenreviews"),
        ("authorization", "subjectaccessreviews"),
    )
]


class People:
    """ServiceAccounts of one namespace, with what they may do."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    def account(self, name: str, rules: list[Object] | None = None) -> str:
        """Make an account with a ClusterRole of these rules; give a token of it."""
        where = {"name": name, "namespace": self.namespace}
        manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where}
        self.api.apply(manifest, "test").must()
        if rules:
            grant(self.api, account(self.namespace, name), rules)
        return self.token(name)

    def token(self, name: str, **spec: Any) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{name}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return self.api.raw("POST", path, json=body).must()["status"]["token"]


@pytest.fixture
def people(sandbox: Sandbox, namespace: str) -> Iterator[People]:
    api = Api(sandbox.kubeconfig)
    yield People(api, namespace)
    api.close()


@pytest.fixture
def operator(sandbox: Sandbox, people: People) -> Any:
    """Return the operator's own kubeconfig: an account that may ask for reviews alone."""
    people.account("operator", REVIEWS)
    return lambda: sandbox.kubeconfig_for_service_account(people.namespace, "operator")


@asynccontextmanager
async def guarded(kubeconfig: Path, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    files = pair(tmp_path)
    trust = ssl.create_default_context(cafile=files.certificate)
    trust.check_hostname = False
    async with connect(kubeconfig=str(kubeconfig)) as cluster:
        app = metrics_app(Meters("0").registry, Access(cluster, SystemClock()))
        async with (
            served(app, files.context()) as url,
            httpx.AsyncClient(base_url=url, verify=trust) as client,
        ):
            yield client


async def code(client: httpx.AsyncClient, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return (await client.get("/metrics", headers=headers)).status_code


class TestMetrics:
    async def test_are_given_to_whom_the_cluster_knows_and_lets_read_them(
        self, operator, people: People, tmp_path: Path
    ) -> None:
        """Fact: the server reviews real tokens, audiences and rights."""
        reader, stranger = people.account("reader", READS), people.account("stranger")
        other = people.token("reader", audiences=["elsewhere"])
        async with guarded(await operator(), tmp_path) as client:
            answer = await client.get("/metrics", headers={"Authorization": f"Bearer {reader}"})
            codes = [await code(client, t) for t in ("", "nonsense", reader + "x", other, stranger)]

        assert (answer.status_code, "hedgerow_leader" in answer.text) == (200, True)
        assert codes == [401, 401, 401, 401, 403]

    async def test_are_given_to_nobody_while_the_operator_may_not_ask(
        self, sandbox: Sandbox, people: People, tmp_path: Path
    ) -> None:
        """Fact: RBAC refuses reviews to an account without the right."""
        reader = people.account("reader", READS)
        people.account("poor")
        kubeconfig = await sandbox.kubeconfig_for_service_account(people.namespace, "poor")
        async with guarded(kubeconfig, tmp_path) as client:
            assert await code(client, reader) == 503

    async def test_a_user_is_known_with_uid_groups_and_extra(
        self, operator, people: People
    ) -> None:
        """Fact: what the server tells of the user of a token."""
        token = people.account("reader")
        async with connect(kubeconfig=str(await operator())) as cluster:
            user = await reviews.authenticate(cluster, token)

        assert user is not None
        assert user.name == f"system:serviceaccount:{people.namespace}:reader"
        assert user.uid
        assert "system:serviceaccounts" in user.groups
        assert "authentication.kubernetes.io/credential-id" in user.extra
