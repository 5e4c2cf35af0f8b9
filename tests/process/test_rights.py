"""What rights an operator lacks, what it says of them, and when it asks again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.contract import Controller
from hedgerow.deploy.rights import of_controllers, of_installation, rules
from hedgerow.kube.errors import Forbidden, Garbled, Missing, Unreachable
from hedgerow.kube.reviews import NOWHERE, RULES, SELF
from hedgerow.process.rights import (
    FIRST_LOOK,
    LONGEST,
    SHOWN,
    RightsCheck,
    lacking_rights,
    tell_unserved,
)
from hedgerow.settings import Settings
from hedgerow.testing.virtual import BACKEND, VirtualClock
from hedgerow_schemas.crd import crd_name
from support.operator.registered import ALL, CONTROLLERS, REGISTRY, RESOURCES

pytestmark = pytest.mark.anyio

JOBS = ("watch", "jobs")


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


@dataclass
class Cluster:
    """Answers from what it was made with; `error` is raised by each review."""

    served: bool = True
    denied: set[tuple[str, str]] = field(default_factory=set)
    listed: bool = True
    error: Exception | None = None
    answers_after: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    reviewed: list[str] = field(default_factory=list)
    named: list[tuple[str, str, str]] = field(default_factory=list)

    async def resource(self, _group_version, _kind):
        if not self.served:
            raise Missing("not served")

    async def review(self, kind, spec, **_):
        await anyio.sleep(self.answers_after)
        if self.error:
            raise self.error
        if kind == RULES:
            self.reviewed.append(spec["namespace"])
            return {"resourceRules": list(self.rules()), "incomplete": not self.listed}
        assert kind == SELF
        asked = spec["resourceAttributes"]
        self.asked.append(asked)
        resource = "/".join(filter(None, (asked["resource"], asked["subresource"])))
        self.named.append((resource, asked["namespace"], asked["name"]))
        return {"allowed": (asked["verb"], resource) not in self.denied}

    def rules(self):
        if not self.listed:
            return
        for right in of_controllers(ALL.controllers):
            if (right.verb, right.resource) not in self.denied:
                yield {
                    "verbs": [right.verb],
                    "apiGroups": [right.group],
                    "resources": [right.resource],
                }


async def lacks(cluster: Cluster, *names: str, namespaces: tuple[str, ...] = ()) -> list[str]:
    controllers = [CONTROLLERS[name] for name in names] or REGISTRY.controllers
    found = await lacking_rights(cast("Any", cluster), controllers, namespaces)
    return [str(one) for one in found]


def check(cluster: Cluster, *names: str, **settings: Any) -> RightsCheck:
    controllers: list[Controller[Any]] = [CONTROLLERS[name] for name in names or ("bluegreen",)]
    return RightsCheck(cast("Any", cluster), Settings(**settings), controllers, VirtualClock())


class TestLackingRights:
    async def test_where_none_lacks_one_request_a_namespace_says_so(self):
        cluster = Cluster()

        assert await lacks(cluster, namespaces=("a", "b")) == []
        assert (cluster.reviewed, cluster.asked) == (["a", "b"], [])

    async def test_those_in_all_namespaces_are_those_in_one_that_cannot_be(self):
        cluster = Cluster()

        assert await lacks(cluster) == []
        assert (cluster.reviewed, cluster.asked) == ([NOWHERE], [])

    async def test_one_that_lacks_is_named_with_the_controllers_that_need_it(self):
        assert await lacks(Cluster(denied={JOBS}), "bluegreen", "cronjob", "memcached") == [
            "watch jobs.batch in all namespaces for bluegreen, cronjob"
        ]

    async def test_verbs_of_one_resource_are_named_together_in_each_namespace(self):
        denied = {("patch", "services"), ("create", "services")}

        assert await lacks(Cluster(denied=denied), "bluegreen", namespaces=("a", "b")) == [
            "create,patch services in namespace a for bluegreen",
            "create,patch services in namespace b for bluegreen",
        ]

    async def test_a_subresource_is_asked_for_as_such(self):
        cluster = Cluster(denied={("patch", "bluegreens/status")})

        assert await lacks(cluster, "bluegreen") == [
            "patch bluegreens/status.app.demo.kakao.com in all namespaces for bluegreen"
        ]
        assert [(one["resource"], one["subresource"]) for one in cluster.asked] == [
            ("bluegreens", "status")
        ]

    async def test_what_no_rule_shows_is_asked_for_one_by_one(self):
        cluster = Cluster(listed=False)

        assert await lacks(cluster, "bluegreen", namespaces=("a",)) == []
        assert {(one["verb"], one["resource"], one["namespace"]) for one in cluster.asked} >= {
            ("list", "bluegreens", "a"),
            ("patch", "deployments", "a"),
        }
        assert "update" not in {one["verb"] for one in cluster.asked}

    async def test_rules_that_cannot_be_read_count_for_nothing(self, monkeypatch):
        monkeypatch.setattr(Cluster, "rules", lambda _: [{"verbs": None}])
        cluster = Cluster()

        assert await lacks(cluster, "bluegreen") == []
        assert cluster.asked

    @pytest.mark.parametrize("controller", ALL.controllers, ids=lambda one: one.title)
    async def test_what_the_manifests_grant_is_enough_for_each_controller(
        self, controller, monkeypatch
    ):
        granted = rules(of_controllers([controller]))
        monkeypatch.setattr(Cluster, "rules", lambda _: granted)
        cluster = Cluster()

        assert await lacking_rights(cast("Any", cluster), [controller], ()) == []
        assert cluster.asked == []


class TestCandidate:
    async def test_it_is_not_ready_before_it_knows(self):
        rights = check(Cluster())

        assert rights.check() == "the API server has not been asked yet"
        assert rights.gives_way()

    async def test_with_all_rights_it_is_ready_and_asks_no_more(self):
        cluster = Cluster()
        rights = check(cluster)
        await rights.first_look()
        await rights.ask_until_granted()

        assert (rights.check(), rights.gives_way()) == ("", False)
        assert len(cluster.reviewed) == 1

    async def test_without_one_it_says_which_and_for_whom(self):
        rights = check(Cluster(denied={JOBS}), "bluegreen", "memcached")
        with capture_logs() as logs:
            await rights.first_look()

        lacking = "watch jobs.batch in all namespaces for bluegreen"
        assert rights.check() == f"lacks {lacking}"
        assert rights.gives_way()
        [line] = logs
        assert (line["event"], line["lacking"]) == ("rights lack", lacking)

    @pytest.mark.parametrize(
        ("settings", "lease"),
        [({"leader_elect": True}, "hedgerow"), ({"shard": "2/8"}, "hedgerow-shard-2-of-8")],
    )
    async def test_the_rights_on_its_lease_are_among_them(self, settings, lease):
        cluster = Cluster(denied={("patch", "leases"), ("create", "leases")})
        rights = check(cluster, **settings)
        await rights.first_look()

        assert rights.check() == (
            f"lacks create,patch leases.coordination.k8s.io/{lease} in namespace hedgerow-system"
            " for the election"
        )
        assert cluster.reviewed == [NOWHERE, "hedgerow-system"]

    async def test_a_rule_for_the_lease_by_its_name_is_enough(self, monkeypatch):
        granted = [*rules(of_controllers(ALL.controllers)), *rules(of_installation("hedgerow"))]
        monkeypatch.setattr(Cluster, "rules", lambda _: granted)
        cluster = Cluster()
        rights = check(cluster, leader_elect=True)
        await rights.first_look()

        assert (rights.check(), cluster.asked) == ("", [])

    async def test_a_rule_for_the_lease_of_another_is_not(self, monkeypatch):
        granted = [*rules(of_controllers(ALL.controllers)), *rules(of_installation("hedgerow-b"))]
        monkeypatch.setattr(Cluster, "rules", lambda _: granted)
        cluster = Cluster(denied={("get", "leases")})
        rights = check(cluster, leader_elect=True)
        await rights.first_look()

        assert "lacks get leases.coordination.k8s.io/hedgerow in" in rights.check()
        assert set(cluster.named) == {("leases", "hedgerow-system", "hedgerow")}

    async def test_without_an_election_nothing_is_asked_of_it(self):
        cluster = Cluster(denied={("patch", "leases")})
        rights = check(cluster)
        await rights.first_look()

        assert (rights.check(), cluster.reviewed) == ("", [NOWHERE])

    async def test_a_right_that_is_granted_later_makes_it_ready_within_half_a_minute(self):
        cluster = Cluster(denied={JOBS})
        rights = check(cluster)
        with capture_logs() as logs:
            await rights.first_look()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rights.ask_until_granted)
                await anyio.sleep(600)
                assert rights.check()
                assert 600 / LONGEST <= len(cluster.reviewed) <= 40
                cluster.denied.clear()
                await anyio.sleep(LONGEST + 1)
                assert (rights.check(), rights.gives_way()) == ("", False)

        assert [line["event"] for line in logs] == ["rights lack", "no right lacks any more"]

    async def test_a_leader_is_not_made_unready_by_it_and_asks_no_more(self):
        cluster = Cluster(denied={JOBS})
        rights = check(cluster)
        await rights.first_look()
        rights.leads()
        await rights.ask_until_granted()

        assert (rights.check(), rights.gives_way()) == ("", False)
        assert len(cluster.reviewed) == 1

    async def test_nor_is_one_that_is_elected_while_it_asks(self):
        cluster = Cluster(denied={JOBS}, answers_after=2)
        rights = check(cluster)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rights.first_look)
            await anyio.sleep(1)
            rights.leads()

        assert rights.check() == ""

    async def test_an_answer_that_takes_long_is_not_waited_for_at_the_start(self):
        cluster = Cluster(answers_after=60)
        rights = check(cluster)
        await rights.first_look()
        assert anyio.current_time() == pytest.approx(FIRST_LOOK, abs=0.1)
        assert rights.check()
        await rights.ask_until_granted()
        assert rights.check() == ""

    async def test_an_api_server_that_does_not_answer_is_asked_again(self):
        cluster = Cluster(error=Unreachable("connection refused", sent=False))
        rights = check(cluster)
        await rights.first_look()
        assert "connection refused" in rights.check()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rights.ask_until_granted)
            await anyio.sleep(10)
            cluster.error = None

        assert rights.check() == ""

    @pytest.mark.parametrize(
        ("error", "level"),
        [
            (Forbidden("you may not", code=403), "warning"),
            (Garbled("no review"), "warning"),
            (KeyError("resourceRules"), "error"),
        ],
        ids=["refused", "nonsense", "unforeseen"],
    )
    async def test_where_it_cannot_ask_it_says_so_once_and_goes_on(self, error, level):
        rights = check(Cluster(error=error))
        with capture_logs() as logs:
            await rights.first_look()
            await rights.ask_until_granted()

        assert (rights.check(), rights.gives_way()) == ("", False)
        [line] = logs
        assert (line["event"], line["log_level"]) == ("cannot ask which rights there are", level)

    async def test_of_many_rights_the_first_ones_are_named(self, monkeypatch):
        monkeypatch.setattr(Cluster, "rules", lambda _: [])
        denied = {(right.verb, right.resource) for right in of_controllers(ALL.controllers)}
        rights = check(Cluster(denied=denied), namespaces=tuple(f"team-{n}" for n in range(50)))
        await rights.first_look()

        assert rights.check().count(" in namespace ") == SHOWN
        assert rights.check().endswith(" more")


class TestServed:
    async def told(self, cluster: Cluster) -> list[Any]:
        with capture_logs() as logs:
            await tell_unserved(cast("Any", cluster), REGISTRY.controllers, "hedgerow")
        return logs

    async def test_where_all_are_it_says_nothing(self):
        assert await self.told(Cluster()) == []

    async def test_kinds_that_are_not_are_named_in_one_line_with_the_remedy(self):
        assert await self.told(Cluster(served=False)) == [
            {
                "event": "kinds are not served",
                "log_level": "warning",
                "kinds": ", ".join(crd_name(resource) for resource in RESOURCES),
                "remedy": "`hedgerow install`",
            }
        ]

    @pytest.mark.parametrize(
        ("error", "level"),
        [(Unreachable("refused", sent=False), "warning"), (KeyError("namespaced"), "error")],
    )
    async def test_where_it_cannot_ask_nothing_ends(self, monkeypatch, error, level):
        async def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(Cluster, "resource", fail)
        [line] = await self.told(Cluster())

        assert (line["event"], line["log_level"]) == ("cannot ask which kinds are served", level)
