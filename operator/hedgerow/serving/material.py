"""Material: a server's certificate, and the authorities that its clients are to trust."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from hedgerow.serving.issuing import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

CERTIFICATE, KEY, BUNDLE = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
AUTHORITY_KEY: Final = "ca.key"
"""What earlier versions kept beside the rest; whoever reads it can sign for our servers."""
MOST: Final = 8
"""Authorities that are trusted at a time; in the ordinary course of things there are two."""
_LONGEST: Final = 256 * 1024
_UNREADABLE: Final = (ValueError, TypeError, UnsupportedAlgorithm)


class UnusableError(ValueError):
    """What was read is no certificate, or does not belong together; tells which, never what."""


@dataclass(frozen=True, slots=True)
class Material:
    """A certificate with its key, the one that comes next, and all authorities that are trusted.

    The newest authority is the first of `bundle`, and never empty is that. Each has signed one
    certificate, and its key is kept nowhere.
    """

    leaf: Pair
    bundle: tuple[x509.Certificate, ...]
    coming: Pair | None = None

    @property
    def signer(self) -> x509.Certificate | None:
        """The authority that signed the certificate, if it is one of those."""
        return next((one for one in self.bundle if signed(self.leaf.certificate, one)), None)

    def wire(self) -> dict[str, str]:
        """Give a Secret's `data`."""
        found = {
            CERTIFICATE: pem([self.leaf.certificate]),
            KEY: key_pem(self.leaf),
            BUNDLE: pem(self.bundle),
        }
        if self.coming:
            found |= {NEXT_CERTIFICATE: pem([self.coming.certificate])}
            found |= {NEXT_KEY: key_pem(self.coming)}
        return {name: b64encode(value).decode() for name, value in found.items()}

    @classmethod
    def read(cls, secret: Mapping[str, Any]) -> Material:
        """Read a Secret's `data`; raises UnusableError, whose text holds nothing of it."""
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
    """What a TLS server needs: a chain and its key in PEM, and between when it is valid."""

    chain: bytes
    key: bytes = field(repr=False)
    since: datetime
    until: datetime

    @classmethod
    def of(cls, leaf: Pair) -> Served:
        """Give what a certificate of ours is served with."""
        return cls.by(leaf.certificate, pem([leaf.certificate]), key_pem(leaf))

    @classmethod
    def by(cls, first: x509.Certificate, chain: bytes, key: bytes) -> Served:
        """Give what a chain is served with that begins with this certificate."""
        return cls(chain, key, first.not_valid_before_utc, first.not_valid_after_utc)


def signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    """Tell whether an authority signed a certificate."""
    try:
        certificate.verify_directly_issued_by(by)
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def certificates(text: bytes, what: str) -> list[x509.Certificate]:
    """Read certificates in PEM; raises UnusableError when there are none, named as `what`."""
    try:
        return x509.load_pem_x509_certificates(text)
    except _UNREADABLE:
        raise UnusableError(f"{what} holds no certificate") from None


def pem(bundle: Iterable[x509.Certificate]) -> bytes:
    """Write certificates in PEM, one after the other."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in bundle)


def key_pem(pair: Pair) -> bytes:
    """Write a private key in PEM, as PKCS #8."""
    return pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


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
    except _UNREADABLE:
        raise UnusableError(f"{name} holds no private key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableError(f"{name} is no ECDSA key")
    if key.public_key() != public:
        raise UnusableError(f"{name} does not belong to its certificate")
    return key
