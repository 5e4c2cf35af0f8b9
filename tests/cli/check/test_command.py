"""`hedgerow check`, as typed: a line for each thing, and the exit code."""

from __future__ import annotations

from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from hedgerow.cli.check import state
from hedgerow.cli.install.definitions import packaged_document
from hedgerow.kube import client, kubeconfig
from hedgerow.kube.errors import Forbidden, Missing, Unreachable
from hedgerow.kube.kubeconfig import ClusterAccess
from hedgerow.kube.reviews import RULES
from hedgerow.kube.watch import Listing
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.testing.virtual import EPOCH
from hedgerow_schemas.crd import CRD, crd_name, render
from hedgerow_schemas.openapi import DOCUMENT_PATH
from support.operator.registered import RESOURCES

NAME = "bluegreens.app.demo.kakao.com"
SHARDS = "hedgerow-system/hedgerow-shard"
DENIED = Forbidden("you may not", code=403)
AWAY = Unreachable("connection refused", sent=False)


def definitions(*, describe: bool = False) -> dict[str, Any]:
    """Return the definitions as they are in a cluster, with what the API server adds."""
    made = {crd_name(r): render(r, packaged_document(), describe=describe) for r in RESOURCES}
    for crd in made.values():
        crd["spec"]["conversion"] = {"strategy": "None"}
    return made


def lease(name: str = "hedgerow", holder: str = "a_1", seconds: int = 3) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "hedgerow-system", "uid": "1"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": f"2026-01-01T11:59:{60 - seconds}.000000Z",
        },
    }


@dataclass
class Cluster:
    """What is there; `errors` are raised by what is asked of a kind, or of "rights"."""

    server = "https://there:6443"
    version: str = "v1.37.2"
    crds: dict[str, Any] = field(default_factory=definitions)
    leases: list[Any] = field(default_factory=lambda: [lease()])
    denied: set[tuple[str, str]] = field(default_factory=set)
    errors: dict[str, Exception] = field(default_factory=dict)
    served: bool = True
    asked: list[Any] = field(default_factory=list)

    def server_time(self) -> None:
        """Return None: its answers have no date."""

    async def get(self, path: str) -> Any:
        self._refuse(path)
        return {"gitVersion": self.version} if path == "/version" else packaged_document()

    async def read(self, api: Any, name: str, namespace: str = "") -> Any:
        self._refuse(f"read {api.kind}")
        if api == CRD:
            return deepcopy(self.crds.get(name))
        return next((one for one in self.leases if one["metadata"]["name"] == name), None)

    async def list(self, api: Any, namespace: str) -> Listing:
        self._refuse(f"list {api.kind}")
        self.asked.append((api, namespace))
        return Listing(tuple(self.leases), "1")

    async def resource(self, _group_version: str, _kind: str) -> None:
        if not self.served:
            raise Missing("not served")

    async def review(self, kind: str, spec: dict[str, Any], **_: Any) -> Any:
        self._refuse("rights")
        if kind == RULES:
            self.asked.append(spec["namespace"])
            every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            return {"resourceRules": [] if self.denied else [every]}
        asked = spec["resourceAttributes"]
        return {"allowed": (asked["verb"], asked["resource"]) not in self.denied}

    def _refuse(self, what: str) -> None:
        if what in self.errors:
            raise self.errors[what]


class Clock:
    def now(self):
        return EPOCH


@pytest.fixture
def cluster(monkeypatch) -> Cluster:
    made = Cluster()

    @asynccontextmanager
    async def connect(**given: Any):
        made.asked.append(given)
        yield made

    async def choose(_file: str | None, context: str | None) -> ClusterAccess:
        return ClusterAccess({}, context or "dev", "default")

    monkeypatch.setattr(client, "connect", connect)
    monkeypatch.setattr(kubeconfig, "choose", choose)
    monkeypatch.setattr(state, "SystemClock", Clock)
    return made


@pytest.fixture
def typed(cluster, typing):
    """Type `hedgerow check …`; return the exit code and the lines of output."""

    def run(*words: str) -> tuple[int, list[str]]:
        code, out, err = partial(typing, "check")(*words)
        assert err == ""
        return code, out.splitlines()

    return run


class TestAll:
    def test_where_nothing_is_missing_there_is_a_line_for_each_thing(self, typed):
        code, lines = typed()

        assert code == 0
        assert lines == [
            "✓ context: dev, https://there:6443",
            "✓ server: v1.37.2",
            *(f"✓ definition {crd_name(r)}: installed, of this version" for r in RESOURCES),
            "✓ operator: a_1 (Lease hedgerow-system/hedgerow, renewed 3s ago)",
            "✓ rights: you have all that bluegreen, cronjob, memcached need",
        ]

    def test_another_cluster_namespaces_and_controllers_are_asked_about(self, typed, cluster):
        code, lines = typed(
            "--context", "there", "-n", "a,b", "--controllers", "bluegreen",
            "--system-namespace", "own",
        )  # fmt: skip

        assert (code, len(lines)) == (0, 5)
        assert lines[0] == "✓ context: there, https://there:6443"
        assert cluster.asked[0]["context"] == "there"
        assert cluster.asked[1:] == [(LEASES, "own"), "a", "b"]

    @pytest.mark.parametrize(
        ("words", "told"),
        [(("--controllers", "nope"), "there are: bluegreen"), (("-n", "A"), "--namespace takes")],
    )
    def test_what_makes_no_sense_is_said_in_a_line(self, typing, words, told):
        code, out, err = typing("check", *words)

        assert (code, out) == (2, "")
        assert told in err


