"""Odd objects: one object that cannot be decoded stops neither a list nor a watch.

Anyone who may write an object may give it managed fields that the API server stores and returns as
they are: nested thousands of levels deep, or with names that are no UTF-8.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from hedgerow.cli import main
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow.controllers.scaler.windows import OUT_REPLICAS, SCALE_IN, SCALE_OUT
from hedgerow.controllers.secretsync.sources import SOURCE as SOURCE_ANNOTATION
from hedgerow.controllers.secretsync.sources import TARGET_NAME, TARGET_TYPE
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.runtime.clock import SystemClock
from hedgerow_testing.api import Api
from hedgerow_testing.memory import life
from hedgerow_testing.memory.inmemory import any_claims
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running
from hedgerow_testing.waiting import eventually
from support.operator.registered import ALL
from support.operator.running import Operator
from support.programs.typed import answer

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

Object = dict[str, Any]
TENANT, NEIGHBOUR, SOURCES = "tenant", "neighbour", "secretsync"
AS_JSON = {"Content-Type": "application/json"}
POD = {"containers": [{"name": "c", "image": "example/echo:1"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
WORKLOAD = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
HOURS = {SCALE_OUT: "0 0 * * *", SCALE_IN: "59 23 * * *", OUT_REPLICAS: "7"}
EVERYTHING = ("--controllers", ",".join(ALL.names))
SPECS: dict[str, Object] = {
    "BlueGreen": {"spec": {"routeTo": "Blue", "blueSpec": POD, "greenSpec": POD}},
    "ConfigMap": {},
    "CronJob": {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": JOB}}},
    "Deployment": {"spec": WORKLOAD},
    "Guestbook": {"spec": {"size": 1, "configMapName": "words", "alias": "Name"}},
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 9,
        }
    },
    "EndpointSlice": {"addressType": "IPv4", "endpoints": []},
    "Job": {"spec": JOB},
    "Memcached": {"spec": {"size": 1}},
    "Namespace": {},
    "Pod": {"spec": POD},
    "PodDisruptionBudget": {"spec": {"selector": {"matchLabels": {"app": "a"}}}},
    "Secret": {"type": "k8s.ziwon.dev/secretsync"},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "StatefulSet": {"spec": {**WORKLOAD, "serviceName": "a"}},
}
ODD: dict[str, bytes] = {
    "deep": b'{"f:a":' * 300 + b"{}" + b"}" * 300,
    "deepest": b'{"f:a":' * 9_900 + b"{}" + b"}" * 9_900,
    "no-utf-8": b'{"f:\xff":{}}',
    "surrogate": b'{"f:\xed\xa0\x80":{}}',
    "deep-value": b'{"v:' + b"[" * 9_000 + b"]" * 9_000 + b'":{}}',
    "deep-key": b'{"k:{\\"a\\":' + b"[" * 900 + b"]" * 900 + b'}":{}}',
    "wide": b"{" + b",".join(b'"f:%d":{}' % number for number in range(20_000)) + b"}",
}
"""Managed fields as an API server stores them; the first four cannot be decoded."""
UNDECODABLE = tuple(ODD)[:4]


def manifest(api_version: str, kind: str, name: str, namespace: str, **meta: Any) -> Object:
    scope = {} if kind == "Namespace" else {"namespace": namespace}
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **scope, **meta}}
    return body | SPECS[kind]


def oddly(body: Object, fields: bytes) -> bytes:
    """Return an object with managed fields that have no place in Python's own JSON."""
    entry = {"manager": "odd", "operation": "Update", "apiVersion": body["apiVersion"]}
    meta = {**body["metadata"], "managedFields": [entry | {"fieldsType": "FieldsV1"}]}
    text = json.dumps({**body, "metadata": meta}).encode()
    return text.replace(b'"FieldsV1"', b'"FieldsV1","fieldsV1":{"f:metadata":' + fields + b"}")


