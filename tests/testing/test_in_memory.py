"""InMemory: controllers on the cluster in memory, and its clock, people and record."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hedgerow import Apply, Contribution, Controller, Deployment, Desired, View
from hedgerow_schemas.base import ApiResource
from hedgerow_testing import InMemory, SomebodyElse, holders, target
from hedgerow_testing.audit_log import must_be_unforced_applies, shown
from library.greeter import GREETER, ConfigMap, Greeting, compose
from library.scaler import SCALER

GREETING = {
    **target("greeter.example.com/v1", "Greeting", "hello", "default"),
    "spec": {"name": "you"},
}
CHILD = target("v1", "ConfigMap", "hello", "default")


@pytest.fixture
def cluster(in_memory) -> InMemory:
    cluster = in_memory(GREETER, program="greeter")
    cluster.apply(GREETING)
    cluster.assert_settled()
    return cluster


CAPTURING = """
import logging
import pytest
from hedgerow_testing import target
from library.greeter import GREETER

@pytest.fixture(params=["capsys", "capfd", "capsysbinary", "capfdbinary", "caplog"])
def captured(request):
    return request.getfixturevalue(request.param)

@pytest.mark.parametrize("time", ["first", "second"])
def test_it(in_memory, captured, time):
    cluster = in_memory(GREETER)
    cluster.apply({**target("greeter.example.com/v1", "Greeting", "hello", "default"), "spec": {}})
    cluster.assert_settled()
    if hasattr(captured, "readouterr"):
        assert "caches are filled" in str(captured.readouterr().err)
    else:
        logging.getLogger("shop").warning("it is open")
        assert captured.messages == ["it is open"]
