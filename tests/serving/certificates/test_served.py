"""Certificates: made, shared between replicas, trusted before they are served, and renewed."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from hedgerow.kube.errors import Cause, Forbidden, Invalid
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.material import Material, Served, UnusableError, create
from hedgerow.serving.certificates.self_signed import SelfSigned
from hedgerow.serving.certificates.tls import LiveContext
from hedgerow.x509 import Pair, key_pem, pem
from hedgerow_testing.virtual import BACKEND, EPOCH, VirtualClock
from serving.certs import (
    DAY,
    HOOK,
    NAMES,
    RULES,
    URL,
    VALIDITY,
    Replica,
    Shared,
    shown,
    unavailable,
)

pytestmark = pytest.mark.anyio

Object = dict[str, Any]


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND


@pytest.fixture
def server() -> Shared:
    made = Shared()
    made.configure()
    return made


@pytest.fixture
def replica(server: Shared) -> Replica:
    return Replica(server)


HELD = f'.webhooks[name="{HOOK}"].clientConfig.caBundle is held by cainjector'
GARBAGE = b64encode(b"garbage").decode()
FOREIGN = b64encode(pem([create(("other",), EPOCH, timedelta(days=1)).certificate])).decode()


def uid_of(server: Shared) -> str:
    assert server.secret is not None
    return server.secret["metadata"]["uid"]


def pair() -> Pair:
    return create(NAMES, EPOCH, VALIDITY)


def material() -> Material:
    made = pair()
    return Material(made, None, (made.certificate,))


@asynccontextmanager
async def kept(*replicas: Any):
    """Have replicas keep their certificates as long as the test goes on."""
    async with anyio.create_task_group() as tasks:
        for one in replicas:
            await one.prepare()
            tasks.start_soon(one.keep)
        yield
        tasks.cancel_scope.cancel()


async def until(look: Callable[[], bool]) -> None:
    """Let time pass, ten seconds at once, until something is so."""
    for _ in range(1000):
        if look():
            return
        await anyio.sleep(10)
    raise AssertionError("never")


class TestFirstStart:
    async def test_a_secret_is_made_and_trusted_by_the_configuration(self, server, replica):
        assert replica.check() == "there is no certificate yet"

        await replica.prepare()

        secret = server.secret
        assert secret is not None
        assert secret["type"] == "kubernetes.io/tls"
        assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
        assert server.trusts(replica.leaf)
        assert replica.check() == ""
        assert shown(replica.context) == replica.leaf

    async def test_only_our_webhooks_are_touched(self, server):
        await Replica(server).prepare()

        assert server.hooks[1] == {"name": "other", "clientConfig": URL}

    async def test_a_second_look_writes_nothing(self, server, replica):
        await replica.prepare()
        before = server.asked("apply")
        await replica.prepare()

        assert server.asked("apply") == before == ["Secret", VALIDATING.kind]

    async def test_another_replica_serves_the_same(self, server):
        one, two = Replica(server), Replica(server)
        await one.prepare()
        await two.prepare()

        assert one.leaf == two.leaf
        assert len(server.asked("apply", "Secret")) == 1

    async def test_of_two_that_make_it_at_once_one_wins(self, server):
        one, two = Replica(server), Replica(server)
        rival = material()

        server.races.append(lambda: server.store(rival.wire()))
        async with kept(one, two):
            await anyio.sleep(5)

        assert one.leaf == two.leaf == rival.current.certificate

    async def test_without_configurations_it_is_served_and_those_that_come_later_are_found(self):
        server = Shared()
        replica = Replica(server)
        async with kept(replica):
            assert replica.check() == ""
            server.configure()
            await anyio.sleep(60)

        assert server.trusts(replica.leaf)


class TestRenewing:
    async def test_each_new_certificate_is_trusted_before_anyone_serves_it(self, server):
        replicas = [Replica(server), Replica(server)]
        served = set()
        async with kept(*replicas):
            for _ in range(200):
                await anyio.sleep(DAY)
                bundle, trusted = server.bundle(), server.material.trusted
                for replica in replicas:
                    assert replica.check() == ""
                    assert replica.leaf in bundle
                    assert replica.leaf in trusted
                    served.add(replica.leaf.serial_number)

        assert 3 <= len(served) <= 4
        assert len(server.material.trusted) <= 2
        assert len(server.bundle()) <= 2

    async def test_one_that_no_webhook_trusts_waits_until_the_former_expires(self, server, replica):
        async with kept(replica):
            first = replica.leaf
            server.pin("cainjector")
            await until(lambda: server.material.coming is not None)
            await anyio.sleep(15 * 60)
            assert replica.leaf == first
            assert replica.check() == ""
            await anyio.sleep(6 * 60)
            assert replica.leaf != first
            assert replica.check() == (f"ValidatingWebhookConfiguration hedgerow: {HELD}")

    async def test_a_replica_that_was_cut_off_serves_what_is_still_trusted(self, server):
        one, late = Replica(server), Replica(server)
        await late.prepare()
        first = late.leaf
        async with kept(one):
            await until(lambda: one.leaf != first)

        assert server.trusts(first)
        assert first in server.material.trusted
        for _ in range(2):  # the API server needs a moment
            await late.prepare()
        assert late.leaf == one.leaf

    async def test_what_was_served_goes_on_while_the_server_is_away(self, server, logged, replica):
        async with kept(replica):
            server.down = unavailable()
            await anyio.sleep(3 * DAY)
            assert replica.check() == ""
            await anyio.sleep(90 * DAY)
            assert replica.check().startswith("the certificate expired at 2026-01-01T13:00:00Z")
            server.down = None
            await anyio.sleep(60)

        assert replica.check() == ""
        assert [e["event"] for e in logged if e["log_level"] == "warning"] == ["certificates"]


class TestLoss:
    async def test_a_deleted_secret_is_made_again_with_another_next_pair(self, server):
        one, two = Replica(server), Replica(server)
        async with kept(one, two):
            before = one.leaf
            server.lose()
            await anyio.sleep(60)
            assert one.leaf == two.leaf == before == server.material.current.certificate
            assert server.material.coming is not None
            await anyio.sleep(180)

        assert one.leaf == two.leaf == server.material.current.certificate != before
        assert server.trusts(before)
        assert server.trusts(one.leaf)

    async def test_a_next_pair_that_was_lost_is_not_served(self, server, replica):
        async with kept(replica):
            await until(lambda: server.material.coming is not None)
            lost = server.material.coming
            assert lost is not None
            await anyio.sleep(40)
            server.lose()
            await anyio.sleep(300)

        assert replica.leaf != lost.certificate
        assert replica.leaf == server.material.current.certificate

    async def test_a_replica_without_memory_that_makes_it_again_harms_no_other(self, server):
        one = Replica(server)
        await one.prepare()
        before = one.leaf
        server.lose()
        fresh = Replica(server)
        await fresh.prepare()
        await one.prepare()

        assert one.leaf == before
        assert server.trusts(before)
        assert server.trusts(fresh.leaf)
        async with kept(one):
            await anyio.sleep(60)
        assert one.leaf == fresh.leaf

    async def test_garbage_is_written_over_in_the_same_secret(self, server, replica):
        server.store({"tls.crt": GARBAGE})
        uid = uid_of(server)
        await replica.prepare()

        assert uid_of(server) == uid
        assert replica.check() == ""

    async def test_a_pair_that_lives_longer_than_ours_is_replaced_and_not_trusted(
        self, server, replica
    ):
        long = create(NAMES, EPOCH, timedelta(days=3650))
        stored = Material(long, None, (long.certificate,))
        server.store(stored.wire())
        await replica.prepare()

        assert replica.leaf != long.certificate
        assert server.bundle() == list(server.material.trusted) == [replica.leaf]

    async def test_a_bundle_that_was_emptied_is_filled_again(self, server, replica):
        async with kept(replica):
            server.configure()
            await anyio.sleep(60)

        assert server.trusts(replica.leaf)


class TestForeigners:
    async def test_a_secret_that_another_holds_is_told_and_left(self, server, logged, replica):
        async with kept(replica):
            before = replica.leaf
            server.store({"tls.crt": GARBAGE}, "kubectl-edit")
            written = server.asked("apply", "Secret")
            await anyio.sleep(10 * DAY)

            assert replica.leaf == before
            assert replica.check() == ""
            assert len(server.asked("apply", "Secret")) == len(written) + 1
            server.lose()
            await anyio.sleep(60)

        (warning,) = [e["trouble"] for e in logged if e["log_level"] == "warning"]
        assert warning == (
            "Secret hedgerow-system/hedgerow-serving (tls.key is missing):"
            " .data.tls.crt is held by kubectl-edit"
        )
        assert logged[-1]["event"] == "certificates are in order again"

    async def test_without_anything_to_serve_the_reason_is_readiness(self, server, replica):
        server.store({"tls.key": GARBAGE}, "kubectl-edit")
        await replica.prepare()

        assert "tls.crt is missing" in replica.check()
        assert ".data.tls.key is held by kubectl-edit" in replica.check()

    async def test_a_bundle_that_another_holds_is_told_and_left(self, server, replica):
        server.configure("cainjector", caBundle=FOREIGN)
        async with kept(replica):
            await anyio.sleep(10 * DAY)

            assert replica.check() == (f"ValidatingWebhookConfiguration hedgerow: {HELD}")
            assert len(server.asked("apply", VALIDATING.kind)) == 1
            assert server.hooks[0]["clientConfig"] == {"caBundle": FOREIGN}

    async def test_a_missing_bundle_is_told_until_it_is_there(self, server, replica):
        await replica.prepare()
        server.configure()
        server.failing = VALIDATING.kind
        await replica.prepare()
        assert replica.check() == ""  # it was trusted at the last look
        late = Replica(server)
        await late.prepare()

        assert late.check() == "etcd is away"
        server.failing = ""
        await late.prepare()
        assert late.check() == ""

    async def test_what_fails_for_the_bundles_keeps_no_certificate_away(self, server, logged):
        replica, server.failing = Replica(server), VALIDATING.kind
        await replica.prepare()
        assert shown(replica.context) == replica.leaf
        assert replica.check() == logged[-1]["trouble"] == "etcd is away"
        server.failing = ""
        await replica.prepare()

        assert replica.check() == ""
        assert logged[-1]["event"] == "certificates are in order again"


class TestSecrecy:
    async def test_what_a_server_says_of_a_body_is_not_repeated(self, server, logged, replica):
        causes = (Cause("data[tls.key]", "", "LS0tLS1CRUdJTi"),)
        server.down = Invalid("LS0tLS1CRUdJTi", causes=causes, code=422, request="PATCH x")
        await replica.prepare()

        assert replica.check() == "PATCH x: refused with 422  data[tls.key]"
        assert "LS0t" not in str(logged)

    async def test_what_a_webhook_of_others_says_of_the_secret_is_not_repeated(
        self, server, logged, replica
    ):
        async def denied(*_: Any, **__: Any) -> None:
            status = {"reason": "Forbidden"}
            raise Forbidden("denied: LS0tLS1CRUdJTi", status=status, code=403, request="PATCH x")

        server.apply = denied  # type: ignore[method-assign]
        await replica.prepare()

        assert replica.check().startswith("PATCH x: refused with 403 Forbidden")
        assert "LS0t" not in f"{replica.check()} {logged}"

    async def test_nothing_that_is_logged_over_two_renewals_holds_a_key(self, logged, replica):
        async with kept(replica):
            for _ in range(2):
                former = replica.leaf
                await until(lambda former=former: replica.leaf != former)

        assert logged
        assert "PRIVATE" not in str(logged)
        assert all(set(entry) <= {"event", "log_level", "until"} for entry in logged)


class TestSelfSigned:
    async def test_it_is_renewed_for_as_long_as_it_runs(self):
        alone = SelfSigned(VirtualClock(), RULES)
        async with kept(alone):
            met = set()
            for day in range(200):
                await anyio.sleep(DAY)
                assert alone.check() == ""
                if day % 5 == 0:
                    met.add(shown(alone.context).serial_number)

        assert 3 <= len(met) <= 5

    async def test_one_that_is_not_valid_yet_is_told(self, monkeypatch):
        clock = VirtualClock()
        alone = SelfSigned(clock, RULES)
        await alone.prepare()
        monkeypatch.setattr(clock, "now", lambda: EPOCH - timedelta(days=1))

        assert alone.check().startswith("the certificate is not valid before 20")

    async def test_a_machine_that_slept_for_a_year_has_a_valid_one_again(self):
        alone = SelfSigned(VirtualClock(), RULES)
        await alone.prepare()
        await anyio.sleep(365 * DAY)
        assert alone.check().startswith("the certificate expired")
        await alone.prepare()

        assert alone.check() == ""


class TestLiveContext:
    async def test_a_connection_gets_what_was_loaded_last(self):
        live, one, two = LiveContext(), pair(), pair()
        for made in (one, two):
            live.load(Served.of_pair(made))
            assert shown(live.context) == made.certificate

    async def test_what_does_not_belong_together_leaves_the_last_in_place(self):
        live, one, two = LiveContext(), pair(), pair()
        live.load(Served.of_pair(one))
        assert "PRIVATE" not in repr(live.served)
        wrong = replace(Served.of_pair(two), key=Served.of_pair(one).key)

        with pytest.raises(UnusableError, match="cannot be used"):
            live.load(wrong)

        assert shown(live.context) == one.certificate

    def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(self, tmp_path):
        """OpenSSL asks the terminal, else standard input, and the event loop waits for it."""
        made, file = pair(), tmp_path / "both.pem"
        locked = made.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        )
        file.write_bytes(pem([made.certificate]) + locked)
        script = (
            "import sys; from datetime import *; from hedgerow.serving.certificates.tls import *\n"
            "from hedgerow.serving.certificates.material import Served\n"
            f"pem = open({str(file)!r}, 'rb').read()\n"
            "LiveContext().load(Served(pem, b'', datetime.now(UTC), datetime.now(UTC)))"
        )
        # Its standard input stays open, and it has no terminal to ask.
        with subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as ended:
            try:
                assert ended.wait(30) == 1
            finally:
                ended.kill()
            assert ended.stderr is not None
            assert b"cannot be used" in ended.stderr.read()

    async def test_it_works_where_files_cannot_be_in_memory(self, monkeypatch):
        monkeypatch.delattr(os, "memfd_create", raising=False)
        live, made = LiveContext(), pair()
        live.load(Served.of_pair(made))

        assert shown(live.context) == made.certificate

    async def test_no_old_protocol_is_spoken(self):
        assert LiveContext().context.minimum_version == ssl.TLSVersion.TLSv1_2

    @pytest.mark.parametrize(
        ("group", "made"), [("prime256v1", True), ("secp521r1", False), ("ffdhe8192", False)]
    )
    def test_no_client_chooses_how_long_a_handshake_takes(self, group, made, tmp_path):
        """One with ffdhe8192 takes 100 ms of the event loop."""
        live, usual = LiveContext(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf = pair()
        live.load(Served.of_pair(leaf))
        file = tmp_path / "both.pem"
        file.write_bytes(pem([leaf.certificate]) + key_pem(leaf.key))
        usual.load_cert_chain(file)
        message = hello(group, tmp_path)

        assert is_greeted(live.context, message) == made
        assert is_greeted(usual, message)


HELLO = """
import ssl, sys
client, sent = ssl.create_default_context(), ssl.MemoryBIO()
client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
try:
    client.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
except ssl.SSLWantReadError:
    sys.stdout.buffer.write(sent.read())
"""


def hello(group: str, place: Path) -> bytes:
    """Return the first message of a client that knows one way to exchange keys.

    Not every Python that is supported can be told anything but elliptic curves.
    """
    file = place / "openssl.cnf"
    file.write_text(
        f"openssl_conf=a\n[a]\nssl_conf=b\n[b]\nsystem_default=c\n[c]\nGroups={group}\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", HELLO],
        env={"OPENSSL_CONF": str(file)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    assert ended.stdout
    return ended.stdout


def is_greeted(server: ssl.SSLContext, message: bytes) -> bool:
    """Return whether a server answers the first message of a client, instead of refusing it."""
    sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
    sent.write(message)
    try:
        server.wrap_bio(sent, received, server_side=True).do_handshake()
    except ssl.SSLWantReadError:
        return True
    except ssl.SSLError:
        return False
    raise AssertionError("the handshake has more than one message")