class Odd:
    """A tenant who makes odd objects."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(self, body: Object, fields: bytes) -> None:
        path = self._api.path(body).rpartition("/")[0]
        answer = self._api.raw("POST", path, content=oddly(body, fields), headers=AS_JSON)
        assert answer.ok, str(answer.body)[:400]

    def spoil(self, target: Object, fields: bytes) -> None:
        """Replace the managed fields of an object that is there."""
        identity: Object = {"apiVersion": target["apiVersion"], "metadata": {}}
        headers = {"Content-Type": "application/merge-patch+json"}
        content = oddly(identity, fields)
        answer = self._api.raw("PATCH", self._api.path(target), content=content, headers=headers)
        assert answer.ok, str(answer.body)[:400]

    def of_every_kind(self, odd: str) -> None:
        """Make one of each kind that any controller watches, so that its watch selects it."""
        for number, source in enumerate(sources()):
            kind = source.api.kind
            secret = kind == "Secret" and not source.labels
            place = SOURCES if secret else TENANT
            name = f"{odd}-{kind.lower()}-{number}"
            label, _, value = source.labels.partition("=")
            labels = {label: value or "x"} if label else {}
            marks = HOURS if source.picks else {}
            body = manifest(
                source.api.group_version, kind, name, place, labels=labels, annotations=marks
            )
            self.create(body, ODD[odd])


def sources() -> list[Any]:
    """Return every watch of every controller."""
    runners = [
        life.operator(cast("Any", None), one, SystemClock(), any_claims, server_time=lambda: None)
        for one in ALL.controllers
    ]
    return [source for runner in runners for source in runner.cache]


class Neighbours:
    """Resources of each controller in a namespace of their own, that have to be served."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def must_be_served(self, name: str) -> None:
        """Create one of each, change it, and wait for what has to come of it."""
        for api_version, kind in (
            ("app.demo.kakao.com/v1", "BlueGreen"),
            ("batch.tutorial.kubebuilder.io/v1", "CronJob"),
            ("memcached.cache.example.com/v1", "Memcached"),
            ("webapp.my.domain/v1", "Guestbook"),
        ):
            body = manifest(api_version, kind, f"{kind.lower()}-{name}", NEIGHBOUR)
            if kind == "Guestbook":
                body["spec"] = {**body["spec"], "configMapName": f"words-{name}"}
            self._api.apply(body, "author").must()
        self._api.apply(
            manifest("apps/v1", "Deployment", f"web-{name}", NEIGHBOUR, annotations=HOURS), "author"
        ).must()
        self._api.apply(
            manifest("v1", "Secret", f"source-{name}", SOURCES) | {"data": {"a": "YQ=="}}, "author"
        ).must()
        flip = manifest("app.demo.kakao.com/v1", "BlueGreen", f"bluegreen-{name}", NEIGHBOUR)
        flip["spec"] = {**flip["spec"], "routeTo": "Green"}
        self._until(lambda: self._selector(name) == "blue", "routed to blue")
        self._api.apply(flip, "author").must()
        self._until(lambda: self._selector(name) == "green", "routed to green")
        self._until(lambda: self._status("CronJob", f"cronjob-{name}"), "a CronJob's status")
        self._until(lambda: self._there("Deployment", f"memcached-{name}"), "a Memcached's pods")
        self._until(lambda: self._there("ConfigMap", f"words-{name}"), "a Guestbook's words")
        self._until(lambda: self._there("Secret", f"source-{name}"), "a copy")
        self._until(lambda: self._replicas(f"web-{name}") == 7, "a scaled Deployment")

    def _until(self, fact: Callable[[], object], what: str) -> None:
        eventually(fact, 60, what)

    def _get(self, kind: str, name: str) -> Object:
        versions = {"CronJob": "batch.tutorial.kubebuilder.io/v1", "Deployment": "apps/v1"}
        target = {
            "apiVersion": versions.get(kind, "v1"),
            "kind": kind,
            "metadata": {"name": name, "namespace": NEIGHBOUR},
        }
        return self._api.get(target).body

    def _there(self, kind: str, name: str) -> bool:
        return self._get(kind, name).get("kind") == kind

    def _status(self, kind: str, name: str) -> Object | None:
        return self._get(kind, name).get("status")

    def _selector(self, name: str) -> str:
        spec: Object = self._get("Service", f"bluegreen-{name}").get("spec", {})
        return str(spec.get("selector", {}).get("app.kubernetes.io/phase", "")).lower()

    def _replicas(self, name: str) -> int:
        return self._get("Deployment", name)["spec"]["replicas"]


