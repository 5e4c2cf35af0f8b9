"""Pems: a certificate and its key, made on the spot."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(address: str = "", common_name: str = "someone") -> tuple[bytes, bytes]:
    """Return a self-signed certificate and its key, as PEM; for an address it may serve there."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    built = built.public_key(key.public_key()).serial_number(x509.random_serial_number())
    built = built.not_valid_before(begin).not_valid_after(begin + timedelta(days=36500))
    if address:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        built = built.add_extension(names, critical=False)
    signed = built.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return signed.public_bytes(pem), key.private_bytes(pem, *plain)


def text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
