"""X.509: what both the serving certificates and those of the sandbox are made with."""

from __future__ import annotations

from cryptography import x509


def key_usage(*, signs: bool) -> x509.KeyUsage:
    """Return what a key may be used for: an authority's signs certificates, any other's TLS."""
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
