"""Rotation: which certificate comes next, so that a trusted one is always served.

Each certificate has an authority of its own, whose key is dropped after it has signed. A new
authority must be trusted everywhere before the certificate that it signed is served. The previous
authority stays trusted until it expires.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.serving.certificates.issuing import MOST, Authority, Material, issued, names_of

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography import x509

    from hedgerow.x509 import Pair

_RENEWED_AT: Final = 1 / 2
_JITTER: Final = 1 / 12
_LAST: Final = 1 / 12
_LONGEST_LAST: Final = timedelta(seconds=5)
"""A certificate counts as expired this much earlier; every replica checks within this time."""
_SETTLES: Final = 1 / 12
_LONGEST_TO_SETTLE: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Rules:
    """How certificates are made; `draw` in [0, 1) spreads the renewals of replicas."""

    names: tuple[str, ...]
    validity: timedelta
    draw: float = 0.0

    @property
    def settle(self) -> timedelta:
        """How long an authority is trusted before its certificate is served by any replica."""
        return min(self.validity * _SETTLES, _LONGEST_TO_SETTLE)


def first(rules: Rules, now: datetime, known: Material | None = None) -> Material:
    """Return the material of an installation that has none, or has lost it.

    Material that is still `known` continues to be served and trusted, because clients may not trust
    anything else yet.
    """
    if known is not None and not expired(known, now):
        return _announced(known, rules, now)
    authority, leaf = _made(rules, now)
    return Material(leaf, (authority,))


def following(material: Material, rules: Rules, now: datetime, *, trusted: bool) -> Material | None:
    """Return the material that must replace this one, or None while it is good.

    `trusted`: all clients have trusted the newest authority for `Rules.settle`. A certificate of an
    authority that they do not trust yet is served only if the current one has expired.
    """
    unexpired, coming = _unexpired(material.bundle, now), material.coming
    if coming and (_misnamed(coming, rules) or now >= _due(coming, rules)):
        coming = None  # it is too old, or has other names
    if expired(material, now) and not coming:
        authority, leaf = _made(rules, now)
        return Material(leaf, (authority, *unexpired)[:MOST])
    if coming and (trusted or expired(material, now)):
        return Material(coming, unexpired)
    if coming is None and (now >= due(material, rules) or _misnamed(material.leaf, rules)):
        return _announced(material, rules, now)
    return None if unexpired == material.bundle else replace(material, bundle=unexpired)


def due(material: Material, rules: Rules) -> datetime:
    """Return when to renew the server certificate: after half its time, or a little earlier."""
    return _due(material.leaf, rules)


def expired(material: Material, now: datetime) -> bool:
    """Return whether the server certificate has expired, or will in a moment."""
    leaf = material.leaf.certificate
    return now >= leaf.not_valid_after_utc - min(_lasts(leaf) * _LAST, _LONGEST_LAST)


def _made(rules: Rules, now: datetime) -> tuple[x509.Certificate, Pair]:
    """Return a new authority and a certificate signed by it; the authority's key is dropped."""
    authority = Authority.create(now, rules.validity)
    return authority.certificate, authority.issue(rules.names, now, rules.validity)


def _announced(material: Material, rules: Rules, now: datetime) -> Material:
    """Return material with a new authority to trust, and its certificate as the next one.

    The authority of the current certificate always stays in the bundle.
    """
    authority, coming = _made(rules, now)
    signer = material.signer
    rest = [one for one in _unexpired(material.bundle, now) if one != signer]
    kept = (signer, *rest) if signer else tuple(rest)
    return Material(material.leaf, (authority, *kept)[:MOST], coming)


def _due(leaf: Pair, rules: Rules) -> datetime:
    return _at(leaf.certificate, _RENEWED_AT - _JITTER * rules.draw)


def _misnamed(leaf: Pair, rules: Rules) -> bool:
    """Return whether a server certificate lacks one of the names."""
    return not names_of(leaf.certificate) >= set(rules.names)


def _unexpired(bundle: tuple[x509.Certificate, ...], now: datetime) -> tuple[x509.Certificate, ...]:
    return tuple(one for one in bundle if now < one.not_valid_after_utc)


def _at(certificate: x509.Certificate, share: float) -> datetime:
    """Return when this share of a certificate's time has passed."""
    return issued(certificate) + _lasts(certificate) * share


def _lasts(certificate: x509.Certificate) -> timedelta:
    return certificate.not_valid_after_utc - issued(certificate)
