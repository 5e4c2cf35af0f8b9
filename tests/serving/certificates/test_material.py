"""Material: certificates that openssl and Python's ssl take for what they are, and no others."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

from hedgerow.runtime.clock import SystemClock
from hedgerow.serving.certificates.material import (
    MOST,
    SKEW,
    VALIDITY,
    Material,
    UnusableError,
    create,
    is_own,
    issued,
    names_of,
)
from hedgerow.x509 import Pair, key_pem, pem, subject
from hedgerow_testing.sandbox.certificates import authority, signed_by
from serving.certs import handshake

NAMES = ("hedgerow-webhook.hedgerow-system.svc", "localhost", "127.0.0.1", "::1")
QUARTER = timedelta(days=90)
USAGES = [ExtendedKeyUsageOID.SERVER_AUTH]
SINCE, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)


def made() -> Pair:
    return create(NAMES, SystemClock().now(), QUARTER)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return made()


@pytest.fixture(scope="module")
def forged(pair: Pair) -> Pair:
    """What somebody makes who has read the key from the Secret."""
    return signed_by(pair, subject("localhost"), SINCE, UNTIL, usages=USAGES, names=NAMES)


class TestPair:
    def test_it_is_a_servers_on_p_256_and_no_authority(self, pair: Pair):
        found = pair.certificate.extensions
        usage = found.get_extension_for_class(x509.KeyUsage)
        purposes = found.get_extension_for_class(x509.ExtendedKeyUsage).value
        limits = found.get_extension_for_class(x509.BasicConstraints)

        assert isinstance(pair.key.curve, ec.SECP256R1)
        assert (usage.critical, usage.value.digital_signature) == (True, True)
        assert usage.value.key_cert_sign is False
        assert (limits.critical, limits.value) == (True, x509.BasicConstraints(False, None))
        assert [purpose.dotted_string for purpose in purposes] == ["1.3.6.1.5.5.7.3.1"]
        assert names_of(pair.certificate) == set(NAMES)

    def test_it_was_valid_a_little_before_it_was_made(self):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        certificate = create(NAMES, now, timedelta(hours=1)).certificate

        assert issued(certificate) == now
        assert certificate.not_valid_before_utc == now - SKEW
        assert certificate.not_valid_after_utc == now + timedelta(hours=1)

    def test_a_private_key_is_in_no_repr(self, pair: Pair):
        assert "key" not in repr(pair)
        assert b"PRIVATE KEY" in key_pem(pair.key)

    def test_a_certificate_without_names_has_none(self):
        assert names_of(authority(subject("x"), SINCE, UNTIL).certificate) == frozenset()

    def test_names_that_cannot_be_read_are_none(self, pair: Pair):
        """Whoever may write the Secret could else end the process, again and again."""
        broken = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\xff")
        certificate = signed_with(pair, broken)

        assert names_of(certificate) == frozenset()
        assert not is_own(certificate)


def signed_with(pair: Pair, extension: x509.ExtensionType) -> x509.Certificate:
    return (
        x509.CertificateBuilder()
        .subject_name(pair.certificate.subject)
        .issuer_name(pair.certificate.subject)
        .public_key(pair.key.public_key())
        .serial_number(1)
        .not_valid_before(SINCE)
        .not_valid_after(UNTIL)
        .add_extension(extension, critical=False)
        .sign(pair.key, hashes.SHA256())
    )


class TestTrust:
    """Clients trust the certificate itself, and nothing that its key signs."""

    @pytest.mark.parametrize("strict", [False, True])
    def test_python_takes_it_among_others_and_nothing_else(self, pair, forged, strict):
        other = made()
        for trusted in ([pair], [pair, other], [other, pair]):
            assert handshake(pair, trusted, strict=strict) == ""
            assert handshake(forged, trusted, strict=strict) != ""
        assert handshake(pair, [other], strict=strict) != ""

    @pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl on this machine")
    @pytest.mark.parametrize("name", NAMES)
    def test_openssl_takes_it_for_each_name_and_nothing_that_it_signed(
        self, pair: Pair, forged: Pair, name: str, tmp_path: Path
    ):
        assert verified(pair, [made(), pair], name, tmp_path)
        assert not verified(forged, [pair], name, tmp_path)
        assert not verified(pair, [made()], name, tmp_path)

    def test_those_made_at_once_have_subjects_of_their_own(self):
        """OpenSSL looks up by its subject what it trusts, and tries only what it finds first."""
        now = SystemClock().now()
        subjects = {create(NAMES, now, QUARTER).certificate.subject for _ in range(3)}

        assert len(subjects) == 3


def verified(pair: Pair, trusted: list[Pair], name: str, place: Path) -> bool:
    """Return whether openssl, as strict as it can be, takes a certificate for a server's."""
    (place / "ca.crt").write_bytes(pem(one.certificate for one in trusted))
    (place / "tls.crt").write_bytes(pem([pair.certificate]))
    named = "-verify_ip" if ":" in name or name[0].isdigit() else "-verify_hostname"
    checks = ["-x509_strict", "-purpose", "sslserver", named, name]
    command = ["openssl", "verify", "-CAfile", str(place / "ca.crt"), *checks]
    said = subprocess.run(
        [*command, str(place / "tls.crt")], capture_output=True, text=True, check=False
    )
    assert "OK" in said.stdout or "error" in said.stderr
    return said.returncode == 0


