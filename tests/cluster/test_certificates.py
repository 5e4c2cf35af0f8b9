"""Certificates on a real API server: made, trusted and rotated while it keeps asking."""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import timedelta
from typing import Self

import anyio
import pytest
from cryptography import x509

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object, Reply
from hedgerow.testing.waiting import eventually
from support.cluster.admitted import (
    GROUP,
    MANAGER,
    USER,
    Replica,
    configure,
    remove,
    replicas,
    rules,
)
from support.cluster.cronjobs import VERSION, prepare, template
from support.cluster.rights import grant

pytestmark = pytest.mark.cluster

NAME = "hedgerow-rotating"
VALIDITY = timedelta(seconds=12)


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    one = Api(sandbox.kubeconfig)
    prepare(one)
    yield one
    remove(one, NAME)
    one.close()


@pytest.fixture
def pair(sandbox: Sandbox, api: Api, namespace: str) -> Iterator[list[Replica]]:
    """Two replicas with no right beyond what they need; each serves one configuration."""
    grant(api, USER, rules(NAME))
    kubeconfig = anyio.run(sandbox.kubeconfig_for, USER)
    with replicas(2, kubeconfig, NAME, namespace, VALIDITY) as running:
        configure(api, NAME, namespace, *(one.port for one in running))
        yield running
        remove(api, NAME)


def create(api: Api, namespace: str, name: str) -> Reply:
    body = {
        "apiVersion": VERSION,
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedule": "0 0 30 2 *", "jobTemplate": template()},
    }
    path = f"/apis/{VERSION}/namespaces/{namespace}/cronjobs"
    return api.raw("POST", path, params={"dryRun": "All"}, json=body)


def secret(api: Api, namespace: str) -> Object:
    return api.raw("GET", f"/api/v1/namespaces/{namespace}/secrets/{NAME}-serving").must()


def authorities(obj: Object) -> list[int]:
    text = b64decode(obj["data"]["ca.crt"])
    return [one.serial_number for one in x509.load_pem_x509_certificates(text)]


def configuration(api: Api) -> Object:
    return api.raw("GET", f"/apis/{GROUP}/v1/validatingwebhookconfigurations/{NAME}").must()


class Load:
    """Creates without a pause, and what was refused."""

    def __init__(self, sandbox: Sandbox, namespace: str) -> None:
        self._sandbox = sandbox
        self._namespace = namespace
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(3)]
        self.answered = 0
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def _ask(self, number: int) -> None:
        api = Api(self._sandbox.kubeconfig)
        while not self._over.wait(0.05):
            reply = create(api, self._namespace, f"load-{number}")
            self.answered += 1
            if not reply.ok:
                self.refused.append(str(reply.body.get("message")))
        api.close()


def admitted(api: Api, namespace: str, pair: list[Replica]) -> None:
    """Wait until the server asks both replicas and believes them."""

    def both_asked() -> bool:
        before = [one.asked for one in pair]
        done = create(api, namespace, "first").ok
        return done and all(one.asked > n for one, n in zip(pair, before, strict=True))

    eventually(both_asked, what="a create that both were asked about")


def renewed(pair: list[Replica]) -> None:
    """Wait until each replica serves another certificate than now."""
    served = [len(one.served) for one in pair]
    eventually(
        lambda: all(len(one.served) > n for one, n in zip(pair, served, strict=True)),
        what="another certificate",
    )


class TestRotation:
    def test_under_load_nothing_is_refused(
        self, sandbox: Sandbox, api: Api, namespace: str, pair: list[Replica]
    ):
        admitted(api, namespace, pair)
        first = authorities(secret(api, namespace))
        begun = [one.asked for one in pair]

        with Load(sandbox, namespace) as load:
            eventually(
                lambda: (
                    load.refused
                    or (
                        first[0] not in authorities(secret(api, namespace))
                        and all(len(one.served) >= 5 for one in pair)
                    )
                ),
                within=100,
                what="five certificates, and an authority that is gone",
            )

        assert load.refused == []
        assert load.answered > 100
        for one, before in zip(pair, begun, strict=True):
            assert one.asked - before >= load.answered
            assert one.unready == []

    def test_a_secret_deleted_under_load_is_made_again(
        self, sandbox: Sandbox, api: Api, namespace: str, pair: list[Replica]
    ):
        admitted(api, namespace, pair)
        before = secret(api, namespace)
        path = f"/api/v1/namespaces/{namespace}/secrets/{NAME}-serving"

        with Load(sandbox, namespace) as load:
            # One that is about to expire would be replaced at once, before anybody trusts the next.
            renewed(pair)
            api.raw("DELETE", path).must()
            eventually(lambda: api.raw("GET", path).ok, what="another Secret")
            newest = authorities(secret(api, namespace))[0]
            renewed(pair)

        assert load.refused == []
        assert newest not in authorities(before)
        assert secret(api, namespace)["metadata"]["uid"] != before["metadata"]["uid"]


class TestOwnership:
    def test_the_bundles_and_the_secret_are_ours_until_another_takes_them(
        self, api: Api, namespace: str, pair: list[Replica]
    ):
        admitted(api, namespace, pair)
        held = secret(api, namespace)
        assert held["type"] == "kubernetes.io/tls"
        assert [(e["manager"], e["operation"]) for e in held["metadata"]["managedFields"]] == [
            (MANAGER, "Apply")
        ]
        entries = configuration(api)["metadata"]["managedFields"]
        (ours,) = [entry for entry in entries if entry["manager"] == MANAGER]
        assert ours["operation"] == "Apply"
        assert ours["fieldsV1"].keys() == {"f:webhooks"}
        for hook in ours["fieldsV1"]["f:webhooks"].values():
            assert hook == {".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}

        # The manifests can be applied again, and the bundles stay.
        configure(api, NAME, namespace, *(one.port for one in pair))
        assert create(api, namespace, "second").ok

        theirs = b64decode(secret(api, namespace)["data"]["ca.crt"]) * 2
        hooks = [
            {"name": hook["name"], "clientConfig": {"caBundle": b64encode(theirs).decode()}}
            for hook in configuration(api)["webhooks"]
        ]
        target = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME},
        }
        api.apply({**target, "webhooks": hooks}, "cainjector", force=True).must()

        def told() -> bool:
            """Have both asked, who say by then why they are not ready."""
            create(api, namespace, "third")
            return any("held by cainjector" in reason for one in pair for reason in one.unready)

        eventually(told, what="another holds it")
        kept = [hook["clientConfig"]["caBundle"] for hook in configuration(api)["webhooks"]]
        assert kept == [hook["clientConfig"]["caBundle"] for hook in hooks]
