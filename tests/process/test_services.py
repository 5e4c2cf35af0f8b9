"""What one process serves: where, by which settings, to whom, and when it says it is ready."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import anyio
import httpx
import pytest
from anyio.abc import TaskGroup

from hedgerow.process import services
from hedgerow.process.certificates import server_names
from hedgerow.process.services import Services
from hedgerow.process.stopping import Stop
from hedgerow.runtime.meters import Meters
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates.material import names_of
from hedgerow.serving.certificates.secret import SECRET
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import ListenError
from hedgerow.serving.httpserver.limits import PROBES, REVIEWS, SCRAPES
from hedgerow.serving.loop_latency import BEAT
from hedgerow.settings import Settings
from hedgerow_testing.virtual import BACKEND, VirtualClock
from serving.certs import Shared, shown, unavailable
from serving.judged import judging
from serving.serving import pair
from support.operator.registered import REGISTRY
from support.server.connected import connected

pytestmark = pytest.mark.anyio

HEALTH, METRICS, WEBHOOKS = ":8081", ":8080", ":9443"
OWN_HEALTH, OWN_METRICS, OWN_WEBHOOKS = "127.0.0.1:8081", "127.0.0.1:8080", "127.0.0.1:9443"


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


@dataclass
class Listener:
    """A server that was asked for."""

    app: Any
    tls: Any
    bounds: Any

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://operator"
        )

    async def get(self, path: str, **headers: str) -> httpx.Response:
        async with self.client() as client:
            return await client.get(path, headers=headers)


@dataclass
class Process:
    """The services of a process whose servers listen nowhere."""

    cluster: Shared = field(default_factory=Shared)
    stop: Stop = field(default_factory=lambda: Stop(20))
    listening: dict[str, Listener] = field(default_factory=dict)

    async def serve(
        self, app: Any, place: Address, *, tls: Any = None, bounds: Any, task_status: Any
    ) -> None:
        self.listening[str(place)] = Listener(app, tls, bounds)
        task_status.started(place)
        await anyio.sleep_forever()

    def services(self, settings: Settings) -> Services:
        cluster, clock = cast("Any", self.cluster), VirtualClock()
        return Services(settings, REGISTRY, cluster, clock, meters=Meters("1"), stop=self.stop)

    @asynccontextmanager
    async def started(self, **given: Any) -> AsyncGenerator[Services]:
        made = self.services(Settings(**given))
        async with anyio.create_task_group() as tasks:
            await start(made, tasks)
            yield made
            tasks.cancel_scope.cancel()

    async def ready(self, path: str = "/readyz?verbose") -> str:
        return (await self.listening[HEALTH].get(path)).text


@pytest.fixture
async def process(monkeypatch) -> Process:
    made = Process()
    monkeypatch.setattr(services, "serve", made.serve)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    return made


@pytest.fixture
def outside(process, monkeypatch) -> Process:
    """The same, in no pod."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    return process


async def start(made: Services, tasks: TaskGroup) -> None:
    """Start all servers, as a process does whose API server answers."""
    await made.answer_probes(tasks)
    await made.start(tasks)


def working(waits: str = "", refused: str = "") -> Any:
    """Return a runner that waits for something, or for nothing any more."""
    watches = SimpleNamespace(waiting=lambda: waits, refused=lambda: refused)
    return [SimpleNamespace(watches=watches)]


@dataclass(frozen=True)
class Case:
    """Settings, and which addresses are then listened on: True stands for TLS."""

    name: str
    given: dict[str, Any]
    listening: dict[str, bool]


