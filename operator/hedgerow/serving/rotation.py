"""Rotation: which certificates come next, so that there is no moment without a trusted one.

A new authority is first trusted everywhere, then signs. The one before it stays trusted until it
expires, and with it whatever it has signed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.serving.issuing import Authority, issued, names_of
from hedgerow.serving.material import MOST, Material

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography import x509

AUTHORITY_LASTS: Final = 4
"""Validities of a server certificate: with 90 days an authority lasts for 360."""
_RENEWED_AT: Final = 2 / 3
_JITTER: Final = 1 / 12
LAST_MOMENT: Final = timedelta(seconds=5)
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
    """Give the material of an installation that has none, or has lost it.

    What is still `known` goes on being served and trusted: there are clients that trust nothing
    else yet.
    """
    authority = Authority.create(now, rules.validity * AUTHORITY_LASTS)
    if known is None or expired(known, now):
        leaf = authority.issue(rules.names, now, rules.validity)
        return Material(leaf, authority)
    return _trusting(authority, known, now)


def following(material: Material, rules: Rules, now: datetime, *, trusted: bool) -> Material | None:
    """Give what is to replace the material, or None while it is good.

    `trusted` says that all clients have known the newest authority for `Rules.settle`. Nothing is
    signed by one they do not know, unless what is there is of no use any more.
    """
    newest = material.authority.certificate
    if now >= _at(newest, 0.5) or _lasts(newest) < rules.validity:
        authority = Authority.create(now, rules.validity * AUTHORITY_LASTS)
        return _trusting(authority, material, now)
    renew = material.signer != newest or now >= due(material, rules) or misnamed(material, rules)
    if expired(material, now) or (renew and trusted):
        leaf = material.authority.issue(rules.names, now, rules.validity)
        return replace(material, leaf=leaf, older=_unexpired(material.older, now))
    older = _unexpired(material.older, now)
    return None if older == material.older else replace(material, older=older)


def due(material: Material, rules: Rules) -> datetime:
    """Tell when the server certificate is to be renewed: at two thirds, or a little before."""
    return _at(material.leaf.certificate, _RENEWED_AT - _JITTER * rules.draw)


def expired(material: Material, now: datetime) -> bool:
    """Tell whether no client takes the server certificate any more, or will not in a moment."""
    return now >= material.leaf.certificate.not_valid_after_utc - LAST_MOMENT


def misnamed(material: Material, rules: Rules) -> bool:
    """Tell whether the server certificate lacks one of the names."""
    return not names_of(material.leaf.certificate) >= set(rules.names)


def _trusting(authority: Authority, material: Material, now: datetime) -> Material:
    """Have another authority trusted, which does not sign yet; the signer is never crowded out."""
    signer = material.signer
    rest = [one for one in _unexpired(material.bundle, now) if one != signer]
    kept = (signer, *rest) if signer else tuple(rest)
    return Material(material.leaf, authority, kept[: MOST - 1])


def _unexpired(bundle: tuple[x509.Certificate, ...], now: datetime) -> tuple[x509.Certificate, ...]:
    return tuple(one for one in bundle if now < one.not_valid_after_utc)


def _at(certificate: x509.Certificate, share: float) -> datetime:
    """Tell when so much of a certificate's time has passed."""
    return issued(certificate) + _lasts(certificate) * share


def _lasts(certificate: x509.Certificate) -> timedelta:
    return certificate.not_valid_after_utc - issued(certificate)
