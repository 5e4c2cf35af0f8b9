"""Certificates: one sandbox's own authorities, and what they sign."""

from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hedgerow.sandbox.files import write
from hedgerow.sandbox.ports import LOOPBACK
from hedgerow.x509 import key_usage

SERVICE_IP = "10.0.0.1"
"""The first address of the Service range, which the Service `kubernetes` gets."""

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
# Throwaway keys on one machine need not expire, and so wrong clocks do no harm.
_SINCE, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The files of a certificate and its private key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class SandboxAuthority:
    """Signs for one purpose; servers that trust it refuse certificates of other authorities."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, directory: Path, name: str) -> "SandboxAuthority":
        """Return a new authority, stored as `name`.crt and `name`.key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"hedgerow sandbox {name}", ())
        certificate = (
            _unsigned(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(key_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _keep(directory, name, certificate, key)
        return cls(certificate, key)

    @classmethod
    def load(cls, directory: Path, name: str) -> "SandboxAuthority":
        """Return an authority that `create` stored."""
        certificate = x509.load_pem_x509_certificate((directory / f"{name}.crt").read_bytes())
        key = load_pem_private_key((directory / f"{name}.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 -- as created above
        return cls(certificate, key)

    def serving(self, directory: Path, name: str) -> KeyPair:
        """Return a certificate for a server on the loopback address, usable as a client's too."""
        addresses = [x509.IPAddress(ip_address(text)) for text in (LOOPBACK, SERVICE_IP)]
        names = x509.SubjectAlternativeName([*map(x509.DNSName, _NAMES), *addresses])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(directory, name, _name(name, ()), usages, names)

    def client(
        self, directory: Path, name: str, user: str, groups: tuple[str, ...] = ()
    ) -> KeyPair:
        """Return a client certificate for this user and these groups."""
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(directory, name, _name(user, groups), usages, None)

    def _issue(
        self,
        directory: Path,
        name: str,
        subject: x509.Name,
        usages: list[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            _unsigned(subject, self.certificate.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(issuer, critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _keep(directory, name, builder.sign(self.key, hashes.SHA256()), key)


def signing_pair(directory: Path, name: str) -> KeyPair:
    """Return a new key pair for ServiceAccount tokens: `name`.pub verifies, `name`.key signs."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(write(directory / f"{name}.pub", public), _keep_key(directory, name, key))


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
        .not_valid_before(_SINCE)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(common: str, organizations: tuple[str, ...]) -> x509.Name:
    """Return a subject as Kubernetes reads it: common name as user, organizations as groups."""
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _keep(
    directory: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> KeyPair:
    public = write(directory / f"{name}.crt", certificate.public_bytes(Encoding.PEM))
    return KeyPair(public, _keep_key(directory, name, key))


def _keep_key(directory: Path, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
    # Go reads an EC key of a server from PKCS#8 as well as a ServiceAccount signer's.
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return write(directory / f"{name}.key", private)