CASES = [
    Case("by default", {}, {HEALTH: False, METRICS: False}),
    Case("metrics secure", {"metrics_secure": True}, {HEALTH: False, METRICS: True}),
    Case("webhooks", {"webhooks": True}, {HEALTH: False, METRICS: False, WEBHOOKS: True}),
    Case(
        "webhooks, metrics secure",
        {"webhooks": True, "metrics_secure": True},
        {HEALTH: False, METRICS: True, WEBHOOKS: True},
    ),
    Case("no metrics", {"metrics_bind_address": "0"}, {HEALTH: False}),
    Case("no health", {"health_probe_bind_address": "0"}, {METRICS: False}),
    Case("nothing", {"metrics_bind_address": "0", "health_probe_bind_address": "0"}, {}),
    Case(
        "elsewhere",
        {"metrics_bind_address": "[::1]:1", "health_probe_bind_address": "127.0.0.1:2"},
        {"127.0.0.1:2": False, "[::1]:1": False},
    ),
    Case(
        "webhooks elsewhere",
        {"webhooks": True, "webhook_bind_address": ":1", "metrics_bind_address": "0"},
        {HEALTH: False, ":1": True},
    ),
]


class TestAddresses:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    async def test_each_service_listens_where_the_settings_say(self, process, case: Case):
        async with process.started(**case.given):
            listening = {place: bool(one.tls) for place, one in process.listening.items()}

        assert listening == case.listening

    async def test_outside_a_cluster_only_this_machine_reaches_them(self, outside):
        async with outside.started(webhooks=True):
            assert set(outside.listening) == {OWN_HEALTH, OWN_METRICS, OWN_WEBHOOKS}

    async def test_each_address_answers_with_its_own_service_only(self, process):
        paths = {
            HEALTH: "/healthz",
            METRICS: "/metrics",
            WEBHOOKS: "/validate-batch-tutorial-kubebuilder-io-v1-cronjob",
        }
        async with process.started(webhooks=True):
            for place, listener in process.listening.items():
                codes = {path: (await listener.get(path)).status_code for path in paths.values()}
                found = [path for path, code in codes.items() if code != 404]
                assert found == [paths[place]]

    async def test_only_the_chosen_controllers_are_asked_at_admission(self, process):
        async with process.started(webhooks=True, controllers=("bluegreen",)):
            listener = process.listening[WEBHOOKS]
            there = await listener.get("/validate-app-demo-kakao-com-v1-bluegreen")
            gone = await listener.get("/validate-batch-tutorial-kubebuilder-io-v1-cronjob")

        assert (there.status_code, gone.status_code) == (405, 404)

    async def test_the_metrics_are_those_of_the_process(self, process):
        async with process.started():
            await anyio.sleep(3 * BEAT)
            told = await process.listening[METRICS].get("/metrics")

        assert 'hedgerow_build_info{version="1"} 1.0' in told.text
        assert "hedgerow_loop_lag_seconds 0.0" in told.text


