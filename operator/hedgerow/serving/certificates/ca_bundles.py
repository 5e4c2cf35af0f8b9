"""CA bundles: the `caBundle` that makes the API server trust our webhooks."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from hedgerow.kube.errors import Conflict
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.material import MOST, UnusableError, certificates, own
from hedgerow.serving.certificates.rotation import is_usable
from hedgerow.x509 import pem
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cryptography import x509

    from hedgerow.kube.object_api import ObjectApi
    from hedgerow_schemas.base import Object


class Bundles:
    """The `caBundle` of our webhooks in their configuration; it never creates this.

    A certificate stays trusted until it expires: another replica may still serve it. `problem` says
    why the webhooks do not trust a certificate; it is empty if all is well, or if there is no
    configuration.
    """

    def __init__(
        self, cluster: ObjectApi, *, name: str, manager: str, webhooks: frozenset[str]
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._manager = manager
        self._webhooks = webhooks
        self._refused_at = ""
        self.problem = ""

    async def publish(
        self, wanted: Sequence[x509.Certificate], now: datetime
    ) -> frozenset[x509.Certificate]:
        """Have every webhook trust these certificates; return those that all webhooks trust.

        Raises a KubeError, except Conflict, which becomes the `problem`: it does not force, and
        does not try again before the configuration has changed.
        """
        live = await self._cluster.read_object(VALIDATING, self._name) if self._webhooks else None
        hooks = self._ours(live) if live else []
        if live is None or not hooks:
            self.problem = ""
            return frozenset(wanted)
        if not self.problem or _version(live) != self._refused_at:
            hooks = await self._extended(live, hooks, wanted, now)
        first, *others = (frozenset(_trusted_by(hook)) for hook in hooks)
        return first.intersection(*others)

    async def _extended(
        self, live: Object, hooks: list[Object], wanted: Sequence[x509.Certificate], now: datetime
    ) -> list[Object]:
        """Add missing certificates to the bundles, and drop expired ones; return the webhooks."""
        bundles = {View(hook).text("name"): _bundle(hook, wanted, now) for hook in hooks}
        self.problem = ""
        if all(_text(hook) == bundles[View(hook).text("name")] for hook in hooks):
            return hooks
        meta = live["metadata"]
        body = {
            "metadata": {key: meta[key] for key in ("name", "uid", "resourceVersion")},
            "webhooks": [
                {"name": name, "clientConfig": {"caBundle": bundle}}
                for name, bundle in bundles.items()
            ],
        }
        try:
            applied = await self._cluster.apply(VALIDATING, body, manager=self._manager)
        except Conflict as error:
            self._refused_at = _version(live)
            self.problem = f"{VALIDATING.kind} {self._name}: {error.message}"
            return hooks
        return self._ours(applied.object)

    def _ours(self, live: Object) -> list[Object]:
        return [h for h in View(live).items("webhooks") if View(h).text("name") in self._webhooks]


def _bundle(hook: Object, wanted: Sequence[x509.Certificate], now: datetime) -> str:
    """Return a webhook's bundle; a complete one stays exactly as it is."""
    trusted = _trusted_by(hook)
    valid = [certificate for certificate in own(trusted) if is_usable(certificate, now)]
    if trusted and trusted == valid and set(wanted) <= set(trusted):
        return _text(hook)
    return b64encode(pem(list(dict.fromkeys((*wanted, *valid)))[:MOST])).decode()


def _version(live: Object) -> str:
    return View(live).text("metadata", "resourceVersion")


def _text(hook: Object) -> str:
    return View(hook).text("clientConfig", "caBundle")


def _trusted_by(hook: Object) -> list[x509.Certificate]:
    try:
        return certificates(b64decode(_text(hook)), "caBundle")
    except (UnusableError, ValueError):
        return []
