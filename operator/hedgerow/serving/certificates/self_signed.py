"""Self-signed: certificates that the replicas issue themselves and share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.kube.errors import Conflict, KubeError
from hedgerow.serving.certificates.issuing import AUTHORITY_KEY, Served
from hedgerow.serving.certificates.rotation import expired, first, following
from hedgerow.serving.certificates.served import Certificates, pause_for

if TYPE_CHECKING:
    from hedgerow.runtime.clock import Clock
    from hedgerow.serving.certificates.ca_bundles import Bundles
    from hedgerow.serving.certificates.issuing import Material
    from hedgerow.serving.certificates.rotation import Rules
    from hedgerow.serving.certificates.secret import SecretStore, Stored


_SURPLUS: Final = (
    f"{AUTHORITY_KEY} is held by another field manager; whoever reads it can sign certificates that"
    " are trusted: remove it"
)


class SharedCertificates(Certificates):
    """Certificates in a Secret, trusted by the webhook configurations before they are served.

    Any replica may write; the Secret's resource version lets only one succeed.
    """

    def __init__(self, clock: Clock, rules: Rules, store: SecretStore, bundles: Bundles) -> None:
        super().__init__(clock, pause_for(rules))
        self._rules = rules
        self._store = store
        self._bundles = bundles
        self._material: Material | None = None
        self._held = ("", "")
        self._stays = ""

    async def _look(self) -> str:
        stored = await self._store.read()
        known = stored.material or self._material
        failure = await self._publish(known)
        wanted, problem = self._wanted(stored), ""
        if wanted is not None:
            stored, problem = await self._write(wanted, stored)
            failure = await self._publish(stored.material) or failure
        if stored.material is not None:
            self._adopt(stored.material)
        if failure is not None:
            raise failure
        surplus = f"{self._store}: {_SURPLUS}" if stored.surplus else ""
        return "; ".join(filter(None, (problem or surplus, self._bundles.problem)))

    async def _publish(self, material: Material | None) -> KubeError | None:
        """Publish the material's authorities; return an error instead of raising it.

        The caller raises it after it has loaded the certificate to serve.
        """
        if material is not None:
            try:
                await self._bundles.publish(material.bundle)
            except KubeError as error:
                return error
        return None

    def _wanted(self, stored: Stored) -> Material | None:
        """Return the material to store, or None if the stored material is good."""
        now, found = self._clock.now(), stored.material
        if found is None:
            return first(self._rules, now, self._material)
        trusted = self._bundles.trusted(found.bundle[0], self._rules.settle.total_seconds())
        wanted = following(found, self._rules, now, trusted=trusted)
        if wanted is None and stored.surplus and stored.version != self._stays:
            return found
        return wanted

    async def _write(self, wanted: Material, over: Stored) -> tuple[Stored, str]:
        """Store it; return what is stored, and the conflict if there is one.

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
        self._stays = written.version if written.surplus else ""
        return written, ""

    def _adopt(self, material: Material) -> None:
        """Serve the stored certificate once it is trusted, or at once if there is none better."""
        known, signer = self._material, material.signer
        settled = signer is not None and self._bundles.trusted(
            signer, self._rules.settle.total_seconds()
        )
        same = known is not None and known.leaf.certificate == material.leaf.certificate
        if same or settled or known is None or expired(known, self._clock.now()):
            self._material = material
            self._serve(Served.of(material.leaf))

    def _mistrust(self) -> str:
        signer = self._material and self._material.signer
        if signer is None or self._bundles.trusted(signer):
            return ""
        return self._bundles.problem or "no caBundle with its authority is published yet"