class TestTaken:
    @pytest.fixture
    def anyio_backend(self) -> object:
        return "asyncio"  # a real socket, which no virtual time waits for

    @pytest.fixture
    def outside(self, monkeypatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    @pytest.fixture
    def in_pod(self, monkeypatch) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

    @pytest.mark.parametrize("option", ["--metrics-bind-address", "--health-probe-bind-address"])
    async def test_an_address_that_is_taken_ends_the_start_and_names_its_option(self, option):
        off = {"health_probe_bind_address": "0", "metrics_bind_address": "0"}
        with socket.create_server(("127.0.0.1", 0)) as taken:
            place = f"127.0.0.1:{taken.getsockname()[1]}"
            settings = Settings(**off | {option[2:].replace("-", "_"): place})
            made = Process().services(settings)
            async with anyio.create_task_group() as tasks:
                with pytest.raises(ListenError) as caught:
                    await start(made, tasks)
                tasks.cancel_scope.cancel()

        told = f"cannot listen on {place}: Address already in use; choose another with {option}"
        assert str(caught.value) == told

    async def started(self, **given: Any) -> dict[str, str]:
        """Start while the usual ports are taken: where what serves; raises ListenError."""
        with ExitStack() as stack:
            for port in (8080, 8081):
                with suppress(OSError):  # taken already: all the better
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
            made, error = Process().services(Settings(**given)), None
            async with anyio.create_task_group() as tasks:
                try:
                    await start(made, tasks)
                except ListenError as caught:
                    error = caught
                tasks.cancel_scope.cancel()
        if error:
            raise error
        return made.served

    async def test_outside_a_cluster_a_free_port_serves_where_none_was_asked_for(self, outside):
        served = await self.started()

        assert served.keys() == {"metrics", "health_probe"}
        for address in served.values():
            host, port = address.rsplit(":", 1)
            assert host == "127.0.0.1"
            assert int(port) not in {0, 8080, 8081}

    @pytest.mark.parametrize(
        ("place", "given", "option"),
        [
            ("outside", {"metrics_bind_address": "127.0.0.1:8080"}, "--metrics-bind-address"),
            ("in_pod", {}, "--health-probe"),
        ],
    )
    async def test_a_port_that_was_asked_for_is_not_exchanged_and_none_in_a_pod(
        self, request, place, given, option
    ):
        request.getfixturevalue(place)
        with pytest.raises(ListenError, match=f"in use; choose another with {option}"):
            await self.started(**given)


class TestSecureMetrics:
    @pytest.mark.parametrize(
        ("token", "code"), [("", 401), ("bad", 401), ("poor", 403), ("good", 200)]
    )
    async def test_they_are_for_whoever_the_api_server_lets_read_them(self, process, token, code):
        process.cluster = connected(judging())
        async with process.started(metrics_secure=True):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = await process.listening[METRICS].get("/metrics", **headers)

        assert answer.status_code == code

    async def test_metrics_and_webhooks_show_one_certificate_for_both_services(self, process):
        async with process.started(webhooks=True, metrics_secure=True):
            metrics, hooks = process.listening[METRICS].tls, process.listening[WEBHOOKS].tls
            assert metrics is hooks
            assert names_of(shown(metrics)) >= {
                "hedgerow-metrics.hedgerow-system.svc",
                "hedgerow-webhook.hedgerow-system.svc",
            }


class TestCertificates:
    async def test_where_nothing_is_served_over_tls_there_is_none(self, process):
        async with process.started(leader_elect=True):
            assert "certificate" not in await process.ready()

        assert process.cluster.sent == []

    async def test_a_run_of_ones_own_signs_for_itself_and_stores_nothing(self, process):
        async with process.started(metrics_secure=True):
            assert shown(process.listening[METRICS].tls)

        assert process.cluster.sent == []

    async def test_webhooks_outside_a_cluster_leave_nothing_in_it(self, outside):
        async with outside.started(webhooks=True):
            assert shown(outside.listening[OWN_WEBHOOKS].tls)

        assert outside.cluster.sent == []

    async def test_without_webhooks_replicas_share_a_secret_and_read_nothing_else(self, process):
        process.cluster.configure()
        async with process.started(metrics_secure=True, leader_elect=True, namespaces=("a",)):
            await anyio.sleep(3600)
            assert "[+]certificate ok\n" in await process.ready()

        assert {sent.api.kind for sent in process.cluster.sent} == {SECRET.kind}
        assert process.cluster.writes

    async def test_with_webhooks_the_configuration_trusts_what_is_shown(self, process):
        process.cluster.configure()
        async with process.started(webhooks=True):
            assert process.cluster.trusts(shown(process.listening[WEBHOOKS].tls))

        assert process.cluster.asked("apply") == [SECRET.kind, VALIDATING.kind]

    @pytest.mark.parametrize("years", [-5, 5])
    async def test_by_a_wrong_clock_what_is_shared_is_not_replaced(
        self, process, monkeypatch, years
    ):
        process.cluster.configure()
        right = VirtualClock.now
        process.cluster.time = right(VirtualClock())
        async with process.started(webhooks=True):
            before = process.cluster.secret
        wrong = timedelta(days=365 * years)
        monkeypatch.setattr(VirtualClock, "now", lambda clock: right(clock) + wrong)
        async with process.started(webhooks=True):
            assert process.cluster.trusts(shown(process.listening[WEBHOOKS].tls))

        assert process.cluster.secret == before

    async def test_an_installation_has_names_and_a_secret_of_its_own(self, process):
        async with process.started(
            metrics_secure=True, leader_elect=True, instance="two", system_namespace="ops"
        ):
            assert names_of(shown(process.listening[METRICS].tls)) == set(
                server_names("hedgerow-two", "ops")
            )

        [sent] = process.cluster.writes
        assert sent.manager == "hedgerow-two-certificates"
        assert str(sent) == "apply Secret ops/hedgerow-two-serving"

    async def test_services_have_the_names_that_a_cluster_gives_them(self):
        assert server_names("hedgerow-two", "ops") == (
            "hedgerow-two-webhook.ops.svc",
            "hedgerow-two-metrics.ops.svc",
            "hedgerow-two-webhook.ops.svc.cluster.local",
            "hedgerow-two-metrics.ops.svc.cluster.local",
            "localhost",
        )


class TestMounted:
    @pytest.fixture
    def anyio_backend(self) -> object:
        return "asyncio"  # files are read in threads, which no virtual time waits for

    async def test_a_directory_of_certificates_is_shown_and_none_is_made(self, process, tmp_path):
        files = pair(tmp_path)
        async with process.started(webhooks=True, certificate_directory=str(tmp_path)):
            assert shown(process.listening[WEBHOOKS].tls).subject.rfc4514_string() == "CN=tls"

        assert files.certificate.exists()
        assert process.cluster.sent == []


class TestBounds:
    async def test_each_server_has_its_own(self, process):
        async with process.started(webhooks=True):
            bounds = {place: one.bounds for place, one in process.listening.items()}

        assert bounds == {HEALTH: PROBES, METRICS: SCRAPES, WEBHOOKS: REVIEWS}


class TestReadiness:
    @pytest.mark.parametrize(
        ("runners", "code", "said"),
        [
            ([], 200, "[+]caches ok\n"),
            (working(), 200, "[+]caches ok\n"),
            (
                [*working("bluegreen waits for deployments"), *working(), *working("x")],
                503,
                "[-]caches failed: bluegreen waits for deployments; x\n",
            ),
            (
                working(refused="shop: all its watches are refused: may not"),
                503,
                "[-]watches failed: shop: all its watches are refused: may not\n",
            ),
        ],
        ids=[
            "it does not lead",
            "its caches are filled",
            "they are not",
            "its watches are refused",
        ],
    )
    async def test_a_replica_is_ready_while_it_stands_by_and_once_its_caches_are_filled(
        self, process, runners, code, said
    ):
        async with process.started() as made:
            if runners:
                made.work(runners)
            answer = await process.listening[HEALTH].get("/readyz?verbose")

        assert answer.status_code == code
        assert said in answer.text

    async def test_one_that_was_asked_to_stop_is_not_ready_and_lives(self, process):
        async with process.started() as made:
            made.work(working())
            process.stop.asked.set()
            ready = await process.listening[HEALTH].get("/readyz")
            live = await process.listening[HEALTH].get("/healthz")

        assert (ready.status_code, live.status_code) == (503, 200)
        assert "[-]shutdown failed: stopping\n" in ready.text

    async def test_one_without_a_certificate_says_what_keeps_it_away(self, process):
        process.cluster.down = unavailable()
        async with process.started(webhooks=True):
            before = await process.listening[HEALTH].get("/readyz")
            process.cluster.down = None
            await anyio.sleep(60)
            after = await process.listening[HEALTH].get("/readyz")

        assert before.status_code == 503
        assert "[-]certificate failed: etcd is away\n" in before.text
        assert (after.status_code, after.text) == (200, "ok")


class TestLiveness:
    async def test_it_lives_while_the_loop_turns(self, process):
        async with process.started():
            await anyio.sleep(3600)
            answer = await process.listening[HEALTH].get("/healthz?verbose")

        assert answer.status_code == 200
        assert "[+]loop ok\n" in answer.text


class TestParting:
    async def test_reviews_end_their_connections_once_the_process_is_asked_to_stop(self, process):
        async with process.started(webhooks=True) as made:
            process.stop.asked.set()
            answer = await process.listening[WEBHOOKS].get("/")
            begun = anyio.current_time()
            await made.parted()

        assert answer.headers["Connection"] == "close"
        assert anyio.current_time() - begun == pytest.approx(1)

    async def test_without_webhooks_nobody_is_waited_for(self, process):
        async with process.started() as made:
            begun = anyio.current_time()
            await made.parted()

        assert anyio.current_time() == begun
