"""Rotation: which certificate comes next, so that a trusted one is always served.

Each certificate has an authority of its own, whose key is forgotten as soon as it has signed. A new
authority is first trusted everywhere, and only then what it has signed is served. The one before it
stays trusted until it expires.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.serving.certificates.issuing import MOST, Authority, Material, issued, names_of

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography import x509

    from hedgerow.serving.certificates.issuing import Pair

_RENEWED_AT: Final = 1 / 2
_JITTER: Final = 1 / 12
_LAST: Final = 1 / 12
_LONGEST_LAST: Final = timedelta(seconds=5)
"""Before its end a certificate is worth nothing: each replica has looked again by then."""
_SETTLES: Final = 1 / 12
_LONGEST_TO_SETTLE: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Rules:
    """What certificates are made like; `draw` from [0, 1) spreads the renewals of replicas."""

    names: tuple[str, ...]
    validity: timedelta
    draw: float = 0.0

    @property
    def settle(self) -> timedelta:
        """How long an authority is trusted before it signs: every replica has looked by then."""
        return min(self.validity * _SETTLES, _LONGEST_TO_SETTLE)


def first(rules: Rules, now: datetime, known: Material | None = None) -> Material:
    """Return the material of an installation that has none, or has lost it.

    What is still `known` goes on being served and trusted: there are clients that trust nothing
    else yet.
    """
    if known is not None and not expired(known, now):
        return _announced(known, rules, now)
    authority, leaf = _made(rules, now)
    return Material(leaf, (authority,))


def following(material: Material, rules: Rules, now: datetime, *, trusted: bool) -> Material | None:
    """Return what is to replace the material, or None while it is good.

    `trusted` says that all clients have known the newest authority for `Rules.settle`. Nothing is
    served that one has signed which they do not know, unless what is there is of no use any more.
    """
    unexpired, coming = _unexpired(material.bundle, now), material.coming
    if coming and (_misnamed(coming, rules) or now >= _due(coming, rules)):
        coming = None  # it was to come long ago, or for others
    if expired(material, now) and not coming:
        authority, leaf = _made(rules, now)
        return Material(leaf, (authority, *unexpired)[:MOST])
    if coming and (trusted or expired(material, now)):
        return Material(coming, unexpired)
    if coming is None and (now >= due(material, rules) or _misnamed(material.leaf, rules)):
        return _announced(material, rules, now)
    return None if unexpired == material.bundle else replace(material, bundle=unexpired)


def due(material: Material, rules: Rules) -> datetime:
    """Return when the server certificate is to be renewed: halfway, or a little before."""
    return _due(material.leaf, rules)


def expired(material: Material, now: datetime) -> bool:
    """Return whether no client takes the server certificate any more, or will not in a moment."""
    leaf = material.leaf.certificate
    return now >= leaf.not_valid_after_utc - min(_lasts(leaf) * _LAST, _LONGEST_LAST)


def _made(rules: Rules, now: datetime) -> tuple[x509.Certificate, Pair]:
    """Make an authority and a certificate that it has signed; its key ends here."""
    authority = Authority.create(now, rules.validity)
    return authority.certificate, authority.issue(rules.names, now, rules.validity)


def _announced(material: Material, rules: Rules, now: datetime) -> Material:
    """Have another authority trusted before what it signed is served.

    The one that signed what is served now is never crowded out.
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
    """Return when so much of a certificate's time has passed."""
    return issued(certificate) + _lasts(certificate) * share


def _lasts(certificate: x509.Certificate) -> timedelta:
    return certificate.not_valid_after_utc - issued(certificate)
