"""Rotation: which pair is served, and which one comes next; pure but for the keys that it makes.

The next pair is made when two thirds of the time of the current one have passed. Clients trust both
for a while before the next one is served, and the former one until it expires: replicas and clients
notice a change at different times.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.serving.certificates.material import (
    MOST,
    VALIDITY,
    Material,
    create,
    issued,
    names_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cryptography import x509

    from hedgerow.x509 import Pair

SETTLES: Final = timedelta(minutes=10)
"""How long the next certificate is published before it is served. Within this time every replica
reads the Secret, the API server `caBundle`, and a client such as Prometheus `ca.crt`."""
_RENEWED_AT: Final = 2 / 3
_CLOCKS: Final = timedelta(days=1)
"""A certificate from further in the future was made by a clock that was wrong."""


@dataclass(frozen=True, slots=True)
class Rules:
    """For which names and for how long certificates are made, and when the next one is served."""

    names: tuple[str, ...]
    validity: timedelta = VALIDITY
    settles: timedelta = SETTLES


def following(
    stored: Material | None, rules: Rules, now: datetime, *, published: bool, lost: bool = False
) -> Material | None:
    """Return the material to store in place of `stored`; None if that is good.

    `published`: every webhook trusts its `trusted` certificates. `lost`: the Secret is gone; then
    there is another next pair, since somebody may have deleted the Secret to be rid of it.
    """
    if stored is None:
        return _material(create(rules.names, now, rules.validity), None, (), now)
    current, coming = stored.current, stored.coming
    if lost or (coming and not (is_usable(coming.certificate, now) and _fits(coming, rules))):
        coming = None
    if not is_usable(current.certificate, now):
        # Nothing is lost if the next one is not trusted yet.
        current, coming = coming or create(rules.names, now, rules.validity), None
    elif coming and published and now >= issued(coming.certificate) + rules.settles:
        current, coming = coming, None
    elif coming is None and (lost or now >= due(current) or not _fits(current, rules)):
        coming = create(rules.names, now, rules.validity)
    wanted = _material(current, coming, stored.trusted, now)
    return None if wanted == stored else wanted


def due(pair: Pair) -> datetime:
    """Return when the next pair is to be made: after two thirds of the time of this one."""
    began = issued(pair.certificate)
    return began + (pair.certificate.not_valid_after_utc - began) * _RENEWED_AT


def is_usable(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether it makes sense to serve a certificate, now or when its time begins."""
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return since - _CLOCKS <= now < until


def _fits(pair: Pair, rules: Rules) -> bool:
    """Return whether a certificate has all names."""
    return names_of(pair.certificate) >= set(rules.names)


def _material(
    current: Pair, coming: Pair | None, former: Iterable[x509.Certificate], now: datetime
) -> Material:
    """Return material that has both pairs and valid former certificates trusted."""
    both = [pair.certificate for pair in (coming, current) if pair]
    valid = [certificate for certificate in former if is_usable(certificate, now)]
    return Material(current, coming, tuple(dict.fromkeys([*both, *valid]))[:MOST])
