"""What the kit says of requests: the audit log, silence, and which writes are safe."""

from __future__ import annotations

import json

import pytest

from hedgerow_testing import AuditLog, assert_no_writes, assert_settled, must_be_unforced_applies
from hedgerow_testing.waiting import eventually, throughout

PATH = "/api/v1/namespaces/n/configmaps/x"


def entry(verb: str = "patch", query: str = "fieldManager=me", **more) -> dict:
    whole = {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": "u"},
        "requestURI": f"{PATH}?{query}",
        "objectRef": {"resource": "configmaps"},
        "responseStatus": {"code": 200},
    }
    return {**whole, **more}


def removal(**options) -> dict:
    return entry("delete", "", requestObject={"propagationPolicy": "Background", **options})


class TestUnforcedApplies:
    def test_applies_of_the_manager_and_deletions_by_uid_are_such(self):
        must_be_unforced_applies([entry(), removal(preconditions={"uid": "1"})], "me")

    def test_the_name_of_an_object_says_nothing_of_force(self):
        address = f"{PATH}/apply-force-take/status?fieldManager=me"
        must_be_unforced_applies([entry(requestURI=address)], "me")

    @pytest.mark.parametrize(
        "odd",
        [
            entry(query="fieldManager=other"),
            entry(query="fieldManager=me-too"),
            entry(query="fieldManager=me&force=true"),
            entry("update"),
            entry("create"),
            removal(),
            removal(preconditions={"uid": "1"}, propagationPolicy="Foreground"),
        ],
    )
    def test_others_are_told(self, odd):
        with pytest.raises(AssertionError, match=r"not applied unforced by me: .*u: "):
            must_be_unforced_applies([entry(), odd], "me")

    def test_none_at_all_are_not_enough(self):
        with pytest.raises(AssertionError, match="nothing"):
            must_be_unforced_applies([], "me")


class TestSilence:
    @pytest.fixture
    def audit_log(self, tmp_path) -> AuditLog:
        (tmp_path / "log").touch()
        return AuditLog(tmp_path / "log")

    def test_it_is_waited_for(self, audit_log):
        assert_settled(audit_log, for_=0.1)
        assert_no_writes(audit_log, for_=0.1)

    def test_whoever_goes_on_writing_is_told(self, audit_log, monkeypatch):
        writing = audit_log.writes

        def written(*which, **filters):
            with audit_log.path.open("a") as log:
                log.write(json.dumps(entry()) + "\n")
            return writing(*which, **filters)

        monkeypatch.setattr(audit_log, "writes", written)

        with pytest.raises(AssertionError, match=rf"silence.*last written: \['u: patch {PATH}"):
            assert_settled(audit_log, for_=1, within=0.3)
        with pytest.raises(AssertionError, match=r"written: .*patch"):
            assert_no_writes(audit_log, for_=1)

    def test_what_is_refused_is_found(self, audit_log):
        for code in (200, 401, 403, 404):
            with audit_log.path.open("a") as log:
                log.write(json.dumps(entry(responseStatus={"code": code})) + "\n")

        assert [e["responseStatus"]["code"] for e in audit_log.refused()] == [401, 403]


class TestWaiting:
    def test_the_last_answer_is_told_after_the_deadline(self):
        with pytest.raises(AssertionError, match=r"not within 0.1 s: the sun \(0\)"):
            eventually(lambda: 0, 0.1, "the sun")

    def test_what_breaks_is_told_at_once(self):
        with pytest.raises(AssertionError, match="peace: 'war'"):
            throughout(lambda: "war", 60, "peace")
