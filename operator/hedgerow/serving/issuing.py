"""Issuing: certificate authorities, and the server certificates that they sign."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    """Tell when a certificate of ours was made."""
    return certificate.not_valid_before_utc + SKEW


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Give the DNS names and IP addresses of a certificate; none where they cannot be read."""
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
