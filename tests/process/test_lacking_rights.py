"""What rights an operator lacks, what it says of them, and when it asks again."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest
from structlog.testing import capture_logs

from hedgerow.contract import Controller
from hedgerow.deploy.rights import of_controllers, of_installation, rules
from hedgerow.kube.review_requests import RULES, SELF
from hedgerow.kube.reviews import NOWHERE
from hedgerow.process.lacking_rights import (
    FIRST_ANSWER,
    LONGEST,
    SHOWN,
    RightsCheck,
    lacking_rights,
    tell_unserved,
)
from hedgerow.settings import Settings
from hedgerow_schemas.crd import crd_name
from hedgerow_testing.virtual import VirtualClock
from support.operator.registered import ALL, CONTROLLERS, REGISTRY, RESOURCES
from support.server.apiserver import Act, Answer, ApiServer, Exchange, Reply, refusal
from support.server.connected import connected

pytestmark = pytest.mark.anyio

JOBS = "watch jobs"


def lacking(*denied: str, rules: Any = None) -> ApiServer:
    """Return a server that denies these rights; by default its rules are all that is left."""
    server = ApiServer(latency=0)
    server.denied = set(denied)
    server.rules = rules
    if rules is None:
        server.rules = [
            {"verbs": [one.verb], "apiGroups": [one.group], "resources": [one.resource]}
            for one in of_controllers(ALL.controllers)
            if f"{one.verb} {one.resource}" not in denied
        ]
    return server


def reviewed(server: ApiServer) -> list[str]:
    """Return the namespaces of which the rules were asked for."""
    specs = [one.body["spec"] for one in server.exchanges if one.api.kind == RULES]
    return [spec["namespace"] for spec in specs]


def asked(server: ApiServer) -> list[dict[str, Any]]:
    """Return what was asked for one by one."""
    specs = [one.body["spec"] for one in server.exchanges if one.api.kind == SELF]
    return [spec["resourceAttributes"] for spec in specs]


async def lacks(server: ApiServer, *names: str, namespaces: tuple[str, ...] = ()) -> list[str]:
    controllers = [CONTROLLERS[name] for name in names] or REGISTRY.controllers
    found = await lacking_rights(connected(server), controllers, namespaces)
    return [str(one) for one in found]


def check(server: ApiServer, *names: str, **settings: Any) -> RightsCheck:
    controllers: list[Controller[Any]] = [CONTROLLERS[name] for name in names or ("bluegreen",)]
    return RightsCheck(connected(server), Settings(**settings), controllers, VirtualClock())


class TestLackingRights:
    async def test_where_none_lacks_one_request_a_namespace_says_so(self):
        server = lacking()

        assert await lacks(server, namespaces=("a", "b")) == []
        assert (reviewed(server), asked(server)) == (["a", "b"], [])

    async def test_those_in_all_namespaces_are_those_in_one_that_cannot_be(self):
        server = lacking()

        assert await lacks(server) == []
        assert (reviewed(server), asked(server)) == ([NOWHERE], [])

    async def test_one_that_lacks_is_named_with_the_controllers_that_need_it(self):
        assert await lacks(lacking(JOBS), "bluegreen", "cronjob", "memcached") == [
            "watch jobs.batch in all namespaces for bluegreen, cronjob"
        ]

    async def test_verbs_of_one_resource_are_named_together_in_each_namespace(self):
        denied = ("patch services", "create services")

        assert await lacks(lacking(*denied), "bluegreen", namespaces=("a", "b")) == [
            "create,patch services in namespace a for bluegreen",
            "create,patch services in namespace b for bluegreen",
        ]

    async def test_a_subresource_is_asked_for_as_such(self):
        server = lacking("patch bluegreens/status")

        assert await lacks(server, "bluegreen") == [
            "patch bluegreens/status.app.demo.kakao.com in all namespaces for bluegreen"
        ]
        assert [(one["resource"], one["subresource"]) for one in asked(server)] == [
            ("bluegreens", "status")
        ]

    async def test_what_no_rule_shows_is_asked_for_one_by_one(self):
        server = lacking(rules=[])

        assert await lacks(server, "bluegreen", namespaces=("a",)) == []
        assert {(one["verb"], one["resource"], one["namespace"]) for one in asked(server)} >= {
            ("list", "bluegreens", "a"),
            ("patch", "deployments", "a"),
        }
        assert "update" not in {one["verb"] for one in asked(server)}

    async def test_rules_that_cannot_be_read_count_for_nothing(self):
        server = lacking(rules=[{"verbs": None}])

        assert await lacks(server, "bluegreen") == []
        assert asked(server)

    @pytest.mark.parametrize("controller", ALL.controllers, ids=lambda one: one.title)
    async def test_what_the_manifests_grant_is_enough_for_each_controller(self, controller):
        server = lacking(rules=rules(of_controllers([controller])))

        assert await lacking_rights(connected(server), [controller], ()) == []
        assert asked(server) == []


def until(instant: float) -> Answer:
    """Return an answer that nobody gets before an instant."""

    async def later(_exchange: Exchange, act: Act) -> Reply:
        await anyio.sleep_until(instant)
        return act()

    return later


class TestCandidate:
    async def test_it_is_not_ready_before_it_knows(self):
        rights = check(lacking())

        assert rights.check() == "the API server has not been asked yet"
        assert rights.gives_way()

    async def test_with_all_rights_it_is_ready_and_asks_no_more(self):
        server = lacking()
        rights = check(server)
        await rights.ask_once()
        await rights.ask_until_granted()

        assert (rights.check(), rights.gives_way()) == ("", False)
        assert len(reviewed(server)) == 1

    async def test_without_one_it_says_which_and_for_whom(self):
        rights = check(lacking(JOBS), "bluegreen", "memcached")
        with capture_logs() as logs:
            await rights.ask_once()

        told = "watch jobs.batch in all namespaces for bluegreen"
        assert rights.check() == f"lacks {told}"
        assert rights.gives_way()
        [line] = logs
        assert (line["event"], line["lacking"]) == ("rights lack", told)

    @pytest.mark.parametrize(
        ("settings", "lease"),
        [({"leader_elect": True}, "hedgerow"), ({"shard": "2/8"}, "hedgerow-shard-2-of-8")],
    )
    async def test_the_rights_on_its_lease_are_among_them(self, settings, lease):
        server = lacking("patch leases", "create leases")
        rights = check(server, **settings)
        await rights.ask_once()

        assert rights.check() == (
            f"lacks create,patch leases.coordination.k8s.io/{lease} in namespace hedgerow-system"
            " for the election"
        )
        assert reviewed(server) == [NOWHERE, "hedgerow-system"]

    async def test_a_rule_for_the_lease_by_its_name_is_enough(self):
        granted = [*rules(of_controllers(ALL.controllers)), *rules(of_installation("hedgerow"))]
        server = lacking(rules=granted)
        rights = check(server, leader_elect=True)
        await rights.ask_once()

        assert (rights.check(), asked(server)) == ("", [])

    async def test_a_rule_for_the_lease_of_another_is_not(self):
        granted = [*rules(of_controllers(ALL.controllers)), *rules(of_installation("hedgerow-b"))]
        server = lacking("get leases", rules=granted)
        rights = check(server, leader_elect=True)
        await rights.ask_once()

        assert "lacks get leases.coordination.k8s.io/hedgerow in" in rights.check()
        named = [(one["resource"], one["namespace"], one["name"]) for one in asked(server)]
        assert set(named) == {("leases", "hedgerow-system", "hedgerow")}

    async def test_without_an_election_nothing_is_asked_of_it(self):
        server = lacking("patch leases")
        rights = check(server)
        await rights.ask_once()

        assert (rights.check(), reviewed(server)) == ("", [NOWHERE])

    async def test_a_right_that_is_granted_later_makes_it_ready_within_half_a_minute(self):
        server = lacking(JOBS)
        rights = check(server)
        with capture_logs() as logs:
            await rights.ask_once()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rights.ask_until_granted)
                await anyio.sleep(600)
                assert rights.check()
                assert 600 / LONGEST <= len(reviewed(server)) <= 40
                server.denied.clear()
                await anyio.sleep(LONGEST + 1)
                assert (rights.check(), rights.gives_way()) == ("", False)

        assert [line["event"] for line in logs] == ["rights lack", "no right lacks any more"]

    async def test_a_leader_is_not_made_unready_by_it_and_asks_no_more(self):
        server = lacking(JOBS)
        rights = check(server)
        await rights.ask_once()
        rights.leads()
        await rights.ask_until_granted()

        assert (rights.check(), rights.gives_way()) == ("", False)
        assert len(reviewed(server)) == 1

    async def test_nor_is_one_that_is_elected_while_it_asks(self):
        server = lacking(JOBS)
        server.answers[f"review {RULES}"] = until(2)
        rights = check(server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rights.ask_once)
            await anyio.sleep(1)
            rights.leads()

        assert rights.check() == ""

    async def test_an_answer_that_takes_long_is_not_waited_for_at_the_start(self):
        server = lacking()
        server.answers[f"review {RULES}"] = until(60)
        rights = check(server)
        await rights.ask_once()
        assert anyio.current_time() == pytest.approx(FIRST_ANSWER, abs=0.1)
        assert rights.check()
        await rights.ask_until_granted()
        assert rights.check() == ""

    async def test_an_api_server_that_does_not_answer_is_asked_again(self):
        server = lacking()
        server.answers[f"review {RULES}"] = httpx.ConnectError("connection refused")
        rights = check(server)
        await rights.ask_once()
        assert "connection refused" in rights.check()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rights.ask_until_granted)
            await anyio.sleep(10)
            server.answers.clear()

        assert rights.check() == ""

    @pytest.mark.parametrize(
        ("answer", "level"),
        [
            (refusal(403, "Forbidden", "you may not"), "warning"),
            (Reply(200, b"no review"), "warning"),
            (KeyError("resourceRules"), "error"),
        ],
        ids=["refused", "nonsense", "unforeseen"],
    )
    async def test_where_it_cannot_ask_it_says_so_once_and_goes_on(self, answer, level):
        server = lacking()
        server.answers[f"review {RULES}"] = answer
        rights = check(server)
        with capture_logs() as logs:
            await rights.ask_once()
            await rights.ask_until_granted()

        assert (rights.check(), rights.gives_way()) == ("", False)
        [line] = logs
        assert (line["event"], line["log_level"]) == ("cannot ask which rights there are", level)

    async def test_of_many_rights_the_first_ones_are_named(self):
        denied = {f"{right.verb} {right.resource}" for right in of_controllers(ALL.controllers)}
        rights = check(lacking(*denied, rules=[]), namespaces=tuple(f"team-{n}" for n in range(50)))
        await rights.ask_once()

        assert rights.check().count(" in namespace ") == SHOWN
        assert rights.check().endswith(" more")


def answering(answer: Answer) -> ApiServer:
    """Return a server that answers so what it is asked of its kinds."""
    server = ApiServer(latency=0)
    server.answers |= {f"/apis/{one.api.group_version}": answer for one in RESOURCES}
    return server


class TestServed:
    async def told(self, server: ApiServer) -> list[Any]:
        with capture_logs() as logs:
            await tell_unserved(connected(server), REGISTRY.controllers, "hedgerow")
        return logs

    async def test_where_all_are_it_says_nothing(self):
        assert await self.told(ApiServer(latency=0)) == []

    async def test_kinds_that_are_not_are_named_in_one_line_with_the_remedy(self):
        assert await self.told(answering(refusal(404, "NotFound", "not served"))) == [
            {
                "event": "kinds are not served",
                "log_level": "warning",
                "kinds": ", ".join(crd_name(resource) for resource in RESOURCES),
                "remedy": "`hedgerow install`",
            }
        ]

    @pytest.mark.parametrize(
        ("error", "level"),
        [(httpx.ConnectError("refused"), "warning"), (KeyError("namespaced"), "error")],
    )
    async def test_where_it_cannot_ask_nothing_ends(self, error, level):
        [line] = await self.told(answering(error))

        assert (line["event"], line["log_level"]) == ("cannot ask which kinds are served", level)
