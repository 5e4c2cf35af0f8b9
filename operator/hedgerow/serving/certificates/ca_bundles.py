"""CA bundles: the `caBundle` that makes the API server trust our webhooks."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import hashes

from hedgerow.kube.errors import Conflict
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.issuing import MOST, UnusableError, certificates
from hedgerow.x509 import pem
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography import x509

    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow_schemas.base import ApiResource, Object

KINDS: Final = (VALIDATING,)


class Bundles:
    """The `caBundle` of our webhooks in their configuration; it never creates this.

    A trusted authority stays trusted until it expires: another replica may still serve a
    certificate that it signed. `problem` says why the webhooks do not trust an authority; it is
    empty if all is well, or if there is no configuration.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, *, name: str, manager: str, webhooks: frozenset[str]
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._name = name
        self._manager = manager
        self._webhooks = webhooks
        self._since: dict[bytes, float] = {}
        self._held: dict[str, tuple[str, str]] = {}
        self.problem = ""

    def trusted(self, authority: x509.Certificate, seconds: float = 0.0) -> bool:
        """Return whether every webhook has trusted an authority for at least `seconds`."""
        since = self._since.get(_id(authority))
        return since is not None and self._clock.monotonic() - since >= seconds

    async def publish(self, wanted: Sequence[x509.Certificate]) -> None:
        """Make every webhook trust these authorities, and record which are trusted by all.

        Raises a KubeError, except Conflict, which becomes the `problem`: it does not force, and
        does not try again before the configuration has changed.
        """
        now, problems = self._clock.now(), list[str]()
        wanted = [one for one in wanted if now < one.not_valid_after_utc]
        everywhere = {_id(one) for one in wanted}
        for kind in KINDS if self._webhooks else ():
            live = await self._cluster.read(kind, self._name)
            if live is None:
                continue
            version, problem = self._held.get(kind.kind, ("", ""))
            if version != _version(live):
                live, problem = await self._extend(kind, live, wanted)
            problems += [problem] if problem else []
            self._held[kind.kind] = (_version(live) if problem else "", problem)
            for hook in self._ours(live):
                everywhere &= {_id(one) for one in _trusted_by(hook)}
        seen = self._clock.monotonic()
        self._since = {one: self._since.get(one, seen) for one in everywhere}
        self.problem = "; ".join(problems)

    async def _extend(
        self, kind: ApiResource, live: Object, wanted: Sequence[x509.Certificate]
    ) -> tuple[Object, str]:
        """Apply the `caBundle` if an authority is missing or expired; return object and problem."""
        hooks = list(self._ours(live))
        bundles = {View(hook).text("name"): self._bundle(hook, wanted) for hook in hooks}
        if all(_text(hook) == bundles[View(hook).text("name")] for hook in hooks):
            return live, ""
        meta = live["metadata"]
        body = {
            "metadata": {key: meta[key] for key in ("name", "uid", "resourceVersion")},
            "webhooks": [
                {"name": name, "clientConfig": {"caBundle": bundle}}
                for name, bundle in bundles.items()
            ],
        }
        try:
            return (await self._cluster.apply(kind, body, manager=self._manager)).object, ""
        except Conflict as error:
            return live, f"{kind.kind} {self._name}: {error.message}"

    def _bundle(self, hook: Object, wanted: Sequence[x509.Certificate]) -> str:
        """Return a webhook's bundle; a complete one stays exactly as it is."""
        now, found = self._clock.now(), _trusted_by(hook)
        unexpired = [one for one in found if now < one.not_valid_after_utc]
        if found and found == unexpired and set(wanted) <= set(found):
            return _text(hook)
        return b64encode(pem(list(dict.fromkeys((*wanted, *unexpired)))[:MOST])).decode()

    def _ours(self, live: Object) -> list[Object]:
        return [h for h in View(live).items("webhooks") if View(h).text("name") in self._webhooks]


def _version(live: Object) -> str:
    return View(live).text("metadata", "resourceVersion")


def _id(authority: x509.Certificate) -> bytes:
    return authority.fingerprint(hashes.SHA256())


def _text(hook: Object) -> str:
    return View(hook).text("clientConfig", "caBundle")


def _trusted_by(hook: Object) -> list[x509.Certificate]:
    try:
        return certificates(b64decode(_text(hook)), "caBundle")
    except (UnusableError, ValueError):
        return []
