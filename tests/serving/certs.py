"""Certs: the model with a Secret and a webhook configuration, and replicas that share both."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509

from hedgerow.kube.errors import KubeError, Unavailable
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.ca_bundles import Bundles
from hedgerow.serving.certificates.material import Material, certificates
from hedgerow.serving.certificates.rotation import Rules
from hedgerow.serving.certificates.secret import SECRET, TYPE, SecretStore
from hedgerow.serving.certificates.self_signed import SharedCertificates
from hedgerow.x509 import Pair, key_pem, pem
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.cluster import MemoryCluster, Sent
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_testing.memory.kinds import SECRET as SECRET_KIND
from hedgerow_testing.memory.podspec import STRING
from hedgerow_testing.memory.schema import Keyed, Struct
from hedgerow_testing.memory.server import Server
from hedgerow_testing.virtual import VirtualClock

Object = dict[str, Any]
HOOK = "cronjob.hedgerow.dev"
SERVING, SYSTEM = "hedgerow-serving", "hedgerow-system"
URL = {"url": "x"}
NAMES = ("hedgerow-webhook.hedgerow-system.svc", "localhost", "127.0.0.1")
VALIDITY = timedelta(hours=1)
DAY = VALIDITY.total_seconds() / 90
"""A short day, of forty seconds: replicas look each half a minute, whatever the validity."""
RULES = Rules(NAMES, VALIDITY, timedelta(minutes=2))


CONFIGURATION = ServedKind(
    VALIDATING,
    {
        "webhooks": Keyed(
            ("name",),
            Struct(
                {"name": STRING, "clientConfig": Struct(dict.fromkeys(("url", "caBundle"), STRING))}
            ),
        )
    },
)


class Shared(MemoryCluster):
    """What replicas share: a Secret, and the configuration of webhooks.

    All requests fail while it is `down`, the reads of one kind while that is `failing`. `races` act
    before the next applies.
    """

    def __init__(self) -> None:
        model = Server((SECRET_KIND, CONFIGURATION), ("hedgerow-system", "ops"))
        super().__init__(model, before=self._meet)
        self.down: KubeError | None = None
        self.failing = ""
        self.races: list[Callable[[], object]] = []
        self.time: datetime | None = None

    async def _meet(self, sent: Sent) -> None:
        if self.down:
            raise self.down
        if sent.verb == "read" and sent.api.kind == self.failing:
            raise unavailable()
        if sent.verb == "apply" and self.races:
            self.races.pop(0)()

    def server_time(self) -> datetime | None:
        """Return the time of the API server's clock; None if that is not known."""
        return self.time

    def asked(self, verb: str, kind: str = "") -> list[str]:
        """Return the kinds of the requests with a verb, or those of one kind."""
        kinds = [sent.api.kind for sent in self.sent if sent.verb == verb]
        return [one for one in kinds if kind in {"", one}]

    def configure(self, manager: str = "hedgerow-install", **client: str) -> None:
        """Install the webhook configuration, with nothing but this in our webhook."""
        hooks = [{"name": HOOK, "clientConfig": client}, {"name": "other", "clientConfig": URL}]
        body = {**target(VALIDATING, "hedgerow"), "webhooks": hooks}
        write = self.model.update if self.model.get(body) else self.model.create
        write(body, manager)

    def pin(self, manager: str) -> None:
        """Have somebody else declare the bundle as it is."""
        hooks = [{"name": HOOK, "clientConfig": self.hooks[0]["clientConfig"]}]
        self.model.apply({**target(VALIDATING, "hedgerow"), "webhooks": hooks}, manager)

    def store(self, data: Object, manager: str = "hedgerow-certificates") -> None:
        """Store data in the Secret: as another replica does, or as somebody else."""
        body = {**target(SECRET, SERVING, SYSTEM), "type": TYPE, "data": data}
        if manager == "hedgerow-certificates":
            self.model.apply(body, manager)
        else:
            write = self.model.update if self.secret else self.model.create
            write(body, manager)

    def lose(self) -> None:
        """Have the Secret deleted."""
        self.model.delete(target(SECRET, SERVING, SYSTEM))

    @property
    def secret(self) -> Object | None:
        found = self.model.list(SECRET.group, SECRET.kind).items
        return found[0] if found else None

    @property
    def hooks(self) -> list[Object]:
        [found] = self.model.list(VALIDATING.group, VALIDATING.kind).items
        return found["webhooks"]

    @property
    def material(self) -> Material:
        assert self.secret is not None
        return Material.from_secret(self.secret["data"])

    def bundle(self) -> list[x509.Certificate]:
        return certificates(b64decode(self.hooks[0]["clientConfig"]["caBundle"]), "caBundle")

    def trusts(self, served: x509.Certificate) -> bool:
        """Return whether the API server would take this certificate from the webhook."""
        return served in self.bundle()


def target(api: ApiResource, name: str, namespace: str = "") -> Object:
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **place}
    return {"apiVersion": api.group_version, "kind": api.kind, "metadata": metadata}


def unavailable() -> KubeError:
    return Unavailable("etcd is away", code=503)


class Replica(SharedCertificates):
    """One replica's certificates; `leaf` is what it serves, to `hook` if it has any."""

    def __init__(
        self, server: Shared, rules: Rules = RULES, clock: Any = None, hook: str = HOOK
    ) -> None:
        clock = clock or VirtualClock()
        how: Object = {"name": SERVING, "namespace": SYSTEM}
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
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
