"""Issuing: certificate authorities, the server certificates they sign, and how both are kept."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from hedgerow.x509 import Pair, key_pem, pem, self_signed, signed_by, subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


SKEW: Final = timedelta(minutes=5)
"""A certificate is valid from this long before its creation, as clocks differ."""
_ISSUER: Final = "hedgerow-certificates"
_UNREADABLE: Final = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
"""Errors of reading extensions, which are parsed lazily; a stored certificate may be anything."""


class Authority(Pair):
    """A self-signed certificate, and the key that signs others."""

    __slots__ = ()

    @classmethod
    def create(cls, now: datetime, validity: timedelta) -> Self:
        """Return a new authority, valid from `now` for `validity`, and for `SKEW` before."""
        name = _subject(f"{_ISSUER}@{now:%Y-%m-%dT%H:%M:%SZ}")
        made = self_signed(name, now - SKEW, now + validity)
        return cls(made.certificate, made.key)

    def issue(self, names: Sequence[str], now: datetime, validity: timedelta) -> Pair:
        """Return a certificate for these DNS names and IP addresses; it ends with the authority."""
        until = min(now + validity, self.certificate.not_valid_after_utc)
        return signed_by(
            self,
            _subject(names[0]),
            now - SKEW,
            until,
            usages=[ExtendedKeyUsageOID.SERVER_AUTH],
            names=names,
        )


def issued(certificate: x509.Certificate) -> datetime:
    """Return when one of our certificates was created."""
    return certificate.not_valid_before_utc + SKEW


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return a certificate's DNS names and IP addresses; empty if they cannot be read."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *_UNREADABLE):
        return frozenset()
    return frozenset(str(name.value) for name in found)


def _subject(common: str) -> x509.Name:
    """Return a certificate's subject; X.509 allows 64 characters, and clients do not use it."""
    return subject(common[:64])


CERTIFICATE, KEY, BUNDLE = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
AUTHORITY_KEY: Final = "ca.key"
"""Earlier versions stored this key too; whoever reads it can sign certificates for our servers."""
MOST: Final = 8
"""The most authorities that are trusted at a time; normally there are two."""
_LONGEST: Final = 256 * 1024
_NO_PEM: Final = (ValueError, TypeError, UnsupportedAlgorithm)


class UnusableError(ValueError):
    """Data is not a certificate, or does not fit together; the text never contains the data."""


@dataclass(frozen=True, slots=True)
class Material:
    """A certificate with its key, the next one, and all trusted authorities.

    `bundle` is never empty, and its first authority is the newest. Each authority has signed one
    certificate; its key is not kept.
    """

    leaf: Pair
    bundle: tuple[x509.Certificate, ...]
    coming: Pair | None = None

    @property
    def signer(self) -> x509.Certificate | None:
        """The authority of `bundle` that signed the certificate, or None."""
        return next((one for one in self.bundle if signed(self.leaf.certificate, one)), None)

    def wire(self) -> dict[str, str]:
        """Return a Secret's `data`."""
        found = {
            CERTIFICATE: pem([self.leaf.certificate]),
            KEY: key_pem(self.leaf.key),
            BUNDLE: pem(self.bundle),
        }
        if self.coming:
            found |= {NEXT_CERTIFICATE: pem([self.coming.certificate])}
            found |= {NEXT_KEY: key_pem(self.coming.key)}
        return {name: b64encode(value).decode() for name, value in found.items()}

    @classmethod
    def read(cls, secret: Mapping[str, Any]) -> Material:
        """Return the material in a Secret's `data`; raises UnusableError without values of it."""
        leaf = _pair(secret, CERTIFICATE, KEY)
        coming = _pair(secret, NEXT_CERTIFICATE, NEXT_KEY) if NEXT_CERTIFICATE in secret else None
        bundle = tuple(certificates(_decoded(secret, BUNDLE), BUNDLE)[:MOST])
        material = cls(leaf, bundle, coming)
        if material.signer is None:
            raise UnusableError(f"{CERTIFICATE} is signed by none of {BUNDLE}")
        if coming and not signed(coming.certificate, bundle[0]):
            raise UnusableError(f"{NEXT_CERTIFICATE} is not signed by the first of {BUNDLE}")
        return material


@dataclass(frozen=True, slots=True)
class Served:
    """What a TLS server needs: a chain and its key in PEM, and when it is valid."""

    chain: bytes
    key: bytes = field(repr=False)
    since: datetime
    until: datetime

    @classmethod
    def of(cls, leaf: Pair) -> Served:
        """Return one of our certificates in the form for a TLS server."""
        return cls.by(leaf.certificate, pem([leaf.certificate]), key_pem(leaf.key))

    @classmethod
    def by(cls, first: x509.Certificate, chain: bytes, key: bytes) -> Served:
        """Return a chain that begins with this certificate, in the form for a TLS server."""
        return cls(chain, key, first.not_valid_before_utc, first.not_valid_after_utc)


def signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    """Return whether an authority signed a certificate."""
    try:
        certificate.verify_directly_issued_by(by)
    except (InvalidSignature, *_NO_PEM):
        return False
    return True


def certificates(text: bytes, what: str) -> list[x509.Certificate]:
    """Return the certificates in a PEM text; raises UnusableError about `what` if it has none."""
    try:
        return x509.load_pem_x509_certificates(text)
    except _NO_PEM:
        raise UnusableError(f"{what} holds no certificate") from None


def _pair(secret: Mapping[str, Any], certificate: str, key: str) -> Pair:
    found, private = _decoded(secret, certificate), _decoded(secret, key)
    first = certificates(found, certificate)[0]
    return Pair(first, _key(private, key, first))


def _decoded(secret: Mapping[str, Any], name: str) -> bytes:
    text = secret.get(name)
    if not isinstance(text, str) or not text:
        raise UnusableError(f"{name} is missing")
    if len(text) > _LONGEST:
        raise UnusableError(f"{name} is too long")
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise UnusableError(f"{name} is no base64") from None


def _key(text: bytes, name: str, certificate: x509.Certificate) -> ec.EllipticCurvePrivateKey:
    try:
        key, public = load_pem_private_key(text, None), certificate.public_key()
    except _NO_PEM:
        raise UnusableError(f"{name} holds no private key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableError(f"{name} is no ECDSA key")
    if key.public_key() != public:
        raise UnusableError(f"{name} does not belong to its certificate")
    return key
