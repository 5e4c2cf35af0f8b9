"""A sandbox's certificates, as a TLS handshake and Kubernetes read them."""

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import NameOID

from hedgerow_testing.sandbox.certificates import KeyPair, SandboxAuthority, signing_pair

STRICT = getattr(ssl, "VERIFY_X509_STRICT", 0)


@pytest.fixture
def authority(tmp_path: Path) -> SandboxAuthority:
    return SandboxAuthority.create(tmp_path, "ca")


def handshake(
    root: Path, serving: KeyPair, *, client: KeyPair | None, name: str = "127.0.0.1"
) -> bool:
    """Return whether a server that requires certificates of `root`'s ca lets the client in."""
    accepting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=root / "ca.crt")
    accepting.load_cert_chain(serving.certificate, serving.key)
    accepting.verify_mode = ssl.CERT_REQUIRED
    calling = ssl.create_default_context(cafile=root / "ca.crt")
    calling.verify_flags |= STRICT
    if client:
        calling.load_cert_chain(client.certificate, client.key)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with (
            suppress(ssl.SSLError, OSError),
            theirs,
            accepting.wrap_socket(theirs, server_side=True) as secured,
        ):
            secured.sendall(b"in")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with ours, calling.wrap_socket(ours, server_hostname=name) as secured:
            return secured.recv(2) == b"in"
    except ssl.SSLError:
        return False
    finally:
        thread.join()


class TestAuthority:
    @pytest.mark.parametrize("name", ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default"])
    def test_server_and_client_of_one_authority_trust_each_other(
        self, tmp_path: Path, authority: SandboxAuthority, name
    ) -> None:
        serving, client = authority.serving(tmp_path, "s"), authority.client(tmp_path, "c", "me")

        assert handshake(tmp_path, serving, client=client, name=name)

    def test_no_certificate_is_let_in_nowhere(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        assert not handshake(tmp_path, authority.serving(tmp_path, "s"), client=None)

    def test_another_authority_of_the_same_sandbox_lets_nobody_in(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        foreign = SandboxAuthority.create(tmp_path, "etcd-ca").client(tmp_path, "c", "me")

        assert not handshake(tmp_path, authority.serving(tmp_path, "s"), client=foreign)

    def test_a_client_certificate_cannot_serve(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        client = authority.client(tmp_path, "c", "me")

        assert not handshake(tmp_path, client, client=client)

    def test_another_host_than_the_loopback_is_not_vouched_for(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        serving, client = authority.serving(tmp_path, "s"), authority.client(tmp_path, "c", "me")

        assert not handshake(tmp_path, serving, client=client, name="example.com")

    def test_common_name_and_organizations_are_user_and_groups(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        pair = authority.client(tmp_path, "c", "system:someone", ("a", "b"))

        subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject
        told = {a: [v.value for v in subject.get_attributes_for_oid(a)] for a in NameOIDS}
        assert told == {
            NameOID.COMMON_NAME: ["system:someone"],
            NameOID.ORGANIZATION_NAME: ["a", "b"],
        }

    def test_it_signs_the_same_after_it_was_read_back(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        again = SandboxAuthority.load(tmp_path, "ca")

        client = again.client(tmp_path, "c", "me")
        assert handshake(tmp_path, authority.serving(tmp_path, "s"), client=client)

    def test_no_file_is_readable_by_others(
        self, tmp_path: Path, authority: SandboxAuthority
    ) -> None:
        authority.serving(tmp_path, "s")
        signing_pair(tmp_path, "accounts")

        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


NameOIDS = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)


class TestSigningPair:
    def test_the_public_file_is_the_private_file_s(self, tmp_path: Path) -> None:
        pair = signing_pair(tmp_path, "accounts")

        private = load_pem_private_key(pair.key.read_bytes(), None)
        public = load_pem_public_key(pair.certificate.read_bytes())
        assert private.public_key() == public