class TestServer:
    def test_one_that_is_not_supported_is_missing_something(self, typed, cluster):
        cluster.version = "v1.29.1"
        code, lines = typed()

        assert code == 1
        assert lines[1].startswith("✗ server: v1.29.1: Kubernetes 1.29 is not supported")

    def test_one_that_does_not_answer_is_told_as_by_every_command(self, typing, cluster):
        cluster.errors["/version"] = AWAY
        code, _, err = typing("check")

        assert code == 4
        assert "connection refused" in err


class TestDefinitions:
    def line(self, typed) -> tuple[int, str]:
        code, lines = typed("--controllers", "bluegreen")
        [line] = [line for line in lines if " definition " in line]
        return code, line

    def test_with_the_descriptions_that_install_adds_it_is_of_this_version(self, typed, cluster):
        cluster.crds = definitions(describe=True)

        assert self.line(typed) == (
            0,
            "✓ definition bluegreens.app.demo.kakao.com: installed, of this version",
        )

    def test_one_that_is_not_installed_names_the_remedy(self, typed, cluster):
        cluster.crds = {}

        assert self.line(typed) == (
            1,
            "✗ definition bluegreens.app.demo.kakao.com: not installed; run `hedgerow install`",
        )

    def test_one_that_lacks_a_field_is_not_of_this_version(self, typed, cluster):
        [version] = cluster.crds["bluegreens.app.demo.kakao.com"]["spec"]["versions"]
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["promotion"]

        assert self.line(typed) == (
            1,
            f"✗ definition {NAME}: installed, but not of this version; run `hedgerow install`",
        )

    @pytest.mark.parametrize(
        ("served", "expected"),
        [
            (True, (0, "✓", "served; you may not read whether it is of this version")),
            (False, (1, "✗", "not served; run `hedgerow install`")),
        ],
    )
    def test_who_may_read_none_is_told_whether_it_is_served(self, typed, cluster, served, expected):
        cluster.errors["read CustomResourceDefinition"] = DENIED
        cluster.served = served
        code, mark, found = expected

        assert self.line(typed) == (
            code,
            f"{mark} definition bluegreens.app.demo.kakao.com: {found}",
        )

    @pytest.mark.parametrize(
        ("asked", "told"),
        [
            ("read CustomResourceDefinition", "cannot be read: "),
            (DOCUMENT_PATH, "cannot be compared: "),
        ],
    )
    def test_what_cannot_be_found_out_is_no_success(self, typed, cluster, asked, told):
        cluster.crds["bluegreens.app.demo.kakao.com"]["spec"]["scope"] = "Cluster"
        cluster.errors[asked] = AWAY
        code, line = self.line(typed)

        assert code == 1
        assert told in line
        assert "connection refused" in line


class TestOperators:
    def lines(self, typed) -> tuple[int, list[str]]:
        code, lines = typed("--controllers", "bluegreen")
        return code, [line for line in lines if " operator" in line]

    def test_each_shard_has_a_line_and_leases_of_others_have_none(self, typed, cluster):
        others = [lease("hedgerow-x"), lease("hedgerow-shard-9-of-2"), lease("other")]
        shards = [lease("hedgerow-shard-0-of-2"), lease("hedgerow-shard-1-of-2", "b_2", 9)]
        cluster.leases = [*others, *shards]

        assert self.lines(typed) == (
            0,
            [
                f"✓ operator of shard 0/2: a_1 (Lease {SHARDS}-0-of-2, renewed 3s ago)",
                f"✓ operator of shard 1/2: b_2 (Lease {SHARDS}-1-of-2, renewed 9s ago)",
            ],
        )

    def test_whoever_has_not_renewed_it_in_time_is_not_told_to_run_it(self, typed, cluster):
        cluster.leases = [lease(seconds=40)]

        assert self.lines(typed) == (
            0, ["✓ operator: nobody; a_1 renewed Lease hedgerow-system/hedgerow 40s ago"],
        )  # fmt: skip

    def test_of_a_released_lease_and_of_none_nobody_is_told(self, typed, cluster):
        cluster.leases = [lease(holder="")]
        assert self.lines(typed) == (
            0, ["✓ operator: nobody; Lease hedgerow-system/hedgerow was released"],
        )  # fmt: skip
        cluster.leases = []
        assert self.lines(typed) == (
            0, ["✓ operator: no elected one: no Lease hedgerow-system/hedgerow"],
        )  # fmt: skip

    def test_without_the_right_to_list_the_one_lease_is_read(self, typed, cluster):
        cluster.errors["list Lease"] = DENIED
        assert self.lines(typed)[1][0].startswith("✓ operator: a_1 (Lease")
        cluster.leases = []
        assert self.lines(typed)[0] == 0
        cluster.errors["read Lease"] = DENIED
        code, [line] = self.lines(typed)
        assert (code, line.startswith("✗ operator: its Lease cannot be read: ")) == (1, True)

    def test_what_cannot_be_read_is_no_success(self, typed, cluster):
        cluster.errors["list Lease"] = AWAY
        code, [line] = self.lines(typed)

        assert (code, "connection refused" in line) == (1, True)


class TestRights:
    def test_each_that_lacks_is_a_line(self, typed, cluster):
        cluster.denied = {("watch", "jobs"), ("create", "services")}
        code, lines = typed("--controllers", "bluegreen,cronjob")

        assert code == 1
        assert [line for line in lines if "rights" in line] == [
            "✗ rights: you lack create services in all namespaces for bluegreen",
            "✗ rights: you lack watch jobs.batch in all namespaces for bluegreen, cronjob",
        ]

    def test_where_the_question_is_refused_that_is_no_success(self, typed, cluster):
        cluster.errors["rights"] = DENIED
        code, lines = typed()

        assert code == 1
        assert lines[-1].startswith("✗ rights: cannot be asked for: ")