@pytest.fixture(scope="module")
def cluster(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An API server of its own, as others could not read their lists by ordinary means."""
    root = tmp_path_factory.mktemp("odd")
    with running(root / "cluster", Options(kubernetes=kubernetes)) as up:
        with pytest.raises(SystemExit) as ended:
            main(("install", *EVERYTHING, "--kubeconfig", str(up.kubeconfig)))
        assert not ended.value.code
        yield up


@pytest.fixture(scope="module")
def api(cluster: Sandbox) -> Iterator[Api]:
    found = Api(cluster.kubeconfig)
    for name in (TENANT, NEIGHBOUR, SOURCES):
        found.namespace(name)
        account = {"apiVersion": "v1", "kind": "ServiceAccount"}
        found.apply({**account, "metadata": {"name": "default", "namespace": name}}, "admin").must()
    yield found
    found.close()


@pytest.fixture(scope="module")
def operator(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for several tests: it lists all odd objects when it starts."""
    log = tmp_path_factory.mktemp("operator") / "log"
    with Operator(cluster.kubeconfig, log, *EVERYTHING) as running:
        yield running


class Generated:
    """Objects as odd as the API server accepts, the same ones for the same seed."""

    NAMES = (
        *(b"a", b"spec", b"metadata", b"data", b"replicas", b"", b".", b"x" * 3_000, b"[" * 500),
        *(b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\\u001b]52;c;AAAA\\u0007"),
        "é\u2028".encode(),
    )
    VALUES = (
        *(b"1" * 5_000, b"0." + b"1" * 5_000, b"1e300", b"-1", b"null", b"{}", b'\\"\xff\\"'),
        *(b"[" * 900 + b"]" * 900, b'{\\"a\\":' * 300 + b"1" + b"}" * 300),
        b'{\\"name\\":\\"c\\"}',
    )
    TEXTS = (
        *("1" * 5_000, "9" * 15_000 + "x", "[" * 20_000, '{"a":' * 900, "é" * 3_000),
        *(
            "*/*: " + "**z0," * 40,
            "Deployment/*: **",
            "0 0 30 2 *",
            "@every 1ns",
            "\x1b]52;c;QQ==\x07",
        ),
        *("", "null", "[]", '{"conditions":5}', "true", "7"),
    )
    MARKS = (
        *(YIELD, CLAIM, STATUS_ANNOTATION, SCHEDULED_AT, *HOURS),
        *(SOURCE_ANNOTATION, TARGET_NAME, TARGET_TYPE),
        "kubectl.kubernetes.io/last-applied-configuration",
    )

    def __init__(self, api: Api, seed: int) -> None:
        self._api, self._seed, self._draw = api, seed, Random(seed)  # noqa: S311 - the same each time

    def create(self, number: int) -> bool:
        """Make one object, and return whether the server took it."""
        source = self._draw.choice(sources())
        kind = source.api.kind
        label, _, value = source.labels.partition("=")
        meta = {
            "labels": {label: value or "x"} if label else {},
            "annotations": {self._draw.choice(self.MARKS): self._text() for _ in range(2)},
            "finalizers": ["odd.example/kept"] * self._draw.randrange(2),
        }
        place = SOURCES if kind == "Secret" and not label else TENANT
        name = f"odd-{self._seed}-{number}"
        body = manifest(source.api.group_version, kind, name, place, **meta)
        self._draw.choice((self._owned, self._unowned))(body)
        content = oddly(body, self._tree(4))
        path = self._api.path(body).rpartition("/")[0]
        return self._api.raw("POST", path, content=content, headers=AS_JSON).ok

    def _owned(self, body: Object) -> None:
        """Let it pretend to be a child of somebody else's resource."""
        owner = {"apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen", "name": "bluegreen-n1"}
        body["metadata"]["ownerReferences"] = [{**owner, "uid": "odd", "controller": True}]

    def _unowned(self, body: Object) -> None:
        """Leave it as it is."""

    def _text(self) -> str:
        return self._draw.choice(self.TEXTS)

    def _tree(self, levels: int) -> bytes:
        inner = b"{}" if not levels else self._tree(self._draw.randrange(levels))
        parts = [self._element() + b":" + inner for _ in range(self._draw.randrange(1, 5))]
        if self._draw.random() < 0.2:
            deep = self._draw.choice((180, 200, 1_000, 9_000))
            parts.append(b'"f:deep":' + b'{"f:a":' * deep + b"{}" + b"}" * deep)
        return b"{" + b",".join(parts) + b"}"

    def _element(self) -> bytes:
        kind = self._draw.choice((b"f", b"f", b"v", b"k", b"i"))
        text = self._draw.choice(self.NAMES if kind == b"f" else self.VALUES)
        return b'"' + kind + b":" + text + b'"'


def must_have_read_all(operator: Operator) -> None:
    for trouble in ('"pass failed"', "sent no event", "is no JSON", "object passed over"):
        assert trouble not in operator.output


def named(operator: Operator, start: str) -> bool:
    """Return whether the log names an object as one that cannot be decoded."""
    told = [line for line in operator.output.splitlines() if "object cannot be decoded" in line]
    return any(f'"object":"{start}' in line for line in told)


def test_whoever_writes_odd_objects_stops_nobody_else(
    cluster: Sandbox, api: Api, tmp_path: Path
) -> None:
    """Fact: which odd bytes a real server stores, lists and watches."""
    tenant, neighbours = Odd(api), Neighbours(api)
    first, *others = ODD
    tenant.of_every_kind(first)
    with Operator(cluster.kubeconfig, tmp_path / "log", *EVERYTHING) as operator:
        neighbours.must_be_served("n1")
        for odd in others:
            tenant.of_every_kind(odd)
        neighbours.must_be_served("n2")
        for odd in UNDECODABLE:
            eventually(lambda odd=odd: named(operator, f"{TENANT}/{odd}-service-"), 60, odd)
        operator.stop()
        operator.start()
        neighbours.must_be_served("n3")
    must_have_read_all(operator)


@pytest.mark.parametrize("seed", range(2))
def test_generated_objects_stop_nobody_else(operator: Operator, api: Api, seed: int) -> None:
    """Fact: which generated oddities a real server accepts."""
    generated = Generated(api, seed)

    taken = sum(generated.create(number) for number in range(40))

    Neighbours(api).must_be_served(f"g{seed}")
    assert taken > 20
    must_have_read_all(operator)


def test_an_odd_child_is_written_as_it_was_until_it_is_gone(operator: Operator, api: Api) -> None:
    """Fact: the server applies to a child that cannot be decoded, and answers with it."""
    tenant = Odd(api)
    body = manifest("app.demo.kakao.com/v1", "BlueGreen", "spoilt", TENANT)
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "spoilt", "namespace": TENANT},
    }
    api.apply(body, "author").must()
    eventually(lambda: api.get(service).ok, 60, "a Service")

    # Not the deepest: a patch costs the API server the square of the depth, 8 s of CPU for that.
    tenant.spoil(service, ODD["deep"])
    eventually(lambda: named(operator, f"{TENANT}/spoilt"), 60, "its name in the log")
    body["spec"] = {**body["spec"], "routeTo": "Green"}
    api.apply(body, "author").must()
    told = "Service/spoilt: cannot be decoded"
    eventually(lambda: told in json.dumps(api.get(body).body.get("status")), 60, "its reason")
    api.delete(service).must()
    eventually(lambda: api.get(service).ok, 60, "a Service again")
    eventually(lambda: told not in json.dumps(api.get(body).body["status"]), 60, "no reason")
    assert operator.running


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        (("tree", "-n", TENANT), {0, 2}),
        (("owners", "-n", TENANT, "secret/plain"), {0, 2}),
        (("owners", "-n", TENANT, "secret/shown-deepest"), {1}),
        (("owners", "-n", TENANT, "secret/shown-no-utf-8"), {1}),
        (("owners", "-n", TENANT, "secret/shown-deep-value"), {0, 2}),
        (("plan", "-n", TENANT, "-f", "-"), {1}),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_commands_read_odd_objects(
    cluster: Sandbox,
    api: Api,
    command: tuple[str, ...],
    codes: set[int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fact: the server prints odd objects to commands."""
    for odd, fields in ODD.items():
        target = manifest("v1", "Secret", f"shown-{odd}", TENANT)
        if api.get(target).status == 404:
            Odd(api).create(target, fields)
    api.apply(manifest("v1", "Secret", "plain", TENANT), "author").must()
    planned = manifest("app.demo.kakao.com/v1", "BlueGreen", "planned", TENANT)
    if api.get(planned).status == 404:
        Odd(api).create(planned, ODD["deepest"])
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(planned).encode())))
    done = answer(capsys, *command, "--kubeconfig", str(cluster.kubeconfig))
    assert done.code in codes, done.err
    assert codes != {1} or "cannot be decoded: its JSON has bytes" in done.err


def test_no_command_writes_what_it_cannot_read(
    cluster: Sandbox, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fact: the server lists an object whose bytes are no UTF-8."""
    target = manifest("v1", "ConfigMap", "written", TENANT)
    Odd(api).create(target, ODD["deep"])
    before = api.get(target).must()["metadata"]["resourceVersion"]
    words = ("adopt", "configmap/written", "--from", "odd", "--to", "me", "-n", TENANT)
    done = answer(capsys, *words, "--yes", "--kubeconfig", str(cluster.kubeconfig))
    assert done.code == 1
    assert "cannot be decoded: its JSON has bytes that are no UTF-8" in done.out
    assert api.get(target).must()["metadata"]["resourceVersion"] == before
