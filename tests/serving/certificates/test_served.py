"""Certificates: made, shared between replicas, trusted before they are served, and renewed."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from hedgerow.kube.errors import Cause, Forbidden, Invalid
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.issuing import (
    MOST,
    Authority,
    Material,
    Served,
    UnusableError,
)
from hedgerow.serving.certificates.rotation import Rules, first
from hedgerow.serving.certificates.secret import SECRET
from hedgerow.serving.certificates.served import SelfSigned
from hedgerow.serving.certificates.tls import LiveContext
from hedgerow.testing.virtual import BACKEND, EPOCH, VirtualClock
from hedgerow.x509 import key_pem, pem
from serving.certs import DAY, NAMES, RULES, Replica, Server, shown, unavailable

pytestmark = pytest.mark.anyio

Object = dict[str, Any]


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND


@pytest.fixture
def server() -> Server:
    made = Server()
    made.configure()
    return made


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as entries:
        yield entries


@asynccontextmanager
async def kept(*replicas: Any):
    """Have replicas keep their certificates as long as the test goes on."""
    async with anyio.create_task_group() as tasks:
        for one in replicas:
            await one.prepare()
            await tasks.start(one.keep)
        yield
        tasks.cancel_scope.cancel()


async def until(look: Callable[[], bool]) -> None:
    """Let time pass second by second until something is so."""
    for _ in range(10_000):
        if look():
            return
        await anyio.sleep(1)
    raise AssertionError("never")


class TestFirstStart:
    async def test_a_secret_is_made_and_trusted_by_the_configuration(self, server: Server):
        replica = Replica(server)
        assert replica.check() == "there is no certificate yet"

        await replica.prepare()

        secret = server.objects[SECRET.kind]
        assert secret["type"] == "kubernetes.io/tls"
        assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
        assert server.trusts(replica.leaf)
        assert replica.check() == ""
        assert replica.note() == "valid until 2026-01-01T13:00:00Z"
        assert shown(replica.context) == replica.leaf

    async def test_only_our_webhooks_are_touched(self, server: Server):
        await Replica(server).prepare()

        _, other = server.objects[VALIDATING.kind]["webhooks"]
        assert other == {"name": "other", "clientConfig": {"url": "x"}}

    async def test_a_second_look_writes_nothing(self, server: Server):
        replica = Replica(server)
        await replica.prepare()
        before = list(server.writes)
        await replica.prepare()

        assert server.writes == before == ["Secret", VALIDATING.kind]

    async def test_another_replica_serves_the_same(self, server: Server):
        one, two = Replica(server), Replica(server)
        await one.prepare()
        await two.prepare()

        assert one.leaf == two.leaf
        assert server.writes.count("Secret") == 1

    async def test_of_two_that_make_it_at_once_one_wins(self, server: Server):
        one, two = Replica(server), Replica(server)
        rival = first(RULES, EPOCH)

        def intrude() -> None:
            meta = {"name": "hedgerow-serving"}
            server.put("Secret", {"metadata": meta, "data": rival.wire()})

        server.races.append(intrude)
        async with kept(one, two):
            await anyio.sleep(5)

        assert one.leaf == two.leaf == rival.leaf.certificate

    async def test_without_configurations_it_is_served_and_those_that_come_later_are_found(self):
        server = Server()
        replica = Replica(server)
        async with kept(replica):
            assert replica.check() == ""
            server.configure()
            await anyio.sleep(60)

        assert server.trusts(replica.leaf)


class TestRenewing:
    async def test_each_new_certificate_is_trusted_before_anyone_serves_it(self, server: Server):
        replicas = [Replica(server), Replica(server)]
        served = set()
        async with kept(*replicas):
            for _ in range(400):
                await anyio.sleep(DAY)
                for replica in replicas:
                    assert replica.check() == ""
                    assert server.trusts(replica.leaf)
                    served.add(replica.leaf.serial_number)

        assert 8 <= len(served) <= 10
        assert len(server.material.bundle) <= 2

    async def test_a_validity_that_grows_leaves_no_time_without_a_valid_certificate(self, server):
        short = Rules(NAMES, timedelta(seconds=30))
        async with kept(Replica(server, short)):
            await anyio.sleep(45)
        replicas = Replica(server), Replica(server)
        async with kept(*replicas):
            for _ in range(600):
                await anyio.sleep(0.5)
                for replica in replicas:
                    assert replica.check() == ""
                    assert server.trusts(replica.leaf)

        assert all(r.leaf.not_valid_after_utc - EPOCH > timedelta(hours=1) for r in replicas)

    async def test_an_authority_signs_only_after_it_has_been_trusted_for_a_while(self, server):
        rules = Rules(NAMES, timedelta(seconds=600))
        replica = Replica(server, rules)
        async with kept(replica):
            await until(lambda: len(server.material.bundle) > 1)
            announced, began = server.material, VirtualClock().monotonic()
            assert announced.signer != announced.bundle[0]
            assert server.trusts(announced.leaf.certificate)
            await until(lambda: server.material.signer == announced.bundle[0])
            waited = VirtualClock().monotonic() - began

        assert 49 <= waited <= 70  # a twelfth of ten minutes, and a look

    async def test_expired_authorities_leave_every_bundle(self, server: Server):
        replica = Replica(server)
        await replica.prepare()
        old = server.material.bundle[0]
        async with kept(replica):
            await anyio.sleep(365 * DAY)

        assert old not in server.material.bundle
        assert old not in server.bundle()

    async def test_a_process_that_was_away_too_long_renews_at_once(self, server: Server):
        await Replica(server).prepare()
        await anyio.sleep(200 * DAY)
        late = Replica(server)
        async with kept(late):
            await anyio.sleep(120)

        assert late.check() == ""
        assert server.trusts(late.leaf)

    async def test_what_was_served_goes_on_while_the_server_is_away(self, server: Server, logged):
        replica = Replica(server)
        async with kept(replica):
            server.down = unavailable()
            await anyio.sleep(3 * DAY)
            assert replica.check() == ""
            assert replica.note() == "etcd is away"
            await anyio.sleep(90 * DAY)
            assert replica.check().startswith("the certificate expired at 2026-01-01T13:00:00Z")
            server.down = None
            await anyio.sleep(60)

        assert replica.check() == ""
        assert [e["event"] for e in logged if e["log_level"] == "warning"] == ["certificates"]


class TestLoss:
    async def test_a_deleted_secret_is_made_again_and_nothing_is_refused(self, server: Server):
        one, two = Replica(server), Replica(server)
        async with kept(one, two):
            before = one.leaf
            authority = server.material.bundle[0]
            del server.objects[SECRET.kind]
            await anyio.sleep(60)
            assert one.leaf == two.leaf == before
            assert authority in server.material.bundle
            assert authority != server.material.bundle[0]
            await anyio.sleep(400)

        assert one.leaf == two.leaf != before
        assert server.trusts(before)
        assert server.trusts(one.leaf)

    async def test_a_replica_without_memory_that_makes_it_again_harms_no_other(self, server):
        one = Replica(server)
        await one.prepare()
        before = one.leaf
        del server.objects[SECRET.kind]
        fresh = Replica(server)
        await fresh.prepare()
        await one.prepare()

        assert one.leaf == before
        assert server.trusts(before)
        assert server.trusts(fresh.leaf)
        async with kept(one):
            await anyio.sleep(200)
        assert one.leaf == fresh.leaf

    async def test_garbage_is_written_over_in_the_same_secret(self, server: Server):
        server.put("Secret", {"metadata": {"name": "hedgerow-serving"}, "data": {"tls.crt": "x"}})
        uid = server.objects[SECRET.kind]["metadata"]["uid"]
        replica = Replica(server)
        await replica.prepare()

        assert server.objects[SECRET.kind]["metadata"]["uid"] == uid
        assert replica.check() == ""

    async def test_a_bundle_that_was_emptied_is_filled_again(self, server: Server):
        replica = Replica(server)
        async with kept(replica):
            server.configure()
            await anyio.sleep(60)

        assert server.trusts(replica.leaf)


class TestEarlierVersions:
    """They kept the authority's key in the Secret, for whoever reads it for `ca.crt`."""

    @staticmethod
    def put(server: Server) -> Object:
        """Store what an earlier version did; give the data."""
        authority = Authority.create(EPOCH, timedelta(hours=4))
        leaf = authority.issue(NAMES, EPOCH, timedelta(hours=1))
        data = Material(leaf, (authority.certificate,)).wire()
        data["ca.key"] = b64encode(key_pem(authority.key)).decode()
        server.put("Secret", {"metadata": {"name": "hedgerow-serving"}, "data": data})
        return data

    async def test_the_authoritys_key_goes_and_what_is_served_goes_on(self, server: Server):
        data = self.put(server)
        replica = Replica(server)
        await replica.prepare()

        left = server.objects[SECRET.kind]["data"]
        assert left == {key: value for key, value in data.items() if key != "ca.key"}
        assert server.trusts(replica.leaf)
        assert replica.check() == ""

    async def test_beside_a_replica_of_an_earlier_version_there_is_always_a_trusted_one(
        self, server: Server
    ):
        """It finds no key, and makes another authority each time, which it has trusted first."""
        self.put(server)
        replica = Replica(server)
        async with kept(replica):
            for _ in range(20):
                known = server.material
                authority = Authority.create(VirtualClock().now(), timedelta(hours=4))
                bundle = (authority.certificate, *known.bundle)[:MOST]
                data = Material(known.leaf, bundle).wire()
                data["ca.key"] = b64encode(key_pem(authority.key)).decode()
                server.put("Secret", {"metadata": {"name": "hedgerow-serving"}, "data": data})
                await anyio.sleep(DAY)
                assert replica.check() == ""
                assert server.trusts(replica.leaf)
            await anyio.sleep(60)

        assert "ca.key" not in server.objects[SECRET.kind]["data"]

    async def test_a_key_that_another_holds_is_told_and_rotation_goes_on(self, server, monkeypatch):
        data = self.put(server)
        apply = server.apply

        async def kept_by_another(api: Any, body: Any, **more: Any) -> Any:
            if api is SECRET:
                body = {**body, "data": body["data"] | {"ca.key": data["ca.key"]}}
            return await apply(api, body, **more)

        monkeypatch.setattr(server, "apply", kept_by_another)
        replica = Replica(server)
        async with kept(replica):
            before = replica.leaf
            await anyio.sleep(60)
            assert server.writes.count("Secret") == 1
            assert replica.note().startswith("Secret hedgerow-system/hedgerow-serving: ca.key is")
            await anyio.sleep(100 * DAY)
            assert replica.check() == ""

        assert replica.leaf != before


