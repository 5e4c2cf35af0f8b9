"""What the author of a controller can get wrong: each is one sentence, and stops nothing else."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import count, pairwise
from typing import Any, ClassVar, cast

import pytest
import structlog
from prometheus_client import REGISTRY, Counter, generate_latest

from hedgerow import (
    KEEP_ALL,
    ApiResource,
    Apply,
    Contribution,
    Controller,
    Copy,
    Create,
    CustomResource,
    Desired,
    Keep,
    Model,
    Notice,
    Observed,
    Relation,
    Secret,
    SourceNotice,
    Status,
    View,
    ready,
)
from hedgerow.contract import Answers
from hedgerow.deploy import confinement
from hedgerow.deploy.names import Names
from hedgerow.plan.declaration import DeclarationError
from hedgerow.registry import Registry
from hedgerow.runtime.meters import Meters
from hedgerow_testing import InMemory, target
from hedgerow_testing.purity import NotPureError, difference
from library.greeter import GREETER, ConfigMap, GreetingStatus
from support.objects.parts import Part

API = "greeter.example.com/v1"
HELLO = target(API, "Greeting", "hello", "default")
NOT_OF_MODEL = "a GreetingStatus with a value that its model does not take"
WITHOUT_A_NAME = "compose returned a ConfigMap without a name"
CHILD = target("v1", "ConfigMap", "hello", "default")


def returning(desired: Any) -> Any:
    return lambda _greeting, _observed: desired


def child(name: str = "hello", **fields: Any) -> Apply:
    return Apply(ConfigMap, name, fields or {"data": {"a": "b"}})


def greeting(in_memory: Any, compose: Any, **more: Any) -> InMemory:
    cluster = in_memory(replace(GREETER, compose=compose, **more), program="greeter")
    cluster.apply(HELLO | {"spec": {"name": "you"}})
    return cluster


def conditions(cluster: InMemory, of: Any = HELLO) -> dict[str, tuple[str, str, str]]:
    return {
        one["type"]: (one["status"], one["reason"], one["message"])
        for one in cluster.must_get(of)["status"]["conditions"]
    }


def writes(cluster: InMemory, seconds: float, kind: str) -> int:
    mark = cluster.audit.mark()
    cluster.pass_time(seconds)
    return sum(entry["objectRef"]["resource"] == kind for entry in cluster.audit.writes(mark))


SECRET = "hunter2"


def raising(*_: Any) -> Desired:
    raise LookupError(SECRET)


class TestTime:
    """`observed.now` is the same throughout a pass, so that a pass with a time in it ends."""

    def test_a_child_with_the_time_in_it_is_written_once_in_a_pass(self, in_memory):
        def compose(_: Any, observed: Observed) -> Desired:
            return Desired((child(data={"at": observed.now.isoformat()}),))

        cluster = greeting(in_memory, compose)
        assert writes(cluster, 3600, "configmaps") <= 2
        cluster.assert_settled()

    def test_and_a_status_too(self, in_memory):
        def compose(_: Any, observed: Observed) -> Desired:
            return Desired(status=GreetingStatus(text=observed.now.isoformat()))

        cluster = greeting(in_memory, compose)
        assert writes(cluster, 3600, "greetings") <= 2
        cluster.assert_settled()

    def test_what_is_asked_for_is_timed_from_the_beginning_of_the_pass(self, in_memory):
        seen: list[datetime] = []

        def compose(_: Any, observed: Observed) -> Desired:
            seen.append(observed.now)
            return Desired((child(),), requeue_after=timedelta(seconds=10))

        cluster = greeting(in_memory, compose)
        cluster.pass_time(35)
        passes = sorted(set(seen))
        gaps = {later - before for before, later in pairwise(passes[1:])}
        assert gaps == {timedelta(seconds=10)}


class TestNotPure:
    """A test in memory finds what is not pure at the first look; a cluster is spared by bounds."""

    def test_a_child_that_is_another_each_time_fails_a_test(self, in_memory):
        numbers = count()

        def compose(*_: Any) -> Desired:
            return Desired((child(data={"a": str(next(numbers))}),))

        cluster = greeting(in_memory, compose)
        assert writes(cluster, 3600, "configmaps") == 0
        with pytest.raises(NotPureError, match=r"another ConfigMap/hello \.data\.a"):
            cluster.assert_settled()

    def test_and_so_does_a_status(self, in_memory):
        numbers = count()

        def compose(*_: Any) -> Desired:
            return Desired(status=GreetingStatus(text=str(next(numbers))))

        cluster = greeting(in_memory, compose)
        with pytest.raises(NotPureError, match=r"status\.text"):
            cluster.assert_settled()

    @pytest.mark.parametrize(
        ("second", "error"), [(raising, LookupError), (lambda: None, DeclarationError)]
    )
    def test_and_what_fails_the_second_time(self, in_memory, second, error):
        calls = count()

        def compose(*_: Any) -> Any:
            return second() if next(calls) % 2 else Desired((child(),))

        cluster = greeting(in_memory, compose)
        with pytest.raises(error):
            cluster.assert_settled()

    def test_it_ends_with_the_defect(self, in_memory):
        numbers, is_mended = count(), []

        def compose(*_: Any) -> Desired:
            return Desired((child(data={"a": "b" if is_mended else str(next(numbers))}),))

        cluster = greeting(in_memory, compose)
        cluster.pass_time(60)
        is_mended.append(True)
        cluster.pass_time(3600)

        cluster.assert_settled()
        assert set(conditions(cluster)) == {"Ready"}
        assert cluster.must_get(CHILD)["data"] == {"a": "b"}

    def test_whoever_asks_again_at_once_for_ever_has_a_pass_a_second(self, in_memory):
        seen = set[datetime]()

        def compose(_: Any, observed: Observed) -> Desired:
            seen.add(observed.now)
            return Desired((child(),), requeue_after=timedelta())

        cluster = greeting(in_memory, compose)
        cluster.assert_settled()

        assert 60 <= len(seen) <= 123
        assert set(conditions(cluster)) == {"Ready"}

    def test_a_child_that_depends_on_itself_is_slowed_down_after_64_writes(self, in_memory):
        def compose(_: Any, observed: Observed) -> Desired:
            live = observed.child(ConfigMap, "hello")
            last = int(live.raw["data"]["a"]) if live else 0
            return Desired((child(data={"a": str(last + 1)}),))

        cluster = greeting(in_memory, compose)

        assert 64 < writes(cluster, 300, "configmaps") <= 64 + 300 / 9
        assert conditions(cluster)["Stalled"][1] == "NotSettling"

    def test_a_pass_that_would_not_end_is_cut_and_goes_on_after_a_backoff(self, in_memory):
        def compose(_: Any, observed: Observed) -> Desired:
            last = max((int(one.name[6:]) for one in observed.all(ConfigMap)), default=0)
            return Desired((child(f"hello-{last + 1}"),))

        cluster = greeting(in_memory, compose, child_names={ConfigMap: ("{}-*",)})

        assert 100 < writes(cluster, 0.01, "configmaps") <= 2 * 128
        assert writes(cluster, 0.05, "configmaps") == 0

    @pytest.mark.parametrize(
        ("one", "other", "path"),
        [
            (Desired(), Desired(), ""),
            (Desired(requeue_after=timedelta(1)), Desired(), "requeue_after"),
            (Desired((child(),)), Desired(), "ConfigMap/hello"),
            (Desired((child(),)), Desired((child(data={}),)), "ConfigMap/hello .data.a"),
            (
                Desired((child(x=[{"y": 1}, {"y": 2}]),)),
                Desired((child(x=[{"y": 1}, {"y": 3}]),)),
                "ConfigMap/hello .x.1.y",
            ),
            (
                Desired(status=Status(conditions=(ready(True, "A", "x"),))),
                Desired(status=Status(conditions=(ready(True, "A", "y"),))),
                "status.conditions.0.message",
            ),
        ],
    )
    def test_the_path_is_the_first_that_differs(self, one, other, path):
        assert difference(one, other) == path


class OtherConfigMap(View):
    """A ConfigMap, by another class than the one that is owned."""

    api: ClassVar[ApiResource] = ApiResource("v1", "ConfigMap", "configmaps")


class OtherStatus(Status):
    """A status of another resource."""

    count: int = 5


class BareView(View):
    """A child whose author forgot its `api`."""


class Word(StrEnum):
    HELLO = "hello"


def endless() -> dict[str, Any]:
    """Return a map that is in itself."""
    found: dict[str, Any] = {}
    found["a"] = found
    return found


WRONG: list[tuple[Any, str]] = [
    (None, "compose returned NoneType, not Desired"),
    (Desired((child(), child())), "compose returned ConfigMap/hello twice"),
    (Desired((Keep(ConfigMap, cast("str", None)),)),
     "compose returned NoneType as `children[0].name`, not str"),
    (Desired((Keep(ConfigMap, ""),)), WITHOUT_A_NAME),
    (Desired(contributions=(Contribution(ConfigMap, "", {}),)), WITHOUT_A_NAME),
    (Desired((Keep(OtherConfigMap, "hello"),)),
     "compose returned ConfigMap/hello, but `owns` has another class of that kind"),
    (Desired((Apply(Secret, "hello", {}),)),
     "compose returned Secret/hello, but `owns` has no Secret"),
    (Desired((child("other"),)),
     ("compose returned ConfigMap/other, but a ConfigMap of hello is named hello;"
      " other names are declared by `child_names`")),
    (Desired((child(metadata={"namespace": "x"}),)),
     ("compose returned ConfigMap/hello with the field metadata.namespace: leave it"
      " out, since kind and name are given beside the fields, and a child is in the"
      " namespace of its resource")),
    (Desired((child(kind="ConfigMap"),)),
     ("compose returned ConfigMap/hello with the field kind: leave it out, since"
      " kind and name are given beside the fields, and a child is in the namespace"
      " of its resource")),
]  # fmt: skip
ODD_PARTS: list[tuple[dict[str, Any], str]] = [
    ({"status": {}}, "dict as `status`, not Status"),
    ({"status": GreetingStatus}, "the class GreetingStatus as `status`, not Status"),
    ({"status": OtherStatus()}, "OtherStatus as `status`, not GreetingStatus"),
    *(
        ({"status": GreetingStatus().model_copy(update={"text": odd})}, NOT_OF_MODEL)
        for odd in (5, {SECRET}, object(), "\ud800")
    ),
    ({"status": GreetingStatus.model_construct(conditions=({},))}, NOT_OF_MODEL),
    ({"requeue_after": 30}, "int as `requeue_after`, not timedelta"),
    ({"requeue_after": 0.5}, "float as `requeue_after`, not timedelta"),
    ({"children": None}, "NoneType as `children`, not tuple"),
    ({"children": child()}, "Apply as `children`, not tuple: write `(…,)`"),
    ({"children": "hunter2"}, "str as `children`, not tuple"),
    ({"children": (one for one in ())}, "generator as `children`, not tuple"),
    ({"children": {"a": child()}}, "dict as `children`, not tuple"),
    ({"children": [{}]}, "dict as `children[0]`, not Copy, Apply, Create or Keep"),
    ({"children": (child(), None)}, "NoneType as `children[1]`, not Copy, Apply, Create or Keep"),
    ({"children": (ConfigMap,)}, "the class ConfigMap as `children[0]`, not Copy,"),
    ({"children": [Notice("A", "b")]}, "Notice as `children[0]`, not Copy, Apply, Create or"),
    ({"children": [Apply("ConfigMap", "hello", {})]}, "str as `children[0].kind`, not a"),
    ({"children": [Keep(int, "hello")]}, "the class int as `children[0].kind`, not a class"),
    ({"children": [Keep(BareView, "a")]}, "compose returned a BareView, which has no `api`"),
    ({"children": [Apply(ConfigMap, "hello", None)]}, "`children[0].fields`, not dict"),
    ({"children": [Create(ConfigMap, "hello", [])]}, "list as `children[0].fields`, not"),
    ({"children": [child(), replace(child("b"), after=Secret)]}, "`children[1].after`, not"),
    ({"children": [replace(child(), after=("Secret",))]}, "`children[0].after[0]`, not a"),
    ({"children": [Copy(ConfigMap, "hello", {}, source={})]},
     "dict as `children[0].source`, not View"),
    ({"events": Notice("A", "b")}, "Notice as `events`, not tuple"),
    ({"events": ["A"]}, "str as `events[0]`, not SourceNotice or Notice"),
    ({"events": [Notice(None, "b")]}, "NoneType as `events[0].reason`, not str"),
    ({"events": [Notice("A", ValueError())]}, "ValueError as `events[0].note`, not str"),
    ({"events": [Notice("A", "b", "Error")]}, "`events[0].type`, not 'Normal' or 'Warning'"),
    ({"events": [SourceNotice("A", "b", source={})]}, "`events[0].source`, not View"),
    ({"contributions": [child()]}, "Apply as `contributions[0]`, not Contribution"),
    ({"contributions": [Contribution(ConfigMap, "a", {}, None)]},
     "NoneType as `contributions[0].waits`, not str"),
]  # fmt: skip
NO_JSON: list[tuple[dict[Any, Any], str]] = [
    ({"data": {"a": {1, 2}}}, "set at data.a: fields are of dict"),
    ({"data": {"a": timedelta()}}, "timedelta at data.a"),
    ({"data": {"a": datetime(2026, 1, 1, tzinfo=UTC)}}, "datetime at data.a"),
    ({"data": {"a": b"x"}}, "bytes at data.a"),
    ({"data": {"a": ConfigMap({})}}, "ConfigMap at data.a"),
    ({"data": {"a": float("nan")}}, "a float that is no number at data.a"),
    ({"data": {"a": float("inf")}}, "a float that is no number at data.a"),
    ({"data": {"a": "\ud800"}}, "a lone surrogate at data.a"),
    ({"data": {1: "x"}}, "int as a key at data"),
    ({"data": {None: "x"}}, "NoneType as a key at data"),
    ({"data": ready(True, "A")}, "Condition at data"),
    ({"metadata": {"finalizers": ("a/b",)}}, "tuple at metadata.finalizers"),
    ({"x": [{"y": [Decimal(1)]}]}, "Decimal at x[0].y[0]"),
    ({"metadata": "hello"}, "str as metadata, where a dict belongs"),
    ({"metadata": {"labels": ["a"]}}, "list as metadata.labels, where a dict belongs"),
    ({"data": endless()}, "more than 190 levels at data.a.a"),
]  # fmt: skip
RETURNED: list[tuple[Any, Any]] = [
    *WRONG,
    *((Desired(**parts), Part("compose returned ", told)) for parts, told in ODD_PARTS),
    *((Desired((child(**fields),)), Part("ConfigMap/hello with " + told))
      for fields, told in NO_JSON),
    *(
        (Desired(**{place: (part(ConfigMap, "hello", {1: "x"}),)}),
         Part("ConfigMap/hello with int as a key at the top"))
        for place, part in (
            ("children", Apply), ("children", Create), ("contributions", Contribution)
        )
    ),
]  # fmt: skip


class TestComposeFailed:
    def test_an_exception_stalls_the_resource_and_names_its_class_and_line_alone(self, in_memory):
        cluster = greeting(in_memory, raising)
        cluster.pass_time(60)
        line = raising.__code__.co_firstlineno + 1

        assert conditions(cluster)["Stalled"] == (
            "True",
            "ComposeFailed",
            f"compose raised LookupError in test_authors.py, line {line}; the log has the rest",
        )
        assert conditions(cluster)["Ready"][0] == "False"
        [event] = cluster.server.list("events.k8s.io", "Event").items
        assert (event["type"], event["reason"]) == ("Warning", "ComposeFailed")
        assert SECRET not in str(cluster.must_get(HELLO)) + str(event)

    def test_a_test_in_memory_does_not_pass_over_it(self, in_memory, capfd):
        cluster = greeting(in_memory, raising)

        with pytest.raises(LookupError, match=SECRET):
            cluster.assert_settled()
        assert "locals" not in capfd.readouterr().out

    def test_what_is_there_stays_and_goes_on_once_it_is_mended(self, in_memory):
        mended = [True]

        def compose(*_: Any) -> Desired:
            return Desired((child(),)) if mended else raising()

        cluster = greeting(in_memory, compose)
        cluster.assert_settled()
        mended.clear()
        cluster.apply(HELLO | {"spec": {"name": "me"}})
        cluster.pass_time(60)
        assert conditions(cluster)["Stalled"][1] == "ComposeFailed"
        assert cluster.get(CHILD)

        mended.append(True)
        cluster.pass_time(3600)
        cluster.assert_settled()
        assert set(conditions(cluster)) == {"Ready"}

    @pytest.mark.parametrize(
        ("desired", "told"),
        RETURNED,
        ids=lambda value: value if isinstance(value, str) else str(getattr(value, "texts", "")),
    )
    def test_what_must_not_be_returned_is_one_sentence(self, in_memory, desired, told):
        cluster = greeting(in_memory, returning(desired))
        cluster.pass_time(60)

        assert conditions(cluster)["Stalled"] == ("True", "ComposeFailed", told)
        assert SECRET not in str(cluster.must_get(HELLO))
        assert cluster.get(CHILD) is None

    def test_lists_enumerations_and_what_is_true_will_do(self, in_memory):
        again: Any = Desired(
            status=Status(),
            events=[],
            children=[
                Copy(ConfigMap, "hello", {"data": {Word.HELLO: Word.HELLO}}, anew=cast("Any", 0))
            ],
        )
        cluster = greeting(in_memory, returning(again))
        cluster.assert_settled()

        assert cluster.must_get(CHILD)["data"] == {"hello": "hello"}

    def test_a_child_that_is_kept_may_have_any_name(self, in_memory):
        cluster = greeting(in_memory, returning(Desired((Keep(ConfigMap, "other"),))))
        cluster.assert_settled()

        assert set(conditions(cluster)) == {"Ready"}

    def test_all_that_is_observed_is_kept_but_what_is_declared_beside_it(self, in_memory):
        first, later = (child("hello"), child("other")), (*KEEP_ALL, child("other", data={}))

        def compose(greeting: Any, _: Observed) -> Desired:
            return Desired(first if greeting.spec.name == "you" else later)

        cluster = greeting(in_memory, compose, child_names={ConfigMap: ("*",)})
        cluster.assert_settled()
        cluster.apply(HELLO | {"spec": {"name": "nobody"}})
        cluster.assert_settled()

        other = cluster.must_get(target("v1", "ConfigMap", "other", "default"))
        assert (cluster.must_get(CHILD)["data"], other.get("data")) == ({"a": "b"}, None)


class TestWhatIsRead:
    """A kind that compose asks for is one that it declares: otherwise it is never there."""

    @pytest.mark.parametrize(
        ("read", "named"),
        [
            (Secret, "Secret (hedgerow_schemas.builtin)"),
            (OtherConfigMap, f"OtherConfigMap ({__name__})"),
        ],
    )
    @pytest.mark.parametrize("by", ["child", "all"])
    def test_any_other_stalls_the_resource_with_one_sentence(self, in_memory, read, named, by):
        def compose(_: Any, observed: Observed) -> Desired:
            _ = observed.child(read, "x") if by == "child" else observed.all(read)
            return Desired((child(),))

        cluster = greeting(in_memory, compose)
        cluster.pass_time(60)

        told = (
            f"compose reads {named}, but neither `owns`, nor `relates`,"
            " nor `contributes` has that class"
        )
        assert conditions(cluster)["Stalled"] == ("True", "ComposeFailed", told)
        assert cluster.get(CHILD) is None

    @pytest.mark.parametrize("read", [ConfigMap, Secret, View])
    def test_what_is_owned_or_related_may_be_read_and_all_of_them_at_once(self, in_memory, read):
        def compose(_: Any, observed: Observed) -> Desired:
            observed.all(read)
            return Desired((child(),))

        cluster = greeting(in_memory, compose, relates=(Relation(Secret),))
        cluster.assert_settled()

        assert set(conditions(cluster)) == {"Ready"}


class Bare(CustomResource):
    """A resource whose author forgot its `api`."""


class NoClassVar(CustomResource):
    """A resource whose author made a field of it."""

    api: ApiResource = ApiResource("x.example.com/v1", "NoClassVar", "noclassvars")  # type: ignore[misc]


class TestApi:
    """A class without `api` is one sentence when the program starts."""

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"resource": Bare}, "Bare"),
            ({"resource": NoClassVar}, "NoClassVar"),
            ({"owns": (BareView,)}, "BareView"),
            ({"relates": (Relation(BareView),)}, "BareView"),
        ],
    )
    def test_it_names_the_class_and_what_to_write(self, in_memory, change, named):
        odd: Any = replace(GREETER, **change)
        told = (
            rf"controller greeter: the class {named} does not .* `api: ClassVar\[ApiResource\] = "
        )

        with pytest.raises(ValueError, match=told):
            Registry((odd,))
        with pytest.raises(ValueError, match=told):
            in_memory(odd)


class TestNames:
    @pytest.mark.parametrize(
        ("pattern", "name", "allowed"),
        [
            ("{}", "hello", True),
            ("{}", "hello-x", False),
            ("{}-*", "hello-x", True),
            ("x-{}", "x-hello", True),
            ("team", "team", True),
            ("team", "hello", False),
            ("team-*", "team-x", True),
            ("*", "any", True),
        ],
    )
    def test_a_name_is_allowed_in_memory_as_the_policy_allows_it(self, pattern, name, allowed):
        controller = replace(GREETER, child_names={ConfigMap: (pattern,)})

        assert controller.allows_name(ConfigMap, "hello", name) is allowed

    @pytest.mark.parametrize(
        ("pattern", "expression"),
        [
            ("team", 'variables.name == "team"'),
            ("team-*", 'variables.name.startsWith("team-")'),
            ("{}-x", 'variables.name == r.name + "-x"'),
        ],
    )
    def test_and_the_policy_has_it(self, pattern, expression):
        controller = replace(GREETER, child_names={ConfigMap: (pattern,)})

        assert expression in str(confinement.policy(Names(), [controller]))


class TestNamespaces:
    """What a pass sees is of its own namespace, unless its author asks for another one."""

    @pytest.fixture
    def observed(self) -> Observed:
        def secret(namespace: str) -> Secret:
            return Secret({"metadata": {"name": "password", "namespace": namespace}})

        return Observed(
            datetime(2026, 1, 1, tzinfo=UTC),
            related=(secret("theirs"), secret("ours")),
            contributable=(secret("others"),),
            answers=Answers("ours"),
        )

    def test_an_object_of_another_namespace_is_not_found_by_name(self, observed):
        found = observed.child(Secret, "password")

        assert found is not None
        assert found.namespace == "ours"
        assert replace(observed, answers=Answers("empty")).child(Secret, "password") is None

    def test_nor_among_all(self, observed):
        assert [one.namespace for one in observed.all(Secret)] == ["ours"]

    def test_but_where_the_author_asks_for_it(self, observed):
        found = observed.child(Secret, "password", namespace="theirs")
        every = observed.all(Secret, namespace="*")

        assert found is not None
        assert found.namespace == "theirs"
        assert [one.namespace for one in every] == ["theirs", "ours", "others"]

    def test_a_relation_without_of_shows_no_secret_of_others(self, in_memory):
        def compose(_: Any, observed: Observed) -> Desired:
            found = observed.child(Secret, "password")
            return Desired((child(data={"copied": found.text("data", "p") if found else ""}),))

        cluster = greeting(in_memory, compose, relates=(Relation(Secret),))
        cluster.open_namespace("theirs")
        theirs = target("v1", "Secret", "password", "theirs")
        cluster.apply(theirs | {"data": {"p": "aHVudGVyMg=="}})
        cluster.assert_settled()

        assert cluster.must_get(CHILD)["data"] == {"copied": ""}


class TenantSpec(Model):
    """What is wanted."""


class Tenant(CustomResource):
    """A tenant of the whole cluster."""

    api: ClassVar[ApiResource] = ApiResource("shop.example.com/v1", "Tenant", "tenants", False)
    spec: TenantSpec = TenantSpec()
    status: Status | None = None


class RoomView(View):
    """A cluster-scoped child."""

    api: ClassVar[ApiResource] = ApiResource("shop.example.com/v1", "Room", "rooms", False)


class Room(CustomResource):
    """The definition of that kind."""

    api: ClassVar[ApiResource] = RoomView.api
    spec: TenantSpec = TenantSpec()


class TestClusterScoped:
    def test_a_child_that_is_cluster_scoped_too_works(self, in_memory):
        def compose(tenant: Any, observed: Observed) -> Desired:
            there = observed.child(RoomView, tenant.metadata.name) is not None
            told = Status(conditions=(ready(there, "Made"),))
            return Desired((Apply(RoomView, tenant.metadata.name, {"spec": {}}),), told)

        controller = Controller("tenants", Tenant, compose, owns=(RoomView,))
        cluster = in_memory(controller, kinds=(Room,))
        api = Tenant.api
        acme = target(api.group_version, api.kind, "acme", "")
        cluster.apply(acme | {"spec": {}})
        cluster.assert_settled()

        assert conditions(cluster, acme)["Ready"][0] == "True"

    def test_a_child_in_a_namespace_is_refused_at_the_start(self):
        controller = Controller("tenants", Tenant, raising, owns=(ConfigMap,))

        with pytest.raises(ValueError, match="writes ConfigMap for Tenant: both are in a namesp"):
            Registry((controller,))


class TestMetrics:
    def test_a_metric_in_the_librarys_own_registry_is_served_beside_ours(self):
        sold = Counter("shop_sold", "Things that were sold.")
        sold.inc(3)
        try:
            served = generate_latest(Meters("1.2.3").registry).decode()
        finally:
            REGISTRY.unregister(sold)

        assert "shop_sold_total 3.0" in served
        assert served.count("\nprocess_open_fds ") <= 1
        assert served.count("# HELP python_gc_objects_collected_total") == 1


class TestLogging:
    def test_what_an_author_logs_is_a_line_like_all_others(self, capfd):
        from hedgerow.runtime import logs

        before, level = structlog.get_config(), logging.getLogger().level
        handlers = logging.getLogger().handlers[:]
        try:
            logs.configure("json")
            logging.getLogger("shop").info("%s is open", "it")
            logging.getLogger("httpx").info("a request")
        finally:
            structlog.configure(**before)
            logging.getLogger().setLevel(level)
            logging.getLogger().handlers[:] = handlers

        [line] = capfd.readouterr().err.splitlines()
        assert '"event":"it is open"' in line
        assert '"logger":"shop"' in line
        assert '"level":"info"' in line
