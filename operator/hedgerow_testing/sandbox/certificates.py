"""Certificates: one sandbox's own authorities, and the certificates that they sign."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from hedgerow.x509 import Pair, end_entity, key_pem, key_usage, new_key, pem, subject, unsigned
from hedgerow_testing.sandbox.files import write
from hedgerow_testing.sandbox.ports import LOOPBACK

SERVICE_IP = "10.0.0.1"
"""The first address of the Service range, which the Service `kubernetes` gets."""

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
# Throwaway keys on one machine need not expire, and so wrong clocks do no harm.
_SINCE, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)


def authority(subject: x509.Name, since: datetime, until: datetime) -> Pair:
    """Return a new authority: its key signs certificates, but no further authorities."""
    key = new_key()
    builder = (
        unsigned(subject, subject, key, since, until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def signed_by(
    authority: Pair,
    subject: x509.Name,
    since: datetime,
    until: datetime,
    *,
    usages: Iterable[x509.ObjectIdentifier],
    names: Sequence[str] = (),
) -> Pair:
    """Return a new certificate of an authority, for these DNS names and IP addresses."""
    key = new_key()
    builder = unsigned(subject, authority.certificate.subject, key, since, until)
    return end_entity(builder, key, authority.key, usages, names)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The files of a certificate and its private key."""

    certificate: Path
    key: Path


class SandboxAuthority(Pair):
    """Signs for one purpose; servers that trust it refuse certificates of other authorities."""

    __slots__ = ()

    @classmethod
    def create(cls, directory: Path, name: str) -> "SandboxAuthority":
        """Return a new authority, stored as `name`.crt and `name`.key."""
        made = authority(subject(f"hedgerow sandbox {name}"), _SINCE, _UNTIL)
        _keep(directory, name, made)
        return cls(made.certificate, made.key)

    @classmethod
    def load(cls, directory: Path, name: str) -> "SandboxAuthority":
        """Return an authority that `create` stored."""
        certificate = x509.load_pem_x509_certificate((directory / f"{name}.crt").read_bytes())
        key = load_pem_private_key((directory / f"{name}.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 -- as created above
        return cls(certificate, key)

    def serving(self, directory: Path, name: str) -> KeyPair:
        """Return a certificate for a server on the loopback address, usable as a client's too."""
        names = (*_NAMES, LOOPBACK, SERVICE_IP)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        made = signed_by(self, subject(name), _SINCE, _UNTIL, usages=usages, names=names)
        return _keep(directory, name, made)

    def client(
        self, directory: Path, name: str, user: str, groups: tuple[str, ...] = ()
    ) -> KeyPair:
        """Return a client certificate for this user and these groups."""
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        made = signed_by(self, subject(user, groups), _SINCE, _UNTIL, usages=usages)
        return _keep(directory, name, made)


def signing_pair(directory: Path, name: str) -> KeyPair:
    """Return a new key pair for ServiceAccount tokens: `name`.pub verifies, `name`.key signs."""
    key = new_key()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(
        write(directory / f"{name}.pub", public), write(directory / f"{name}.key", key_pem(key))
    )


def _keep(directory: Path, name: str, pair: Pair) -> KeyPair:
    return KeyPair(
        write(directory / f"{name}.crt", pem([pair.certificate])),
        write(directory / f"{name}.key", key_pem(pair.key)),
    )