class TestForeigners:
    async def test_a_secret_that_another_holds_is_told_and_left(self, server: Server, logged):
        replica = Replica(server)
        async with kept(replica):
            before = replica.leaf
            server.put(
                "Secret", {"metadata": {"name": "hedgerow-serving"}, "data": {"tls.crt": "x"}}
            )
            server.holders["Secret"] = "kubectl-edit"
            await anyio.sleep(10 * DAY)

            assert replica.leaf == before
            assert replica.check() == ""
            assert replica.note() == (
                "Secret hedgerow-system/hedgerow-serving (tls.crt is no base64):"
                " .x is held by kubectl-edit"
            )
            assert server.writes.count("Secret refused") == 1
            del server.holders["Secret"]
            server.put("Secret", server.objects["Secret"] | {"metadata": {"uid": "u"}})
            await anyio.sleep(60)
            assert replica.note().startswith("valid until")

        assert [e["event"] for e in logged if e["log_level"] == "warning"] == ["certificates"]

    async def test_without_anything_to_serve_the_reason_is_readiness(self, server: Server):
        server.put("Secret", {"metadata": {"name": "hedgerow-serving"}, "data": {}})
        server.holders["Secret"] = "kubectl-edit"
        replica = Replica(server)
        await replica.prepare()

        assert "tls.crt is missing" in replica.check()
        assert ".x is held by kubectl-edit" in replica.check()

    async def test_a_bundle_that_another_holds_is_told_and_left(self, server: Server):
        server.holders[VALIDATING.kind] = "cainjector"
        replica = Replica(server)
        async with kept(replica):
            await anyio.sleep(10 * DAY)

            assert replica.check() == (
                "ValidatingWebhookConfiguration hedgerow: .x is held by cainjector"
            )
            assert server.writes.count(f"{VALIDATING.kind} refused") == 1
            assert "caBundle" not in server.objects[VALIDATING.kind]["webhooks"][0]["clientConfig"]

    async def test_a_missing_bundle_is_told_until_it_is_there(self, server: Server):
        replica = Replica(server)
        await replica.prepare()
        server.holders[VALIDATING.kind] = "x"
        server.configure()
        replica._bundles.problem = ""
        await replica.prepare()
        replica._bundles.problem = ""

        assert replica.check() == "no caBundle with its authority is published yet"

    async def test_rights_that_lack_for_the_bundles_keep_no_certificate_away(self, server, logged):
        replica = Replica(server)
        publish = replica._bundles.publish

        async def refused(_: Any) -> None:
            raise Forbidden("not allowed", code=403)

        replica._bundles.publish = refused  # type: ignore[method-assign]
        await replica.prepare()
        assert shown(replica.context) == replica.leaf
        assert replica.note() == "not allowed"
        replica._bundles.publish = publish  # type: ignore[method-assign]
        await replica.prepare()

        assert replica.check() == ""
        assert logged[-1]["event"] == "certificates are in order again"


