"""X.509: self-signed certificates, and the parts of any other."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key (ECDSA on P-256)."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


def self_signed(
    subject: x509.Name,
    since: datetime,
    until: datetime,
    *,
    usages: Iterable[x509.ObjectIdentifier],
    names: Sequence[str],
) -> Pair:
    """Return a new certificate for these names that is no authority, signed by its own key.

    Whoever trusts it trusts nothing else: certificates signed by its key are refused.
    """
    key = new_key()
    return end_entity(unsigned(subject, subject, key, since, until), key, key, usages, names)


def end_entity(
    unsigned: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    usages: Iterable[x509.ObjectIdentifier],
    names: Sequence[str],
) -> Pair:
    """Return the certificate of a key that is no authority's, for these names."""
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = (
        unsigned.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(identifier, critical=False)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(map(_general, names)), critical=False
        )
    return Pair(builder.sign(signer, hashes.SHA256()), key)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def subject(common: str, organizations: Iterable[str] = ()) -> x509.Name:
    """Return a subject as Kubernetes reads it: common name as user, organizations as groups."""
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def pem(bundle: Iterable[x509.Certificate]) -> bytes:
    """Return certificates in PEM, one after the other."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in bundle)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key in PEM, as PKCS #8, which Go reads for every purpose."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    since: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    """Return the beginning of a certificate."""
    public = key.public_key()
    return (
        x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def key_usage(*, signs: bool) -> x509.KeyUsage:
    """Return the uses of a key: an authority's signs certificates, any other's TLS."""
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
