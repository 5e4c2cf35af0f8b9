"""`hedgerow check`, as typed: a line for each thing, and the exit code."""

from __future__ import annotations

from copy import deepcopy
from functools import cache, partial
from typing import Any

import httpx
import pytest

from hedgerow.cli.install.definitions import packaged_document
from hedgerow.kube import kubeconfig
from hedgerow.kube.kubeconfig import ClusterAccess
from hedgerow.process.leaderelection.record import LEASES
from hedgerow_schemas.base import CustomResource
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.crd import CRD, crd_name, render
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.kubernetes_types import DOCUMENT_PATH
from hedgerow_schemas.memcached import Memcached
from hedgerow_testing.virtual import EPOCH
from hedgerow_tools.check import state
from support.operator.registered import RESOURCES
from support.server.apiserver import ApiServer, Reply, refusal

NAME = "memcacheds.memcached.cache.example.com"
SHARDS = "hedgerow-system/hedgerow-shard"
DENIED = refusal(403, "Forbidden", "you may not")
AWAY = httpx.ConnectError("connection refused")


def definitions(*resources: type[CustomResource], describe: bool = False) -> dict[str, Any]:
    """Return definitions as they are in a cluster, with what the API server adds."""
    return {crd_name(one): deepcopy(rendered(one, describe)) for one in resources}


@cache
def rendered(resource: type[CustomResource], describe: bool) -> dict[str, Any]:
    made = render(resource, packaged_document(), describe=describe)
    made["spec"]["conversion"] = {"strategy": "None"}
    return made


def lease(name: str = "hedgerow", holder: str = "a_1", seconds: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": LEASES.group_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": "hedgerow-system"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": f"2026-01-01T11:59:{60 - seconds}.000000Z",
        },
    }


def lay_out(server: ApiServer, *leases: Any, crds: dict[str, Any] | None = None) -> None:
    """Have these Leases and definitions, by default a small one, and no others."""
    for kind in (CRD, LEASES):
        for obj in [one for key, one in server.store.all().items() if key[1] == kind.kind]:
            server.store.drop(obj)
    for obj in (*leases, *(definitions(Memcached) if crds is None else crds).values()):
        server.store.put(obj)


class Clock:
    def now(self):
        return EPOCH


@pytest.fixture
def cluster(server, monkeypatch) -> ApiServer:
    lay_out(server, lease())
    server.answers[DOCUMENT_PATH] = Reply(200, packaged_document())

    async def choose(_file: str | None, context: str | None) -> ClusterAccess:
        return ClusterAccess({}, context or "dev", "default")

    monkeypatch.setattr(kubeconfig, "choose", choose)
    monkeypatch.setattr(state, "SystemClock", Clock)
    return server


@pytest.fixture
def typed(cluster, typing):
    """Type `hedgerow check …`; return the exit code and the lines of output."""

    def run(*words: str) -> tuple[int, list[str]]:
        code, out, err = partial(typing, "check")(*words)
        assert err == ""
        return code, out.splitlines()

    return run


class TestAll:
    def test_where_nothing_is_missing_there_is_a_line_for_each_thing(self, typed, cluster):
        lay_out(cluster, lease(), crds=definitions(*RESOURCES))
        code, lines = typed()

        assert code == 0
        assert lines == [
            "✓ context: dev, https://model.invalid",
            "✓ server: v1.37.2",
            *(f"✓ definition {crd_name(r)}: installed, of this version" for r in RESOURCES),
            "✓ operator: a_1 (Lease hedgerow-system/hedgerow, renewed 3s ago)",
            "✓ rights: you have all that bluegreen, cronjob, memcached need",
        ]

    def test_another_cluster_namespaces_and_controllers_are_asked_about(self, typed, cluster):
        code, lines = typed(
            "--context", "there", "-n", "a,b", "--controllers", "memcached",
            "--system-namespace", "own",
        )  # fmt: skip

        assert (code, len(lines)) == (0, 5)
        assert lines[0] == "✓ context: there, https://model.invalid"
        assert cluster.logins[0]["context"] == "there"
        assert cluster.asked("list") == [("Lease", "own", "")]
        reviews = [one.body["spec"] for one in cluster.exchanges if one.verb == "review"]
        assert reviews == [{"namespace": "a"}, {"namespace": "b"}]

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
        cluster.answers["/version"] = Reply(200, {"gitVersion": "v1.29.1"})
        code, lines = typed("--controllers", "memcached")

        assert code == 1
        assert lines[1].startswith("✗ server: v1.29.1: Kubernetes 1.29 is not supported")

    def test_one_that_does_not_answer_is_told_as_by_every_command(self, typing, cluster):
        cluster.answers["/version"] = AWAY
        code, _, err = typing("check")

        assert code == 4
        assert "connection refused" in err


