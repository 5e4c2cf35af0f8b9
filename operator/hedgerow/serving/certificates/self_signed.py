"""Self-signed: certificates that the operator makes itself, for one process or for all replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube.errors import Conflict, KubeError
from hedgerow.serving.certificates.material import Served
from hedgerow.serving.certificates.rotation import following, is_usable
from hedgerow.serving.certificates.served import LONGEST_PAUSE, Certificates

if TYPE_CHECKING:
    from datetime import timedelta

    from cryptography import x509

    from hedgerow.runtime.clock import Clock
    from hedgerow.serving.certificates.ca_bundles import Bundles
    from hedgerow.serving.certificates.material import Material
    from hedgerow.serving.certificates.rotation import Rules
    from hedgerow.serving.certificates.secret import SecretStore, Stored


class SelfSigned(Certificates):
    """Certificates of this process alone, for a run on a developer's machine."""

    def __init__(self, clock: Clock, rules: Rules) -> None:
        super().__init__(clock, _pause(rules))
        self._rules = rules
        self._material: Material | None = None

    async def _refresh(self) -> str:
        wanted = following(self._material, self._rules, self._clock.now(), published=True)
        self._material = wanted or self._material
        if self._material:
            self._serve(Served.of_pair(self._material.current))
        return ""


class SharedCertificates(Certificates):
    """Certificates in a Secret, trusted by the webhooks before they are served.

    Any replica may write; the Secret's resource version lets only one succeed.
    """

    def __init__(self, clock: Clock, rules: Rules, store: SecretStore, bundles: Bundles) -> None:
        super().__init__(clock, _pause(rules))
        self._rules = rules
        self._store = store
        self._bundles = bundles
        self._material: Material | None = None
        self._trusted: frozenset[x509.Certificate] = frozenset()
        self._held = ("", "")

    async def _refresh(self) -> str:
        before, now, problem = self._trusted, self._clock.now(), ""
        stored = await self._store.read_secret()
        known = stored.material or self._material
        failure = await self._publish(known)
        published = (
            known is not None and failure is None and self._trusted.issuperset(known.trusted)
        )
        lost = stored.material is None
        wanted = following(known, self._rules, now, published=published, lost=lost)
        if wanted is not None:
            stored, problem = await self._write(wanted, stored)
            failure = await self._publish(stored.material) or failure
        if stored.material is not None:
            self._adopt(stored.material, before & self._trusted)
        if failure is not None:
            raise failure
        return "; ".join(filter(None, (problem, self._bundles.problem)))

    async def _publish(self, material: Material | None) -> KubeError | None:
        """Publish the certificates to trust; return an error instead of raising it.

        The caller raises it after it has loaded the certificate to serve.
        """
        if material is not None:
            try:
                self._trusted = await self._bundles.publish(material.trusted, self._clock.now())
            except KubeError as error:
                return error
        return None

    async def _write(self, wanted: Material, over: Stored) -> tuple[Stored, str]:
        """Store the material; return the Secret's content, and the conflict if there is one.

        After a conflict, it does not try again until the Secret has changed.
        """
        version, problem = self._held
        if problem and version == over.version:
            return over, problem
        try:
            written = await self._store.write(wanted, over)
        except Conflict as error:
            flaw = f" ({over.flaw})" if over.flaw else ""
            self._held = (over.version, f"{self._store}{flaw}: {error.message}")
            return over, self._held[1]
        self._held = ("", "")
        return written, ""

    def _adopt(self, material: Material, trusted: frozenset[x509.Certificate]) -> None:
        """Serve the stored pair once it is trusted, or at once if there is none better.

        `trusted` are the certificates that the webhooks have trusted since the last check: the API
        server needs a moment to notice a new `caBundle`.
        """
        known, certificate = self._material, material.current.certificate
        if (
            known is None
            or known.current.certificate == certificate
            or certificate in trusted
            or not is_usable(known.current.certificate, self._clock.now())
        ):
            self._material = material
            self._serve(Served.of_pair(material.current))

    def _mistrust(self) -> str:
        if self._material is None or self._material.current.certificate in self._trusted:
            return ""
        return self._bundles.problem or self._trouble or "no caBundle with it is published yet"


def _pause(rules: Rules) -> timedelta:
    """Return the time between two checks: there are several while a certificate settles."""
    return min(rules.settles / 8, LONGEST_PAUSE)
