"""Certs: an API server in memory that knows Secrets and a webhook configuration, and replicas."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509

from hedgerow.kube.cluster import ApplyResult
from hedgerow.kube.errors import Cause, Conflict, KubeError, Stale, Unavailable
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.ca_bundles import Bundles
from hedgerow.serving.certificates.material import Material, certificates
from hedgerow.serving.certificates.rotation import Rules
from hedgerow.serving.certificates.secret import SECRET, SecretStore
from hedgerow.serving.certificates.self_signed import SharedCertificates
from hedgerow.testing.virtual import VirtualClock
from hedgerow.x509 import Pair, key_pem, pem

Object = dict[str, Any]
HOOK = "cronjob.hedgerow.dev"
NAMES = ("hedgerow-webhook.hedgerow-system.svc", "localhost", "127.0.0.1")
VALIDITY = timedelta(hours=1)
DAY = VALIDITY.total_seconds() / 90
"""A short day, of forty seconds: replicas look each half a minute, whatever the validity."""
RULES = Rules(NAMES, VALIDITY, timedelta(minutes=2))


class Server:
    """Stores objects by kind; `holders` are field managers that are in the way of a kind."""

    def __init__(self) -> None:
        self.manager = "hedgerow-certificates"
        self.objects: dict[str, Object] = {}
        self.holders: dict[str, str] = {}
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.down: KubeError | None = None
        self.failing = ""
        self.races: list[Any] = []
        self._version = 100
        self.time: datetime | None = None

    def server_time(self) -> datetime | None:
        """Return the time of the API server's clock; None if that is not known."""
        return self.time

    def configure(self) -> None:
        """Install the webhook configuration, as its manifest does."""
        hooks = [{"name": name, "clientConfig": {"url": "x"}} for name in (HOOK, "other")]
        self.put(VALIDATING.kind, {"metadata": {"name": "hedgerow"}, "webhooks": hooks})

    def put(self, kind: str, obj: Object) -> None:
        """Store an object as somebody else does."""
        self._version += 1
        meta = {"uid": f"{kind}-{self._version}", **obj["metadata"]}
        self.objects[kind] = {
            **obj,
            "metadata": {**meta, "resourceVersion": str(self._version)},
        }

    async def read(self, api, name, namespace="", **_: Any) -> Object | None:
        if self.down:
            raise self.down
        if api.kind == self.failing:
            raise unavailable()
        self.reads.append(api.kind)
        return self.objects.get(api.kind)

    async def apply(self, api, body, *, manager: str, **_: Any) -> ApplyResult:
        if self.down:
            raise self.down
        if self.races:
            self.races.pop(0)()
        assert manager == self.manager
        meta, live = body["metadata"], self.objects.get(api.kind)
        expected = live["metadata"]["resourceVersion"] if live else "1"
        if meta["resourceVersion"] != expected or (not live and "uid" in meta):
            raise Stale("the object has been modified", code=409)
        if holder := self.holders.get(api.kind):
            self.writes.append(f"{api.kind} refused")
            raise Conflict(f".x is held by {holder}", causes=(Cause(".x", holder, ""),), code=409)
        self.writes.append(api.kind)
        self.put(api.kind, _merged(live or {}, body))
        return ApplyResult(self.objects[api.kind], created=live is None)

    @property
    def material(self) -> Material:
        return Material.read(self.objects[SECRET.kind]["data"])

    def bundle(self) -> list[x509.Certificate]:
        hook = self.objects[VALIDATING.kind]["webhooks"][0]
        return certificates(b64decode(hook["clientConfig"]["caBundle"]), "caBundle")

    def trusts(self, served: x509.Certificate) -> bool:
        """Return whether the API server would take this certificate from the webhook."""
        return served in self.bundle()


def _merged(live: Object, body: Object) -> Object:
    hooks = {hook["name"]: hook for hook in body.get("webhooks", ())}
    merged = {**live, **body, "metadata": {**live.get("metadata", {}), **body["metadata"]}}
    if "webhooks" in live:
        merged["webhooks"] = [
            {
                **h,
                "clientConfig": h["clientConfig"]
                | hooks.get(h["name"], {}).get("clientConfig", {}),
            }
            for h in live["webhooks"]
        ]
    return merged


def unavailable() -> KubeError:
    return Unavailable("etcd is away", code=503)


class Replica(SharedCertificates):
    """One replica's certificates; `leaf` is what it serves, to `hook` if it has any."""

    def __init__(
        self, server: Server, rules: Rules = RULES, clock: Any = None, hook: str = HOOK
    ) -> None:
        clock = clock or VirtualClock()
        how: Object = {"name": "hedgerow-serving", "namespace": "hedgerow-system"}
        store = SecretStore(server, manager="hedgerow-certificates", **how)  # type: ignore[arg-type]
        hooks: Object = {"name": "hedgerow", "webhooks": frozenset(filter(None, [hook]))}
        bundles = Bundles(server, manager="hedgerow-certificates", **hooks)  # type: ignore[arg-type]
        super().__init__(clock, rules, store, bundles)

    @property
    def leaf(self) -> x509.Certificate:
        assert self._live.served is not None
        return x509.load_pem_x509_certificate(self._live.served.chain)


def shown(context: ssl.SSLContext) -> x509.Certificate:
    """Return the certificate that a client meets at a server with this context."""
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    der = _shaken(client, context).getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


def handshake(server: Pair, trusted: Iterable[Pair], *, strict: bool = False) -> str:
    """Return why a client that trusts these does not take a server's certificate, or empty.

    A strict one has the flags that are the default since Python 3.13.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem([server.certificate]) + key_pem(server.key))
        file.flush()
        context.load_cert_chain(file.name)
    client = ssl.create_default_context(cadata=pem(one.certificate for one in trusted).decode())
    flags = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    client.verify_flags = client.verify_flags | flags if strict else client.verify_flags & ~flags
    try:
        _shaken(client, context)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return ""


def _shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLObject:
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    back, forth = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(into, out, server_hostname="localhost")
    other = server.wrap_bio(back, forth, server_side=True)
    for _ in range(5):
        for side, sent, taken in ((one, out, back), (other, forth, into)):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
            taken.write(sent.read())
    return one
