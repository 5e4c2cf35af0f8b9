"""What judges the runs of tests/e2e: each finds what is wrong in a made-up log, and only that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.deployment import ACCOUNT, NAME, NAMESPACE
from e2e.flips import Change, twice, waits
from e2e.leaders import POD_NAME, acquisitions, ended, stolen, strays, terms, writes
from e2e.traffic import Answer, Flip, judge

A, B = "hedgerow-a_1", "hedgerow-b_2"


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def write(seconds: float, what: str, body: Any, holder: str = A, code: int = 200) -> Any:
    """Return an entry as the API server writes it; `what` is a resource and its subresource."""
    resource, _, subresource = what.partition("/")
    about = {"resource": resource, "subresource": subresource}
    pod = holder.rpartition("_")[0]
    return {
        "stage": "ResponseComplete",
        "verb": "patch",
        "user": {"username": ACCOUNT, "extra": {POD_NAME: [pod]}},
        "userAgent": "hedgerow",
        "requestURI": f"/{what}?fieldManager=hedgerow",
        "objectRef": {**about, "namespace": NAMESPACE, "name": NAME},
        "requestObject": {"metadata": {"name": NAME}, **body},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"{at(seconds):%Y-%m-%dT%H:%M:%S.%fZ}",
        "stageTimestamp": f"{at(seconds + 0.01):%Y-%m-%dT%H:%M:%S.%fZ}",
    }


def status(seconds: float, generation: int, code: int = 200) -> Any:
    told = {"status": {"observedGeneration": generation}}
    return write(seconds, "bluegreens/status", told, code=code)


def lease(seconds: float, holder: str) -> Any:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15 if holder else 1}
    return write(seconds, "leases", {"spec": spec}, holder)


def service(seconds: float, colour: str, holder: str = A, code: int = 200) -> Any:
    return write(seconds, "services", {"spec": {"selector": colour}}, holder, code)


def stray(*log: Any, gone: float = 99) -> Any:
    return strays(writes(log), ended(terms(acquisitions(log)), A, at(gone)))


def misrouted(*said: str) -> int:
    answers = [Answer(n, n + 0.5, one) for n, one in enumerate(said, 1)]
    return judge(answers, [Flip("Green", 0, 3)])[0].misrouted


def late(*log: Any) -> bool:
    """Return whether a change waited for more than three seconds, or was never carried out."""
    changes = [Change(NAMESPACE, 1, at(0)), Change(NAMESPACE, 2, at(1))]
    try:
        return waits(changes, log)[NAMESPACE] > 3
    except AssertionError:
        return True


FIRST, GIVEN_UP = lease(0, A), lease(3, "")
JUDGED = {
    "a change carried out late": (late(status(6, 2)), late(status(0.5, 1), status(3, 2))),
    "one never carried out": (late(status(2, 1)), late(status(2, 2))),
    "one refused": (late(status(2, 2, 409)), late(status(1, 2, 409), status(2, 2))),
    "the same write twice": (
        twice([service(0, "Blue"), service(1, "Blue", B)]),
        twice([service(0, "Blue"), service(1, "Green"), service(2, "Blue")])
        or twice([service(0, "Blue"), service(1, "Blue", code=409)]),
    ),
    "a Lease that was stolen": (
        stolen(acquisitions([FIRST, lease(14, B)])),
        stolen(acquisitions([FIRST, lease(16, B)]))
        or stolen(acquisitions([FIRST, GIVEN_UP, lease(3.1, B)])),
    ),
    "a write of another than the holder": (
        stray(FIRST, service(1, "Blue", B)),
        stray(FIRST, service(1, "Blue"), GIVEN_UP, lease(4, B), service(5, "Blue", B)),
    ),
    "one before the Lease was held": (stray(FIRST, service(-1, "Blue")), stray(FIRST)),
    "one answered after it had run out": (
        stray(FIRST, service(14.995, "Blue")), stray(FIRST, service(14.985, "Blue")),
    ),
    "one by a process that is gone": (
        stray(FIRST, service(5, "Blue"), gone=2), stray(FIRST, service(1, "Blue"), gone=2),
    ),
    "an answer of the old colour after the switch": (
        misrouted("Green", "Blue", "Green", "Blue"), misrouted("Blue", "Blue", "Green", "Green"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "right"), JUDGED.values(), ids=JUDGED)
def test_what_is_wrong_is_found_and_what_is_right_is_not(wrong: Any, right: Any) -> None:
    assert (bool(wrong), bool(right)) == (True, False)