class TestDefinitions:
    def line(self, typed) -> tuple[int, str]:
        code, lines = typed("--controllers", "memcached")
        [line] = [line for line in lines if " definition " in line]
        return code, line

    def test_with_the_descriptions_that_install_adds_it_is_of_this_version(self, typed, cluster):
        lay_out(cluster, lease(), crds=definitions(Memcached, describe=True))

        assert self.line(typed) == (
            0,
            f"✓ definition {NAME}: installed, of this version",
        )

    def test_one_that_is_not_installed_names_the_remedy(self, typed, cluster):
        lay_out(cluster, lease(), crds={})

        assert self.line(typed) == (
            1,
            f"✗ definition {NAME}: not installed; run `hedgerow install`",
        )

    def test_one_that_lacks_a_field_is_not_of_this_version(self, typed, cluster):
        crds = definitions(Memcached)
        [version] = crds[NAME]["spec"]["versions"]
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["affinity"]
        lay_out(cluster, lease(), crds=crds)

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
        cluster.answers["read CustomResourceDefinition"] = DENIED
        if not served:
            cluster.answers["/apis/memcached.cache.example.com/v1"] = refusal(
                404, "NotFound", "not served"
            )
        code, mark, found = expected

        assert self.line(typed) == (
            code,
            f"{mark} definition {NAME}: {found}",
        )

    @pytest.mark.parametrize(
        ("asked", "told"),
        [
            ("read CustomResourceDefinition", "cannot be read: "),
            (DOCUMENT_PATH, "cannot be compared: "),
        ],
    )
    def test_what_cannot_be_found_out_is_no_success(self, typed, cluster, asked, told):
        crds = definitions(Memcached)
        crds[NAME]["spec"]["scope"] = "Cluster"
        lay_out(cluster, lease(), crds=crds)
        cluster.answers[asked] = AWAY
        code, line = self.line(typed)

        assert code == 1
        assert told in line
        assert "connection refused" in line


class TestOperators:
    def lines(self, typed) -> tuple[int, list[str]]:
        code, lines = typed("--controllers", "memcached")
        return code, [line for line in lines if " operator" in line]

    def test_each_shard_has_a_line_and_leases_of_others_have_none(self, typed, cluster):
        others = [lease("hedgerow-x"), lease("hedgerow-shard-9-of-2"), lease("other")]
        shards = [lease("hedgerow-shard-0-of-2"), lease("hedgerow-shard-1-of-2", "b_2", 9)]
        lay_out(cluster, *others, *shards)

        assert self.lines(typed) == (
            0,
            [
                f"✓ operator of shard 0/2: a_1 (Lease {SHARDS}-0-of-2, renewed 3s ago)",
                f"✓ operator of shard 1/2: b_2 (Lease {SHARDS}-1-of-2, renewed 9s ago)",
            ],
        )

    def test_whoever_has_not_renewed_it_in_time_is_not_told_to_run_it(self, typed, cluster):
        lay_out(cluster, lease(seconds=40))

        assert self.lines(typed) == (
            0, ["✓ operator: nobody; a_1 renewed Lease hedgerow-system/hedgerow 40s ago"],
        )  # fmt: skip

    def test_of_a_released_lease_and_of_none_nobody_is_told(self, typed, cluster):
        lay_out(cluster, lease(holder=""))
        assert self.lines(typed) == (
            0, ["✓ operator: nobody; Lease hedgerow-system/hedgerow was released"],
        )  # fmt: skip
        lay_out(cluster)
        assert self.lines(typed) == (
            0, ["✓ operator: no elected one: no Lease hedgerow-system/hedgerow"],
        )  # fmt: skip

    def test_without_the_right_to_list_the_one_lease_is_read(self, typed, cluster):
        cluster.answers["list Lease"] = DENIED
        assert self.lines(typed)[1][0].startswith("✓ operator: a_1 (Lease")
        lay_out(cluster)
        assert self.lines(typed)[0] == 0
        cluster.answers["read Lease"] = DENIED
        code, [line] = self.lines(typed)
        assert (code, line.startswith("✗ operator: its Lease cannot be read: ")) == (1, True)

    def test_what_cannot_be_read_is_no_success(self, typed, cluster):
        cluster.answers["list Lease"] = AWAY
        code, [line] = self.lines(typed)

        assert (code, "connection refused" in line) == (1, True)


class TestRights:
    def test_each_that_lacks_is_a_line(self, typed, cluster):
        lay_out(cluster, lease(), crds=definitions(BlueGreen, CronJob))
        cluster.denied = {"watch jobs", "create services"}
        code, lines = typed("--controllers", "bluegreen,cronjob")

        assert code == 1
        assert [line for line in lines if "rights" in line] == [
            "✗ rights: you lack create services in all namespaces for bluegreen",
            "✗ rights: you lack watch jobs.batch in all namespaces for bluegreen, cronjob",
        ]

    def test_where_the_question_is_refused_that_is_no_success(self, typed, cluster):
        cluster.answers["review SelfSubjectRulesReview"] = DENIED
        code, lines = typed("--controllers", "memcached")

        assert code == 1
        assert lines[-1].startswith("✗ rights: cannot be asked for: ")
