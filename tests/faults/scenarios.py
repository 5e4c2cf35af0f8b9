"""Scenarios: what happens to a resource of each controller, from its creation to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from faults import built_in, checked
from faults.checked import BLUE, DEMO, GREEN, ROUTE, pods
from faults.scenario import (
    JOBS,
    Object,
    People,
    Scenario,
    Step,
    apply,
    at,
    both,
    contested,
    count,
    finish,
    give_back,
    jobs,
    observed,
    removal,
    rolling_out,
    running,
    scale,
    take,
    target,
    value_at,
)

YEARLY, EVERY_SECOND = "0 0 1 1 *", "@every 1s"

# --- BlueGreen ----------------------------------------------------------------------------------

_PHASE = ("spec", "selector", "app.kubernetes.io/phase")
_IMAGE = ("spec", "template", "spec", "containers", 0, "image")


def _port(target_port: int, port: int = 80, name: str = "http") -> Object:
    return {"name": name, "port": port, "protocol": "TCP", "targetPort": target_port}


def _take_image(identity: Object, container: str, image: str) -> Callable[[People], object]:
    containers = [{"name": container, "image": image}]
    return take(identity, {"spec": {"template": {"spec": {"containers": containers}}}})


def _agreed(identity: Object, deployment: Object, container: str, image: str) -> Step:
    """Return the step in which who has taken an image sets the one that is declared."""
    settled = both(observed(identity, Contested=""), at(deployment, *_IMAGE, is_=image))
    return Step("agreed upon", _take_image(deployment, container, image), settled)


def _behind(people: People) -> bool:
    """Return whether the status tells that the Deployment has a form not seen yet."""
    conditions = (people.get(DEMO) or {})["status"]["conditions"]
    return any("not seen the newest generation yet" in c["message"] for c in conditions)


def _bluegreen_flipped() -> Iterator[Step]:
    spec = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
    yield Step(
        "created",
        apply(DEMO, **spec),
        both(observed(DEMO, Ready="False/Unavailable"), at(ROUTE, *_PHASE, is_="Blue")),
    )
    yield rolling_out("rolled out", observed(DEMO, Ready="True/Serving"), BLUE, GREEN)
    yield contested(DEMO, _take_image(GREEN, "green", "example/theirs:1"))
    spec = {**spec, "routeTo": "Green"}
    yield Step(
        "flipped",
        apply(DEMO, **spec),
        both(observed(DEMO), at(DEMO, "status", "routeTo", is_="Green")),
    )
    changed = pods("green", "example/echo:2", env=[{"name": "COLOUR", "value": "green"}])
    env = (*_IMAGE[:-1], "env", 0, "value")
    yield Step(
        "changed under the conflict",
        apply(DEMO, **{**spec, "greenSpec": changed}),
        both(observed(DEMO, Contested="True/FieldConflict"), at(GREEN, *env, is_="green")),
    )
    yield _agreed(DEMO, GREEN, "green", "example/echo:2")
    yield rolling_out("rolled out again", observed(DEMO, Ready="True/Serving"), BLUE, GREEN)


def _bluegreen_changed() -> Iterator[Step]:
    spec = {
        "routeTo": "Blue",
        "promotion": "WhenAvailable",
        "blueSpec": pods("blue"),
        "greenSpec": pods("green"),
        "ports": [_port(8080), _port(9000, 9000, "admin")],
    }
    yield Step(
        "created",
        apply(DEMO, **spec),
        both(observed(DEMO, Ready="False/Unavailable"), at(ROUTE, *_PHASE, is_="Blue")),
    )
    yield rolling_out("blue is rolled out", observed(DEMO, Ready="True/Serving"), BLUE)
    spec = {**spec, "routeTo": "Green"}
    waits = observed(DEMO, Ready="False/WaitingForAvailability")
    yield Step("flipped", apply(DEMO, **spec), waits)
    yield Step("scaled", scale(GREEN, 2), both(waits, _behind))
    yield rolling_out(
        "green is rolled out",
        both(observed(DEMO, Ready="True/Serving"), at(DEMO, "status", "routeTo", is_="Green")),
        GREEN,
    )
    yield contested(
        DEMO,
        take(ROUTE, {"spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 7070}]}}),
    )
    every_field = {
        "routeTo": "Green",
        "promotion": "Immediate",
        "greenSpec": {**pods("green", "example/echo:2"), "nodeSelector": {"disk": "ssd"}},
        "ports": [_port(8081), _port(53, 53, "dns")],
    }
    yield Step(
        "changed in every field, blue removed",
        apply(DEMO, **every_field),
        both(
            observed(DEMO, Contested="True/FieldConflict"),
            at(GREEN, *_IMAGE, is_="example/echo:2"),
            at(BLUE, is_=None),
        ),
    )
    yield Step(
        "given back",
        give_back(ROUTE),
        both(observed(DEMO, Contested=""), at(ROUTE, "spec", "ports", 0, "targetPort", is_=8081)),
    )
    yield removal(DEMO, "bluegreen")


# --- Memcached ----------------------------------------------------------------------------------

CACHE = target("memcached.cache.example.com/v1", "Memcached", "cache")
SERVERS = target("apps/v1", "Deployment", "cache")
ENTRY = target("v1", "Service", "cache")
BUDGET = target("policy/v1", "PodDisruptionBudget", "cache")


def _memcached_scaled() -> Iterator[Step]:
    replicas = ("spec", "replicas")
    yield Step(
        "created",
        apply(CACHE, size=2),
        both(observed(CACHE, Ready="False/Unavailable"), lambda people: people.get(BUDGET)),
    )
    yield rolling_out("rolled out", observed(CACHE, Ready="True/Serving"), SERVERS)
    yield Step(
        "scaled",
        lambda people: people.edit(CACHE, {"spec": {"size": 3}}, "kubectl"),
        both(observed(CACHE), at(SERVERS, *replicas, is_=3)),
    )
    yield contested(CACHE, scale(SERVERS, 5))
    yielded = {"metadata": {"annotations": {"hedgerow.dev/yield": "Deployment/*: spec.replicas"}}}
    yield Step(
        "left to whoever scales it",
        lambda people: people.edit(CACHE, yielded, "kubectl-annotate"),
        both(observed(CACHE, Contested=""), at(SERVERS, *replicas, is_=5)),
    )
    yield rolling_out("rolled out again", observed(CACHE, Ready="True/Serving"), SERVERS)
    yield Step(
        "one server is enough",
        lambda people: people.edit(CACHE, {"spec": {"size": 1}}, "kubectl"),
        both(observed(CACHE), at(BUDGET, is_=None)),
    )


def _memcached_changed() -> Iterator[Step]:
    yield Step(
        "created",
        apply(CACHE, size=3, image="memcached:1.6-alpine"),
        both(observed(CACHE, Ready="False/Unavailable"), lambda people: people.get(BUDGET)),
    )
    yield rolling_out("rolled out", observed(CACHE, Ready="True/Serving"), SERVERS)
    yield contested(CACHE, _take_image(SERVERS, "memcached", "memcached:theirs"))
    yield Step(
        "changed in every field",
        apply(CACHE, size=4, image="memcached:1.6.40", memory=128, maxConnections=2048),
        both(
            observed(CACHE, Contested="True/FieldConflict"),
            at(SERVERS, *_IMAGE[:-1], "command", 2, is_="128"),
            at(SERVERS, "spec", "replicas", is_=4),
        ),
    )
    yield Step(
        "its Service deleted",
        lambda people: people.delete(ENTRY),
        both(observed(CACHE), lambda people: people.get(ENTRY)),
    )
    yield _agreed(CACHE, SERVERS, "memcached", "memcached:1.6.40")
    yield removal(CACHE, "memcached")


# --- Guestbook ----------------------------------------------------------------------------------

BOOK = target("webapp.my.domain/v1", "Guestbook", "book")
PAGES, OTHERS = (target("v1", "ConfigMap", name) for name in ("pages", "others"))
SHOWING = target("apps/v1", "Deployment", "book")


def _mounted(people: People) -> str:
    live = people.get(SHOWING) or {}
    return live["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] if live else ""


def _guestbook_moved() -> Iterator[Step]:
    yield Step(
        "created",
        apply(BOOK, size=2, configMapName="pages"),
        both(observed(BOOK, Ready="False/Unavailable"), lambda people: _mounted(people) == "pages"),
    )
    yield rolling_out("rolled out", observed(BOOK, Ready="True/Serving"), SHOWING)
    yield contested(BOOK, _take_image(SHOWING, "guestbook", "busybox:theirs"))
    yield Step(
        "changed in every field",
        apply(BOOK, size=3, configMapName="others", alias="Phone"),
        both(
            observed(BOOK, Contested="True/FieldConflict"),
            at(SHOWING, "spec", "replicas", is_=3),
            lambda people: _mounted(people) == "others" and people.get(PAGES),
        ),
    )
    yield rolling_out(
        "rolled out again",
        both(observed(BOOK, Contested="True/FieldConflict"), lambda people: not people.get(PAGES)),
        SHOWING,
    )
    yield Step(
        "its ConfigMap deleted",
        lambda people: people.delete(OTHERS),
        both(observed(BOOK), lambda people: people.get(OTHERS)),
    )
    yield _agreed(BOOK, SHOWING, "guestbook", "busybox:1.37")
    yield removal(BOOK, "guestbook")


# --- CronJob ------------------------------------------------------------------------------------

CRON = target("batch.tutorial.kubebuilder.io/v1", "CronJob", "cron")


def _template(image: str = "busybox") -> Object:
    pod = {
        "restartPolicy": "OnFailure",
        "containers": [{"name": "hello", "image": image, "args": ["date"]}],
    }
    return {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"template": {"spec": pod}},
    }


def _edit(**spec: Any) -> Callable[[People], object]:
    return lambda people: people.edit(CRON, {"spec": spec}, "kubectl-edit")


def _told(people: People) -> bool:
    """Return whether the status has the newest start, and every Job that runs."""
    status = (people.get(CRON) or {}).get("status", {})
    listed = {each["name"] for each in status.get("active", ())}
    return "lastScheduleTime" in status and listed == {
        job["metadata"]["name"] for job in running(people)
    }


def _mark(people: People) -> None:
    """Mark the Jobs that run, to tell others from them."""
    for job in running(people):
        identity = {**JOBS, "metadata": {"name": job["metadata"]["name"]}}
        mark = {"metadata": {"annotations": {"marked": "true"}}}
        try:
            people.edit(identity, mark, "kubectl-annotate")
        except Exception:
            if people.get(identity) is not None:
                raise  # else it has just been replaced


def _replaced(people: People) -> bool:
    found = running(people)
    return bool(found) and not any("marked" in job["metadata"]["annotations"] for job in found)


def _cronjob_forbidding() -> Iterator[Step]:
    spec = {
        "schedule": EVERY_SECOND,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": 1,
        "jobTemplate": _template(),
    }
    started = both(count(running, 1), _told)
    yield Step("created", apply(CRON, **spec), started, moving=True)
    rests = both(observed(CRON, Ready="True/Scheduled"), _told)
    yield Step("once a year", _edit(schedule=YEARLY), both(rests, count(running, 1)))
    yield contested(CRON, take(CRON, {"status": {"activeCount": 7}}, subresource="status"))
    success = ("status", "lastSuccessfulTime")
    yield Step(
        "succeeded",
        finish,
        both(count(running, 0), _told, lambda people: value_at(people.get(CRON), success)),
    )
    yield Step("every second again", _edit(schedule=EVERY_SECOND), started, moving=True)
    yield Step("once a year again", _edit(schedule=YEARLY), both(_told, count(jobs, 2)))
    yield Step("succeeded again", finish, both(_told, count(jobs, 1)))
    yield Step(
        "given back",
        give_back(CRON, subresource="status"),
        both(observed(CRON, Contested=""), at(CRON, "status", "activeCount", is_=0)),
    )
    yield removal(CRON, "cronjob")


def _cronjob_replacing() -> Iterator[Step]:
    spec = {
        "schedule": EVERY_SECOND,
        "concurrencyPolicy": "Replace",
        "suspend": True,
        "startingDeadlineSeconds": 30,
        "jobTemplate": _template(),
    }
    yield Step("created, suspended", apply(CRON, **spec), observed(CRON, Ready="True/Suspended"))
    yield Step("resumed", _edit(suspend=False), running, moving=True)
    yield Step("replaced", _mark, _replaced, moving=True)

    # Between a deletion and the start that it makes room for, nothing runs.
    one = both(observed(CRON), count(running, 1), _told)
    yield Step("not replaced any more", _edit(concurrencyPolicy="Forbid"), one, moving=True)

    yield Step(
        "suspended",
        _edit(suspend=True),
        both(observed(CRON, Ready="True/Suspended"), _told, count(running, 1)),
    )
    yield contested(CRON, take(CRON, {"status": {"activeCount": 7}}, subresource="status"))
    every_field = {
        "schedule": YEARLY,
        "timeZone": "Asia/Tokyo",
        "startingDeadlineSeconds": 60,
        "concurrencyPolicy": "Allow",
        "activeLimit": 2,
        "suspend": False,
        "successfulJobsHistoryLimit": 0,
        "failedJobsHistoryLimit": 2,
        "jobTemplate": _template("busybox:2"),
    }
    yield Step(
        "changed in every field",
        apply(CRON, **every_field),
        both(observed(CRON, Contested="True/FieldConflict"), _told),
    )
    yield Step(
        "a schedule that cannot be read",
        _edit(schedule="61 * * * *"),
        observed(CRON, Stalled="True/UnparseableSchedule"),
    )
    yield Step(
        "mended, given back",
        lambda people: (
            _edit(schedule=YEARLY)(people),
            give_back(CRON, subresource="status")(people),
        ),
        observed(CRON, Ready="True/Scheduled", Contested="", Stalled=""),
    )
    yield Step("succeeded, of which none is kept", finish, both(_told, count(jobs, 0)))
    yield removal(CRON, "cronjob")


CUSTOM = (
    Scenario("bluegreen-flipped", "bluegreen", DEMO, tuple(_bluegreen_flipped())),
    Scenario("bluegreen-changed", "bluegreen", DEMO, tuple(_bluegreen_changed())),
    Scenario("bluegreen-checked", "bluegreen", DEMO, tuple(checked.bluegreen_checked())),
    Scenario("bluegreen-baked", "bluegreen", DEMO, tuple(checked.bluegreen_baked()), by_clock=True),
    Scenario("memcached-scaled", "memcached", CACHE, tuple(_memcached_scaled())),
    Scenario("memcached-changed", "memcached", CACHE, tuple(_memcached_changed())),
    Scenario("guestbook-moved", "guestbook", BOOK, tuple(_guestbook_moved())),
    Scenario("cronjob-forbidding", "cronjob", CRON, tuple(_cronjob_forbidding())),
    Scenario("cronjob-replacing", "cronjob", CRON, tuple(_cronjob_replacing())),
)
"""Those of custom resources."""
SCENARIOS = (
    *CUSTOM,
    Scenario("scaler-windows", "scaler", built_in.WEB, tuple(built_in.scaler_windows())),
    Scenario(
        "scaler-autoscaler",
        "scaler",
        built_in.WEB,
        tuple(built_in.scaler_autoscaler()),
        # That force was used is remembered on the autoscaler, until the Deployment is seen gone.
        anew=False,
    ),
    Scenario(
        "secretsync-copied",
        "secretsync",
        # The younger one: of two of one second, the name decides which one has the target.
        built_in.MAIL,
        tuple(built_in.secretsync_copied()),
        built_in.ELSEWHERE,
        told_again=("TargetTaken",),  # the younger one changed in between
    ),
)