class TestSecrecy:
    async def test_what_a_server_says_of_a_body_is_not_repeated(self, server: Server, logged):
        causes = (Cause("data[tls.key]", "", "LS0tLS1CRUdJTi"),)
        server.down = Invalid("LS0tLS1CRUdJTi", causes=causes, code=422, request="PATCH x")
        replica = Replica(server)
        await replica.prepare()

        assert replica.check() == "PATCH x: refused with 422  data[tls.key]"
        assert "LS0t" not in str(logged)

    async def test_nothing_that_is_logged_in_a_year_holds_a_key(self, server: Server, logged):
        replica = Replica(server)
        async with kept(replica):
            await anyio.sleep(365 * DAY)

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

        assert 4 <= len(met) <= 6

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
        live, one, two = LiveContext(), first(RULES, EPOCH), first(RULES, EPOCH)
        for made in (one, two):
            live.load(Served.of(made.leaf))
            assert shown(live.context) == made.leaf.certificate

    async def test_what_does_not_belong_together_leaves_the_last_in_place(self):
        live, one, two = LiveContext(), first(RULES, EPOCH), first(RULES, EPOCH)
        live.load(Served.of(one.leaf))
        wrong = replace(Served.of(two.leaf), key=Served.of(one.leaf).key)

        with pytest.raises(UnusableError, match="cannot be used"):
            live.load(wrong)

        assert shown(live.context) == one.leaf.certificate

    def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(self, tmp_path):
        """OpenSSL asks the terminal, else standard input, and the event loop waits for it."""
        made, file = first(RULES, EPOCH).leaf, tmp_path / "both.pem"
        locked = made.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        )
        file.write_bytes(pem([made.certificate]) + locked)
        script = (
            "import sys; from datetime import *; from hedgerow.serving.certificates.tls import *\n"
            "from hedgerow.serving.certificates.issuing import Served\n"
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
        live, made = LiveContext(), first(RULES, EPOCH)
        live.load(Served.of(made.leaf))

        assert shown(live.context) == made.leaf.certificate

    async def test_no_old_protocol_is_spoken(self):
        assert LiveContext().context.minimum_version == ssl.TLSVersion.TLSv1_2

    @pytest.mark.parametrize(
        ("group", "made"), [("prime256v1", True), ("secp521r1", False), ("ffdhe8192", False)]
    )
    def test_no_client_chooses_how_long_a_handshake_takes(self, group, made, tmp_path):
        """One with ffdhe8192 takes 100 ms of the event loop."""
        live, usual = LiveContext(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf = first(RULES, EPOCH).leaf
        live.load(Served.of(leaf))
        file = tmp_path / "both.pem"
        file.write_bytes(pem([leaf.certificate]) + key_pem(leaf.key))
        usual.load_cert_chain(file)
        message = hello(group, tmp_path)

        assert is_greeted(live.context, message) == made
        assert is_greeted(usual, message)

    async def test_what_is_served_keeps_its_key_to_itself(self):
        assert "PRIVATE" not in repr(Served.of(first(RULES, EPOCH).leaf))


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
