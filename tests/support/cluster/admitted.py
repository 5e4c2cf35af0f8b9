"""Admitted: replicas of the webhook server, and a real API server that asks them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hedgerow.contract import Controller
from hedgerow.controllers import memcached
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller
from hedgerow.deploy.webhooks import configuration
from hedgerow.kube.client import connect
from hedgerow.runtime.clock import SystemClock
from hedgerow.serving.admission.configuration import webhook_names
from hedgerow.serving.certificates.ca_bundles import Bundles
from hedgerow.serving.certificates.rotation import Rules
from hedgerow.serving.certificates.secret import SecretStore
from hedgerow.serving.certificates.self_signed import SharedCertificates
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.server import serve
from hedgerow.serving.webhooks.handlers import webhook_app
from hedgerow_testing.api import Api, Object
from serving.certs import shown

CONTROLLERS = cast(
    "list[Controller[Any]]", [bluegreen.CONTROLLER, controller.CONTROLLER, memcached.CONTROLLER]
)
USER = "hedgerow-webhooks-under-test"
MANAGER = "hedgerow-certificates"
OFTEN = {"settles": timedelta(seconds=8)}
"""Times with which a replica looks each second, not each half minute, for what trusts it."""
GROUP = "admissionregistration.k8s.io"


def rules(name: str) -> list[Object]:
    """All that certificates need; the Secret's rule is for a Role."""
    return [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [f"{name}-serving"],
            "verbs": ["get", "create", "patch"],
        },
        {
            "apiGroups": [GROUP],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": [name],
            "verbs": ["get", "patch"],
        },
    ]


def configure(api: Api, name: str, namespace: str, *ports: int) -> None:
    """Install our configuration for one namespace, with all its webhooks for each of the ports."""
    made = configuration(CONTROLLERS, name=name, namespace=namespace)
    assert made is not None
    made["webhooks"] = [
        _at(port, number, hook, namespace)
        for number, port in enumerate(ports)
        for hook in made["webhooks"]
    ]
    api.apply(made, "manifests").must()


def _at(port: int, number: int, hook: Object, namespace: str) -> Object:
    url = f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"
    labels = {"kubernetes.io/metadata.name": namespace}
    return hook | {
        "name": _numbered(hook["name"], number),
        "clientConfig": {"url": url},
        "namespaceSelector": {"matchLabels": labels},
    }


def _numbered(name: str, number: int) -> str:
    return f"at-{number}.{name}" if number else name


def remove(api: Api, name: str) -> None:
    """Delete the configuration."""
    api.raw("DELETE", f"/apis/{GROUP}/v1/validatingwebhookconfigurations/{name}")


class Replica:
    """One webhook server with certificates of its own, on a loop in a thread."""

    def __init__(self, kubeconfig: Path, name: str, namespace: str, rules: Rules) -> None:
        self._kubeconfig = str(kubeconfig)
        self._name = name
        self._namespace = namespace
        self._rules = rules
        self._up = threading.Event()
        self._end: Any = None
        self._certificates: SharedCertificates | None = None
        self._thread = threading.Thread(target=anyio.run, args=(self._run,), daemon=True)
        self.port = 0
        self.asked = 0
        self.served: set[int] = set()
        self.unready: list[str] = []

    def start(self) -> None:
        self._thread.start()
        assert self._up.wait(20), "the replica does not come up"

    def stop(self) -> None:
        if self._end is not None:
            self._end()
            self._thread.join(20)
            self._end = None

    def check(self) -> str:
        """Return why nobody can trust what it serves; empty if they can."""
        assert self._certificates is not None
        return self._certificates.check()

    async def _run(self) -> None:
        clock = SystemClock()
        async with connect(kubeconfig=self._kubeconfig) as cluster:
            certificates = SharedCertificates(
                clock,
                self._rules,
                SecretStore(
                    cluster,
                    name=f"{self._name}-serving",
                    namespace=self._namespace,
                    manager=MANAGER,
                ),
                Bundles(
                    cluster,
                    name=self._name,
                    manager=MANAGER,
                    webhooks=frozenset(
                        _numbered(one, number)
                        for one in webhook_names(CONTROLLERS)
                        for number in range(2)
                    ),
                ),
            )
            self._certificates = certificates
            await certificates.prepare()
            app = self._counted(webhook_app(CONTROLLERS), certificates)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(certificates.keep)
                address = Address("127.0.0.1", self.port)
                bound = await tasks.start(
                    lambda *, task_status: serve(
                        app, address, tls=certificates.context, task_status=task_status
                    )
                )
                self.port = bound.port
                loop_end = anyio.Event()
                token = anyio.lowlevel.current_token()
                self._end = lambda: anyio.from_thread.run_sync(loop_end.set, token=token)
                self._up.set()
                await loop_end.wait()
                tasks.cancel_scope.cancel()

    def _counted(self, app: ASGIApp, certificates: SharedCertificates) -> ASGIApp:
        """Count requests, and end each connection, so that the next one shakes hands anew."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            async def closing(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = [*message.get("headers", ()), (b"connection", b"close")]
                    message = {**message, "headers": headers}
                await send(message)

            self.asked += 1
            self.served.add(shown(certificates.context).serial_number)
            if reason := certificates.check():
                self.unready.append(reason)
            await app(scope, receive, closing)

        return counted


@contextmanager
def replicas(
    count: int, kubeconfig: Path, name: str, namespace: str, times: Mapping[str, timedelta]
) -> Iterator[list[Replica]]:
    """Run so many replicas; `times` are those of `Rules`, if they are not the usual ones."""
    rules = Rules(("localhost", "127.0.0.1"), **times)
    made = [Replica(kubeconfig, name, namespace, rules) for _ in range(count)]
    try:
        for one in made:
            one.start()
        yield made
    finally:
        for one in made:
            one.stop()
