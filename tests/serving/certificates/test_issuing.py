"""Issuing: certificates that openssl and Python's ssl take for what they are."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID
from cryptography.x509.verification import PolicyBuilder, Store

from hedgerow.runtime.clock import SystemClock
from hedgerow.serving.certificates.issuing import (
    SKEW,
    Authority,
    issued,
    names_of,
    signed,
)
from hedgerow.x509 import Pair, key_pem, pem

NAMES = ("hedgerow-webhook.hedgerow-system.svc", "localhost", "127.0.0.1", "::1")
YEAR, QUARTER = timedelta(days=360), timedelta(days=90)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create(SystemClock().now(), YEAR)


@pytest.fixture(scope="module")
def leaf(authority: Authority) -> Pair:
    return authority.issue(NAMES, SystemClock().now(), QUARTER)


class TestAuthority:
    def test_it_signs_and_nothing_else(self, authority: Authority):
        found = authority.certificate.extensions
        usage = found.get_extension_for_class(x509.KeyUsage)
        limits = found.get_extension_for_class(x509.BasicConstraints)

        assert (usage.critical, usage.value.key_cert_sign) == (True, True)
        assert usage.value.digital_signature is False
        assert (limits.critical, limits.value) == (True, x509.BasicConstraints(True, 0))

    def test_two_made_at_once_are_told_apart(self):
        now = SystemClock().now()
        one, two = Authority.create(now, YEAR), Authority.create(now, YEAR)

        made = one.issue(NAMES, now, QUARTER).certificate

        assert signed(made, one.certificate)
        assert not signed(made, two.certificate)

    def test_what_it_signs_ends_no_later_than_itself(self):
        now = SystemClock().now()
        brief = Authority.create(now, timedelta(days=1))

        assert (
            brief.issue(NAMES, now, YEAR).certificate.not_valid_after_utc
            == brief.certificate.not_valid_after_utc
        )


class TestLeaf:
    def test_it_is_a_servers_on_p_256(self, leaf: Pair):
        found = leaf.certificate.extensions
        usage = found.get_extension_for_class(x509.KeyUsage)
        purposes = found.get_extension_for_class(x509.ExtendedKeyUsage).value

        assert isinstance(leaf.key.curve, ec.SECP256R1)
        assert (usage.critical, usage.value.digital_signature) == (True, True)
        assert usage.value.key_cert_sign is False
        assert [purpose.dotted_string for purpose in purposes] == ["1.3.6.1.5.5.7.3.1"]
        assert names_of(leaf.certificate) == set(NAMES)

    def test_it_was_valid_a_little_before_it_was_made(self, authority: Authority):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        made = authority.issue(NAMES, now, timedelta(hours=1)).certificate

        assert issued(made) == now
        assert made.not_valid_before_utc == now - SKEW
        assert made.not_valid_after_utc == now + timedelta(hours=1)

    @pytest.mark.parametrize("name", NAMES[:2])
    def test_a_strict_verifier_takes_it_for_each_name(self, authority, leaf, name):
        verifier = PolicyBuilder().store(Store([authority.certificate]))
        chain = verifier.build_server_verifier(x509.DNSName(name)).verify(leaf.certificate, [])

        assert chain == [leaf.certificate, authority.certificate]

    @pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl on this machine")
    @pytest.mark.parametrize("name", NAMES)
    def test_openssl_takes_it_for_each_name(self, authority, leaf, name, tmp_path: Path):
        ca, crt = tmp_path / "ca.crt", tmp_path / "tls.crt"
        ca.write_bytes(pem([authority.certificate]))
        crt.write_bytes(pem([leaf.certificate]))
        named = "-verify_ip" if ":" in name or name[0].isdigit() else "-verify_hostname"
        checks = ["-x509_strict", "-purpose", "sslserver", named, name]

        said = subprocess.run(
            ["openssl", "verify", "-CAfile", str(ca), *checks, str(crt)],
            capture_output=True,
            check=False,
        )

        assert said.returncode == 0, said.stderr

    def test_a_certificate_without_names_has_none(self, authority: Authority):
        assert names_of(authority.certificate) == frozenset()

    def test_names_that_cannot_be_read_are_none(self, authority: Authority):
        """Whoever may write the Secret could else end the process, again and again."""
        broken = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\xff")
        made = (
            x509.CertificateBuilder()
            .subject_name(authority.certificate.subject)
            .issuer_name(authority.certificate.subject)
            .public_key(authority.key.public_key())
            .serial_number(1)
            .not_valid_before(authority.certificate.not_valid_before_utc)
            .not_valid_after(authority.certificate.not_valid_after_utc)
            .add_extension(broken, critical=False)
            .sign(authority.key, hashes.SHA256())
        )

        assert names_of(made) == frozenset()

    def test_a_private_key_is_in_no_repr(self, leaf: Pair):
        assert "key" not in repr(leaf)
        assert b"PRIVATE KEY" in key_pem(leaf.key)

    def test_python_serves_it(self, authority, leaf, tmp_path: Path):
        file = tmp_path / "both.pem"
        file.write_bytes(pem([leaf.certificate]) + key_pem(leaf.key))
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
