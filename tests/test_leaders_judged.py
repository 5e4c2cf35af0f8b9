"""Leaders: what is said of a made-up audit log, so that nothing is found by not looking."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.deployment import ACCOUNT, NAME, NAMESPACE
from e2e.leaders import POD_NAME, Term, acquisitions, ended, stolen, strays, terms, writes

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LASTS = 15
A, B = "hedgerow-a_1", "hedgerow-b_2"


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def entry(pod: str, seconds: float, reference: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return an entry as the API server writes it."""
    return {
        "stage": "ResponseComplete",
        "verb": "patch",
        "user": {"username": ACCOUNT, "extra": {POD_NAME: [pod]}},
        "objectRef": reference,
        "requestURI": f"/{reference['resource']}?fieldManager=hedgerow",
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": f"{at(seconds):%Y-%m-%dT%H:%M:%S.%fZ}",
        "stageTimestamp": f"{at(seconds + 0.01):%Y-%m-%dT%H:%M:%S.%fZ}",
        **more,
    }


def acquisition(holder: str, seconds: float, code: int = 200) -> dict[str, Any]:
    reference = {"resource": "leases", "namespace": NAMESPACE, "name": NAME}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": LASTS if holder else 1}
    answer = {"code": code}
    pod = holder.rpartition("_")[0]
    return entry(pod, seconds, reference, requestObject={"spec": spec}, responseStatus=answer)


def write(pod: str, seconds: float, **more: Any) -> dict[str, Any]:
    reference = {"resource": "deployments", "namespace": "shop", "name": "x"}
    return entry(pod, seconds, reference, **more)


def stray(log: list[dict[str, Any]]) -> list[tuple[str, datetime]]:
    return [(found.pod, found.asked) for found in strays(writes(log), terms(acquisitions(log)))]


class TestTerms:
    def test_one_ends_when_the_lease_is_given_up(self):
        log = [acquisition(A, 0), acquisition(A, 10), acquisition("", 12), acquisition(B, 13)]

        assert terms(acquisitions(log)) == [Term(A, at(0), at(12)), Term(B, at(13), at(28))]

    def test_one_ends_when_the_lease_has_run_out_though_nobody_took_it(self):
        assert terms(acquisitions([acquisition(A, 0), acquisition(B, 40)]))[0] == Term(
            A, at(0), at(15)
        )

    def test_a_holder_that_comes_back_too_late_begins_anew(self):
        found = terms(acquisitions([acquisition(A, 0), acquisition(A, 20)]))

        assert found == [Term(A, at(0), at(15)), Term(A, at(20), at(35))]

    def test_an_acquisition_that_was_refused_is_none(self):
        assert terms(acquisitions([acquisition(A, 0), acquisition(B, 5, 409)])) == [
            Term(A, at(0), at(15))
        ]

    def test_one_is_stolen_when_it_had_time_left(self):
        assert [
            found.at for found in stolen(acquisitions([acquisition(A, 0), acquisition(B, 14)]))
        ] == [at(14)]
        assert not stolen(acquisitions([acquisition(A, 0), acquisition(B, 16)]))
        assert not stolen(
            acquisitions([acquisition(A, 0), acquisition("", 3), acquisition(B, 3.1)])
        )


class TestStrays:
    def test_nothing_is_said_of_writes_by_who_leads(self):
        log = [acquisition(A, 0), write("hedgerow-a", 1), acquisition("", 2), acquisition(B, 3)]
        log += [write("hedgerow-b", 3.1)]

        assert len(writes(log)) == 2
        assert not stray(log)

    @pytest.mark.parametrize(
        ("pod", "seconds"),
        [
            pytest.param("hedgerow-b", 1, id="by another than the holder"),
            pytest.param("hedgerow-a", -1, id="before it held the lease"),
            pytest.param("hedgerow-a", 15.1, id="after its lease had run out"),
            pytest.param("hedgerow-a", 14.995, id="answered after its lease had run out"),
            pytest.param("hedgerow-a", 41, id="after another had taken it"),
            pytest.param("", 1, id="by nobody that is known"),
        ],
    )
    def test_a_write_without_the_lease_is_found(self, pod: str, seconds: float):
        log = [acquisition(A, 0), acquisition(B, 40), write(pod, seconds)]

        assert stray(log) == [(pod, at(seconds))]

    def test_a_write_that_failed_is_one_all_the_same(self):
        assert stray([acquisition(A, 0), write("hedgerow-b", 1, responseStatus={"code": 409})])

    def test_a_process_that_is_gone_does_not_lend_its_lease_to_the_next_in_its_pod(self):
        log = [acquisition(A, 0), write("hedgerow-a", 1), write("hedgerow-a", 5)]
        held = ended(terms(acquisitions(log)), A, at(2))

        assert [found.asked for found in strays(writes(log), held)] == [at(5)]

    @pytest.mark.parametrize("resource", ["secrets", "validatingwebhookconfigurations"])
    def test_certificates_are_written_by_any_replica(self, resource: str):
        assert not writes([entry("hedgerow-b", 1, {"resource": resource})])

    def test_a_dry_run_writes_nothing(self):
        assert not writes([write("hedgerow-b", 1, requestURI="/x?dryRun=All")])
