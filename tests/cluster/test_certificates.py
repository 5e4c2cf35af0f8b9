"""Certificates on a real API server: made, trusted and rotated while it keeps asking."""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import anyio
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from hedgerow.runtime.clock import SystemClock
from hedgerow.serving.certificates import material
from hedgerow.serving.certificates.tls import LiveContext
from hedgerow.x509 import Pair, pem, subject
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.certificates import signed_by
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
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
_NOW = SystemClock().now()
TRUSTED, OTHER = (
    material.create(("localhost", "127.0.0.1"), _NOW, timedelta(hours=1)) for _ in range(2)
)
FORGED = signed_by(
    TRUSTED,
    subject("localhost"),
    _NOW - timedelta(hours=1),
    _NOW + timedelta(hours=1),
    usages=[ExtendedKeyUsageOID.SERVER_AUTH],
    names=["localhost", "127.0.0.1"],
)
TIMES = {"validity": timedelta(seconds=36), "settles": timedelta(seconds=2)}
"""Renewed 12 s before the end: a busy machine has to be in time as well."""


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    one = Api(sandbox.kubeconfig)
    prepare(one)
    yield one
    remove(one, NAME)
    one.close()


@pytest.fixture
def pair(sandbox: Sandbox, api: Api, namespace: str) -> Iterator[list[Replica]]:
    """Two replicas with no right beyond what they need; both are asked about each write."""
    grant(api, USER, rules(NAME))
    kubeconfig = anyio.run(sandbox.kubeconfig_for, USER)
    with replicas(2, kubeconfig, NAME, namespace, TIMES) as running:
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


def trusted(obj: Object) -> list[int]:
    text = b64decode(obj["data"]["ca.crt"])
    return [one.serial_number for one in x509.load_pem_x509_certificates(text)]


def configuration(api: Api) -> Object:
    return api.raw("GET", f"/apis/{GROUP}/v1/validatingwebhookconfigurations/{NAME}").must()


def trust(api: Api, pair: Pair) -> None:
    bundle = b64encode(pem([pair.certificate])).decode()
    hooks = [
        {"name": hook["name"], "clientConfig": {"caBundle": bundle}}
        for hook in configuration(api)["webhooks"]
    ]
    body = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": NAME}}
    api.apply({"apiVersion": f"{GROUP}/v1", **body, "webhooks": hooks}, MANAGER).must()


@contextmanager
def answering_nothing(shows: Pair) -> Generator[int]:
    """Listen at a port with a certificate; each request is answered with 501."""
    context, server = LiveContext(), ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context.load(material.Served.of_pair(shows))
    server.socket = context.context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)


class Load:
    """Creates one after the other, and what was refused."""

    def __init__(self, sandbox: Sandbox, namespace: str) -> None:
        self._sandbox = sandbox
        self._namespace = namespace
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(2)]
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
        while not self._over.wait(0.2):
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
    def test_under_load_nothing_is_refused_nor_if_the_secret_is_deleted(
        self, sandbox: Sandbox, api: Api, namespace: str, pair: list[Replica]
    ):
        """Fact: the server reads a new caBundle while it asks webhooks all the time."""
        admitted(api, namespace, pair)
        before = secret(api, namespace)
        first = trusted(before)
        begun = [one.asked for one in pair]
        path = f"/api/v1/namespaces/{namespace}/secrets/{NAME}-serving"

        with Load(sandbox, namespace) as load:
            eventually(
                lambda: (
                    load.refused
                    or (
                        first[0] not in trusted(secret(api, namespace))
                        and all(len(one.served) >= 2 for one in pair)
                        and load.answered > 100
                    )
                ),
                within=200,
                what="two certificates, one that is gone, and enough answers",
            )
            api.raw("DELETE", path).must()
            eventually(lambda: api.raw("GET", path).ok, what="another Secret")
            renewed(pair)

        assert load.refused == []
        assert secret(api, namespace)["metadata"]["uid"] != before["metadata"]["uid"]
        for one, before in zip(pair, begun, strict=True):
            assert one.asked - before >= load.answered
            assert one.unready == []


@pytest.mark.oldest
class TestTrust:
    """The API server trusts the served certificate itself, and nothing that its key signs."""

    def test_webhooks_behind_a_certificate_in_the_bundle_are_reached(
        self, api: Api, namespace: str, pair: list[Replica]
    ):
        """Fact: the server trusts a leaf certificate that is in the bundle itself."""
        admitted(api, namespace, pair)

    @pytest.mark.parametrize(
        ("shows", "says"),
        [
            (TRUSTED, "has prevented the request from succeeding"),
            (FORGED, "certificate signed by unknown authority"),
            (OTHER, "certificate signed by unknown authority"),
        ],
        ids=["in the bundle", "signed by its key", "another"],
    )
    def test_what_its_key_signs_is_refused(self, api: Api, namespace: str, shows: Pair, says: str):
        """Fact: the server trusts no certificate that a trusted leaf signed."""
        with answering_nothing(shows) as port:
            configure(api, NAME, namespace, port)
            trust(api, TRUSTED)
            eventually(lambda: says in str(create(api, namespace, "x").body), what=says)
            remove(api, NAME)


class TestOwnership:
    def test_the_bundles_and_the_secret_are_ours_until_another_takes_them(
        self, api: Api, namespace: str, pair: list[Replica]
    ):
        """Fact: webhooks merge by name, so that a bundle has a holder of its own."""
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

        # Once what is trusted there has expired, they serve what is not.
        eventually(
            lambda: all("held by cainjector" in one.check() for one in pair),
            within=120,
            what="another holds it",
        )
        kept = [hook["clientConfig"]["caBundle"] for hook in configuration(api)["webhooks"]]
        assert kept == [hook["clientConfig"]["caBundle"] for hook in hooks]
