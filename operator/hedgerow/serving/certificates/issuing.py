"""Issuing: certificate authorities, the server certificates they sign, and both as PEM."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


SKEW: Final = timedelta(minutes=5)
"""How long before its making a certificate is valid: clocks differ."""
_ISSUER: Final = "hedgerow-certificates"
_UNREADABLE: Final = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
"""What extensions raise, which are read late; a certificate that was stored may be anybody's."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key (ECDSA on P-256)."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


class Authority(Pair):
    """A self-signed certificate, and the key that signs others."""

    __slots__ = ()

    @classmethod
    def create(cls, now: datetime, validity: timedelta) -> Self:
        """Make one, valid from `now` for so long, and for `SKEW` before."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"{_ISSUER}@{now:%Y-%m-%dT%H:%M:%SZ}")
        certificate = (
            _unsigned(subject, subject, key, now, now + validity)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    def issue(self, names: Sequence[str], now: datetime, validity: timedelta) -> Pair:
        """Sign for a server of these DNS names and IP addresses; never for longer than we last."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = min(now + validity, self.certificate.not_valid_after_utc)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _unsigned(_name(names[0]), self.certificate.subject, key, now, until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(signer, critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )
        return Pair(certificate, key)


def issued(certificate: x509.Certificate) -> datetime:
    """Return when a certificate of ours was made."""
    return certificate.not_valid_before_utc + SKEW


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names and IP addresses of a certificate; none where they cannot be read."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *_UNREADABLE):
        return frozenset()
    return frozenset(str(name.value) for name in found)


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    since: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
        .not_valid_before(since - SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(common: str) -> x509.Name:
    """Name a certificate; X.509 takes 64 characters, the names that count are elsewhere."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


CERTIFICATE, KEY, BUNDLE = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
AUTHORITY_KEY: Final = "ca.key"
"""What earlier versions kept beside the rest; whoever reads it can sign for our servers."""
MOST: Final = 8
"""Authorities that are trusted at a time; in the ordinary course of things there are two."""
_LONGEST: Final = 256 * 1024
_NO_PEM: Final = (ValueError, TypeError, UnsupportedAlgorithm)


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
        """Return a Secret's `data`."""
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
        """Return what a certificate of ours is served with."""
        return cls.by(leaf.certificate, pem([leaf.certificate]), key_pem(leaf))

    @classmethod
    def by(cls, first: x509.Certificate, chain: bytes, key: bytes) -> Served:
        """Return what a chain is served with that begins with this certificate."""
        return cls(chain, key, first.not_valid_before_utc, first.not_valid_after_utc)


def signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    """Return whether an authority signed a certificate."""
    try:
        certificate.verify_directly_issued_by(by)
    except (InvalidSignature, *_NO_PEM):
        return False
    return True


def certificates(text: bytes, what: str) -> list[x509.Certificate]:
    """Read certificates in PEM; raises UnusableError when there are none, named as `what`."""
    try:
        return x509.load_pem_x509_certificates(text)
    except _NO_PEM:
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
    except _NO_PEM:
        raise UnusableError(f"{name} holds no private key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableError(f"{name} is no ECDSA key")
    if key.public_key() != public:
        raise UnusableError(f"{name} does not belong to its certificate")
    return key
