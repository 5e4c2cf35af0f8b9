"""Material: the server's certificates and keys, how they are made, and how a Secret keeps them.

A certificate is signed by its own key and is no authority. Clients trust the certificate itself, so
nothing that somebody signs with its key is trusted.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from hedgerow.x509 import Pair, key_pem, pem, self_signed, subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

VALIDITY: Final = timedelta(days=90)
SKEW: Final = timedelta(minutes=5)
"""A certificate is valid from this long before its creation, as clocks differ."""
MOST: Final = 4
"""The most certificates that are trusted at a time; normally there are two."""
CERTIFICATE, KEY, BUNDLE = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
_LONGEST: Final = 256 * 1024
_NO_PEM: Final = (ValueError, TypeError, UnsupportedAlgorithm)
_NO_EXTENSION: Final = (
    ValueError,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.UnsupportedGeneralNameType,
)
"""Errors of reading extensions, which are parsed lazily; a stored certificate may be anything."""


class UnusableError(ValueError):
    """Data is not a certificate, or does not fit together; the text never contains the data."""


def create(names: Sequence[str], now: datetime, validity: timedelta) -> Pair:
    """Return a new pair for these DNS names and IP addresses.

    Its subject is like no other, because OpenSSL looks up trusted certificates by it. Clients of
    a server do not read it.
    """
    return self_signed(
        subject(f"hedgerow-serving-{x509.random_serial_number():x}"),
        now - SKEW,
        now + validity,
        usages=[ExtendedKeyUsageOID.SERVER_AUTH],
        names=names,
    )


def issued(certificate: x509.Certificate) -> datetime:
    """Return when one of our certificates was created."""
    return certificate.not_valid_before_utc + SKEW


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return a certificate's DNS names and IP addresses; empty if they cannot be read."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _NO_EXTENSION:
        return frozenset()
    return frozenset(str(name.value) for name in names)


def is_own(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is of the form of ours: signed by its own key, no authority.

    Nor is it valid for longer: whoever once wrote the Secret would be trusted for that time.
    """
    try:
        life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        certificate.verify_directly_issued_by(certificate)
    except (InvalidSignature, *_NO_PEM, *_NO_EXTENSION):
        return False
    return not limits.ca and life <= VALIDITY + SKEW


@dataclass(frozen=True, slots=True)
class Material:
    """The pair that is served, the next one if there is one, and the certificates to trust.

    `trusted` has the certificates of both, and former ones that some replica may still serve.
    """

    current: Pair
    coming: Pair | None = None
    trusted: tuple[x509.Certificate, ...] = ()

    def wire(self) -> dict[str, str]:
        """Return a Secret's `data`."""
        data = {
            CERTIFICATE: pem([self.current.certificate]),
            KEY: key_pem(self.current.key),
            BUNDLE: pem(self.trusted),
        }
        if self.coming:
            data |= {NEXT_CERTIFICATE: pem([self.coming.certificate])}
            data |= {NEXT_KEY: key_pem(self.coming.key)}
        return {name: b64encode(value).decode() for name, value in data.items()}

    @classmethod
    def from_secret(cls, secret: Mapping[str, Any]) -> Material:
        """Return the material in a Secret's `data`.

        Raises UnusableError without values of it if the served pair is unusable. A next pair or a
        bundle that is unusable counts as missing.
        """
        current, coming = _pair(secret, CERTIFICATE, KEY), None
        trusted: list[x509.Certificate] = []
        try:
            trusted = own(certificates(_decoded(secret, BUNDLE), BUNDLE))
            coming = _pair(secret, NEXT_CERTIFICATE, NEXT_KEY)
        except UnusableError:
            pass
        return cls(current, coming, tuple(trusted))


@dataclass(frozen=True, slots=True)
class Served:
    """The input of a TLS server: a chain and its key in PEM, and when it is valid."""

    chain: bytes
    key: bytes = field(repr=False)
    since: datetime
    until: datetime

    @classmethod
    def of_pair(cls, pair: Pair) -> Served:
        """Return one of our pairs in the form for a TLS server."""
        return cls.by(pair.certificate, pem([pair.certificate]), key_pem(pair.key))

    @classmethod
    def by(cls, first: x509.Certificate, chain: bytes, key: bytes) -> Served:
        """Return a chain that begins with this certificate, in the form for a TLS server."""
        return cls(chain, key, first.not_valid_before_utc, first.not_valid_after_utc)


def certificates(text: bytes, what: str) -> list[x509.Certificate]:
    """Return the certificates in a PEM text; raises UnusableError about `what` if it has none."""
    try:
        return x509.load_pem_x509_certificates(text)
    except _NO_PEM:
        raise UnusableError(f"{what} holds no certificate") from None


def own(some: Iterable[x509.Certificate]) -> list[x509.Certificate]:
    """Return those of the first `MOST` certificates that have the form of ours."""
    return [
        certificate
        for certificate, _ in zip(some, range(MOST), strict=False)
        if is_own(certificate)
    ]


def _pair(secret: Mapping[str, Any], certificate: str, key: str) -> Pair:
    chain, private = _decoded(secret, certificate), _decoded(secret, key)
    first = certificates(chain, certificate)[0]
    if not is_own(first):
        raise UnusableError(f"{certificate} is not self-signed, is an authority, or lives too long")
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