@pytest.fixture(scope="module")
def stored(pair: Pair) -> Material:
    coming = made()
    return Material(pair, coming, (coming.certificate, pair.certificate))


class TestReading:
    def test_what_is_written_is_read(self, stored: Material):
        again = Material.from_secret(stored.wire())

        assert again.current.certificate == stored.current.certificate
        assert again.coming is not None
        assert again.coming.certificate == stored.coming.certificate
        assert again.trusted == stored.trusted
        assert again.wire() == stored.wire()

    def test_a_bundle_of_others_is_no_part_of_it(self, stored: Material):
        foreign = authority(subject("x"), SINCE, UNTIL).certificate
        both = pem([foreign, *stored.trusted])

        assert Material.from_secret(with_(stored, "ca.crt", both)).trusted == stored.trusted

    def test_a_bundle_without_end_is_cut(self, stored: Material):
        many = pem([*stored.trusted] * MOST)

        assert len(Material.from_secret(with_(stored, "ca.crt", many)).trusted) == MOST

    @pytest.mark.parametrize("name", ["next.crt", "next.key"])
    @pytest.mark.parametrize("text", [None, b"", b"x"])
    def test_without_a_whole_next_pair_there_is_none(self, stored, name, text):
        found = Material.from_secret(with_(stored, name, text))

        assert found.coming is None
        assert found.trusted == stored.trusted

    @pytest.mark.parametrize("text", [None, b"", b"x"])
    def test_without_a_bundle_what_is_served_is_known(self, stored, text):
        found = Material.from_secret(with_(stored, "ca.crt", text))

        assert found.current.certificate == stored.current.certificate
        assert found.trusted == ()

    @pytest.mark.parametrize(
        ("name", "text", "says"),
        [
            ("tls.crt", None, "tls.crt is missing"),
            ("tls.key", None, "tls.key is missing"),
            ("tls.crt", b"", "tls.crt is missing"),
            ("tls.crt", b"x", "tls.crt holds no certificate"),
            ("tls.key", b"x", "tls.key holds no private key"),
            ("tls.key", key_pem(made().key), "tls.key does not belong to its certificate"),
            ("tls.crt", b"x" * 300_000, "tls.crt is too long"),
            (
                "tls.crt",
                pem([authority(subject("x"), SINCE, UNTIL).certificate]),
                "tls.crt is not self-signed, is an authority, or lives too long",
            ),
            (
                "tls.crt",
                pem([create(NAMES, SINCE, VALIDITY + timedelta(seconds=1)).certificate]),
                "tls.crt is not self-signed, is an authority, or lives too long",
            ),
        ],
    )
    def test_what_is_unusable_is_told_without_its_values(self, stored, name, text, says):
        with pytest.raises(UnusableError, match=f"^{says}$"):
            Material.from_secret(with_(stored, name, text))

    def test_what_another_signed_is_none_of_ours(self, stored: Material, forged: Pair):
        data = with_(stored, "tls.crt", pem([forged.certificate]))
        data["tls.key"] = b64encode(key_pem(forged.key)).decode()

        with pytest.raises(UnusableError, match="not self-signed"):
            Material.from_secret(data)

    @pytest.mark.parametrize("value", ["%", 7, None, ["x"]])
    def test_a_value_that_no_server_stores_is_unusable(self, stored: Material, value: Any):
        with pytest.raises(UnusableError, match=r"tls\.crt is (no base64|missing)"):
            Material.from_secret({**stored.wire(), "tls.crt": value})

    def test_a_key_of_another_kind_is_refused(self, stored: Material):
        key = rsa.generate_private_key(65537, 2048)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

        with pytest.raises(UnusableError, match=r"^tls\.key is no ECDSA key$"):
            Material.from_secret(with_(stored, "tls.key", text))

    def test_python_serves_it(self, stored: Material, tmp_path: Path):
        file, data = tmp_path / "both.pem", stored.wire()
        file.write_bytes(b64decode(data["tls.crt"]) + b64decode(data["tls.key"]))
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)


def with_(stored: Material, name: str, text: bytes | None) -> dict[str, Any]:
    """Return a Secret's data in which one value is another, or missing."""
    data: dict[str, Any] = {**stored.wire(), name: b64encode(text or b"").decode()}
    return data if text is not None else {key: data[key] for key in data if key != name}