"""


class TestBesideCaptures:
    """What pytest captures in a test is gone in the next: nothing holds on to it."""

    def test_each_fixture_that_captures_works_in_every_test(self, tmp_path):
        (tmp_path / "test_it.py").write_text(CAPTURING, "utf-8")
        words = ("-m", "pytest", "-q", "-p", "hedgerow_testing.plugin", "-p", "no:cacheprovider")
        done = subprocess.run(
            (sys.executable, *words, "test_it.py"), cwd=tmp_path, check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

        assert "10 passed" in done.stdout, done.stdout


class TestTime:
    def test_it_passes_only_when_it_is_told_to(self, cluster):
        before = cluster.clock.now()
        cluster.pass_time(3600)

        assert cluster.clock.now() - before == timedelta(hours=1)
        later = cluster.apply({**CHILD, "metadata": {**CHILD["metadata"], "name": "later"}})
        assert later["metadata"]["creationTimestamp"] == "2026-01-01T01:02:00Z"

    def test_the_wall_clock_can_be_set_without_time_passing(self, cluster):
        monotonic = cluster.clock.monotonic()
        cluster.clock.jump(-3600)

        assert cluster.clock.monotonic() == monotonic
        assert cluster.clock.now().isoformat() == "2025-12-31T23:02:00+00:00"
        cluster.assert_no_writes(for_=600)

    def test_the_clock_of_the_cluster_is_another(self, cluster):
        cluster.clock.jump(-3600)
        cluster.server_clock.jump(60)
        later = cluster.apply({**CHILD, "metadata": {**CHILD["metadata"], "name": "later"}})

        assert later["metadata"]["creationTimestamp"] == "2026-01-01T00:03:00Z"

    def test_compose_gets_the_time_of_both(self, in_memory):
        seen = []

        def looking(_greeting, observed):
            seen.append((observed.now, observed.server_time, observed.cluster_time))
            return Desired()

        cluster = in_memory(Controller("looking", Greeting, looking, owns=(ConfigMap,)))
        cluster.clock.jump(-59)
        cluster.apply(GREETING)
        cluster.assert_settled()
        now, server, time = seen[-1]
        assert server - now == timedelta(seconds=59)
        assert time == now

        cluster.clock.jump(-2)
        cluster.apply({**GREETING, "spec": {"name": "later"}})
        cluster.assert_settled()
        now, server, time = seen[-1]
        assert server - now == timedelta(seconds=61)
        assert time == server

    def test_while_they_differ_what_is_asked_for_later_is_looked_at_each_minute(self, in_memory):
        seen = []

        def patient(_greeting, observed):
            seen.append(observed.clocks_differ)
            return Desired(requeue_after=timedelta(hours=10))

        cluster = in_memory(Controller("patient", Greeting, patient, owns=(ConfigMap,)))
        cluster.apply(GREETING)
        cluster.assert_settled()
        with capture_logs() as logs:
            cluster.server_clock.jump(150)
            cluster.pass_time(3600)
            calm = len(seen)
            assert set(seen) == {False}
            cluster.stop()
            cluster.start()
            cluster.pass_time(600)
            assert set(seen[calm:]) == {True}
            assert len(seen) - calm >= 10
            cluster.server_clock.jump(-150)
            cluster.pass_time(120)
        told = [(log["event"], log.get("seconds_ahead")) for log in logs if "clock" in log["event"]]

        assert seen[-1] is False
        assert told == [
            ("the clock differs from the API server's: one of them is wrong", -150),
            ("the clock differs from the API server's: one of them is wrong", -150),
            ("the clock is that of the API server again", None),
        ]

    def test_what_is_asked_for_later_is_done_then(self, in_memory):
        def late(greeting, observed):
            rest = greeting.metadata.creation_timestamp + timedelta(hours=2) - observed.now
            if rest > timedelta():
                return Desired(requeue_after=rest)
            return Desired((Apply(ConfigMap, "hello", {"data": {"a": "b"}}),))

        cluster = in_memory(Controller("late", Greeting, late, owns=(ConfigMap,)))
        cluster.apply(GREETING)
        cluster.assert_settled()
        cluster.pass_time(7000)
        assert cluster.get(CHILD) is None

        cluster.pass_time(400)
        assert cluster.must_get(CHILD)["data"] == {"a": "b"}


class TestTheOperator:
    def test_ends_at_once_and_begins_anew(self, cluster):
        cluster.stop()
        cluster.apply({**GREETING, "spec": {"name": "me"}})
        cluster.assert_no_writes(for_=60, user="greeter")

        cluster.start()
        cluster.assert_settled()
        assert cluster.must_get(CHILD)["data"]["text"] == "Hello me"

    def test_writes_by_unforced_applies_under_its_own_name(self, cluster):
        written = cluster.audit.writes(user="greeter")

        must_be_unforced_applies(written, "greeter-greeter")
        assert shown(written)[0] == (
            "greeter: patch /api/v1/namespaces/default/configmaps/hello"
            "?fieldManager=greeter-greeter"
        )
        assert written[0]["responseStatus"] == {"code": 201}
        assert cluster.audit.writes(user="administrator", resource="greetings")
        assert cluster.audit.refused() == []

    def test_one_that_fights_never_settles(self, in_memory):
        def restless(greeting, observed):
            return Desired(
                (Apply(ConfigMap, "hello", {"data": {"at": observed.now.isoformat()}}),),
                requeue_after=timedelta(seconds=30),
            )

        cluster = in_memory(Controller("restless", Greeting, restless, owns=(ConfigMap,)))
        cluster.apply(GREETING)

        with pytest.raises(AssertionError, match=r"not settled in 600 s; last written: .*hello"):
            cluster.assert_settled(within=600)
        with pytest.raises(AssertionError, match="written"):
            cluster.assert_no_writes(for_=60)

    def test_a_kind_that_the_cluster_does_not_know_is_an_error(self):
        class StatefulSet(View):
            api = ApiResource("apps/v1", "StatefulSet", "statefulsets")

        odd = Controller("odd", Greeting, compose, owns=(StatefulSet,))

        with pytest.raises(ValueError, match="does not know StatefulSet"):
            InMemory(odd)

    @pytest.mark.parametrize(("plural", "scope"), [("thing", "Namespaced"), ("things", "Cluster")])
    def test_a_kind_that_it_knows_otherwise_is_an_error(self, plural, scope):
        class Thing(View):
            api = ApiResource("example.com/v1", "Thing", plural)

        odd = Controller("odd", Greeting, compose, owns=(Thing,))
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}
        version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Thing", "plural": "things"}
        served = {"group": "example.com", "scope": scope, "names": names, "versions": [version]}

        with pytest.raises(ValueError, match="the cluster in memory serves ApiResource"):
            InMemory(odd, kinds=[{"spec": served}])

    def test_a_kind_can_be_given_by_its_definition(self, in_memory):
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}
        version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Thing", "plural": "things"}
        definition = {"spec": {"group": "example.com", "names": names, "versions": [version]}}
        cluster = in_memory(kinds=[definition])

        assert cluster.apply(target("example.com/v1", "Thing", "x", "default"))

    def test_a_controller_of_a_built_in_kind_runs_too(self, in_memory):
        pod = {"containers": [{"name": "c", "image": "i"}]}
        labels = {"matchLabels": {"a": "b"}}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
        web = target("apps/v1", "Deployment", "web", "default")
        web["metadata"]["annotations"] = {"scaler.example.com/replicas": "3"}
        with pytest.raises(ValueError, match="does not know HorizontalPodAutoscaler"):
            InMemory(SCALER)
        own = Contribution(Deployment, "web", {"spec": {"replicas": 3}})
        alone = Controller(
            "scaler",
            SCALER.resource,
            lambda _workload, _observed: Desired(contributions=(own,)),
            owns=(),
            built_in=SCALER.built_in,
        )
        cluster = in_memory(alone)
        cluster.apply({**web, "spec": {"selector": labels, "template": template}})
        cluster.assert_settled()

        live = cluster.must_get(web)
        assert (live["spec"]["replicas"], holders(live, "spec", "replicas")) == (
            3, ["hedgerow-scaler"]
        )  # fmt: skip
        assert cluster.roll_out(web, available=2)["status"]["availableReplicas"] == 2
        rolled = cluster.roll_out(web)["status"]
        assert rolled["conditions"][0]["status"] == "True"
        assert issubclass(Deployment, View)


class TestPeople:
    @pytest.fixture
    def other(self, cluster) -> SomebodyElse:
        return cluster.somebody_else

    def test_edit_remove_and_let_go(self, cluster, other):
        other.edit(CHILD, {"data": {"extra": "x"}})
        assert holders(cluster.must_get(CHILD), "data", "extra") == ["somebody-else"]
        assert other.must_hold(CHILD, "data", "extra") == "x"
        assert "extra" not in other.remove(CHILD, "data", "extra")["data"]

        helm = other.called("helm")
        helm.apply({**CHILD, "data": {"more": "y"}})
        assert helm.must_hold(CHILD, "data", "more") == "y"
        assert "more" not in helm.release(CHILD)["data"]
        cluster.assert_settled()
        assert cluster.must_get(CHILD)["data"] == {"text": "Hello you"}

    def test_what_is_refused_is_an_error_with_the_answer(self, other):
        with pytest.raises(AssertionError, match="FieldManagerConflict"):
            other.apply({**CHILD, "data": {"text": "Bonjour"}})
        with pytest.raises(AssertionError, match="NotFound"):
            other.delete(target("v1", "ConfigMap", "none", "default"))

    def test_a_field_that_is_taken_is_missed(self, cluster, other):
        other.edit(CHILD, {"data": {"extra": "x"}})
        other.called("kubectl-edit").edit(CHILD, {"data": {"extra": "y"}})

        with pytest.raises(AssertionError) as missed:
            other.must_hold(CHILD, "data", "extra")
        assert str(missed.value) == (
            "somebody-else set data.extra of ConfigMap/hello; kubectl-edit holds it, and it is 'y'"
        )

    def test_a_namespace_that_is_being_deleted_takes_nothing_more(self, cluster):
        cluster.open_namespace("other")
        there = target("v1", "ConfigMap", "x", "other")
        assert cluster.apply(there)
        cluster.terminate("other")

        assert cluster.kube.apply(target("v1", "ConfigMap", "y", "other"), "user").status == 403
        assert cluster.audit.refused()[-1]["user"] == {"username": "administrator"}

    def test_an_object_can_be_posted_put_and_patched(self, cluster):
        body = target("v1", "ConfigMap", "x", "default")
        assert cluster.kube.create({**body, "data": {"a": "1"}}, "curl").status == 201
        assert cluster.kube.create(body, "curl").status == 409
        live = cluster.kube.get(body).must()
        assert cluster.kube.put({**live, "data": {"a": "2"}}, "curl").must()["data"] == {"a": "2"}
        assert cluster.kube.delete(body, uid="another").status == 409
        assert cluster.kube.apply({**body, "kind": "Nothing"}, "curl").status == 404
        assert [e["verb"] for e in cluster.audit.since(user="administrator")][-5:] == [
            "create", "create", "get", "update", "delete"
        ]  # fmt: skip
