"""Errors: every answer that was recorded has the class that hedgerow decides by."""

from __future__ import annotations

import pytest

from hedgerow.encoding import encode
from hedgerow.kube import errors
from hedgerow.kube.errors import Cause
from hedgerow_tools.fields.forecast import details
from kube.recordings import DIRECTORY, Recording

RECORDED = {
    name: kind
    for kind, names in {
        errors.AlreadyExists: "already_exists",
        errors.Conflict: "conflict conflict_with_scale conflict_with_update",
        errors.Forbidden: "forbidden terminating",
        errors.Invalid: "bad_yaml duplicate_key immutable_field invalid_value lease_time"
        " managed_fields method_not_allowed too_large unknown_field watch_list_off"
        " watch_list_unmatched wrong_type",
        errors.Missing: "missing_kind missing_namespace missing_object",
        errors.Stale: "create_only delete_of_another_uid delete_of_old_version uid_of_another"
        " uid_of_nothing",
        errors.Unauthenticated: "unauthenticated",
        errors.Unavailable: "version_too_large",
    }.items()
    for name in names.split()
}


class TestRecorded:
    def test_every_recorded_refusal_is_in_the_table(self):
        refusals = {path.stem for path in DIRECTORY.glob("*.json")} - {"created", "warned"}

        assert refusals == set(RECORDED)

    @pytest.mark.parametrize(("name", "kind"), RECORDED.items(), ids=RECORDED)
    def test_has_its_class_its_code_and_one_line(self, name, kind):
        recording = Recording.load(name)

        error = recording.error("GET /somewhere")

        assert type(error) is kind
        assert error.code == recording.code
        assert str(error).startswith("GET /somewhere: ")
        assert "\n" not in str(error)


class TestConflict:
    def test_names_field_and_manager(self):
        error = Recording.load("conflict").error()

        assert error.causes == (
            Cause(
                ".data.colour",
                "hedgerow-recorder",
                'conflict with "hedgerow-recorder"',
                "FieldManagerConflict",
            ),
        )
        assert str(error) == ".data.colour is held by hedgerow-recorder"

    def test_reads_the_manager_out_of_subresource_and_time(self):
        error = Recording.load("conflict_with_scale").error()

        assert [cause.manager for cause in error.causes] == ["kubectl"]
        assert 'subresource "scale"' in error.causes[0].message

    @pytest.mark.parametrize(
        ("message", "manager"),
        [
            (r'conflict with "a \"quoted\" one" using v1', 'a "quoted" one'),
            (r'conflict with "bell\a" using v1', r"bell\a"),
            ("conflicts in a way unheard of", "conflicts in a way unheard of"),
        ],
    )
    def test_copes_with_every_way_to_write_a_manager(self, message, manager):
        cause = {"reason": "FieldManagerConflict", "message": message, "field": ".x"}

        error = errors.from_status({"code": 409, "details": {"causes": [cause]}})

        assert error.causes[0].manager == manager

    def test_shows_a_few_of_many(self):
        causes = [
            {"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": f".f{i}"}
            for i in range(9)
        ]

        error = errors.from_status({"code": 409, "details": {"causes": causes}})

        assert len(error.causes) == 9
        assert str(error).endswith("; .f3 is held by m; and 5 more")


def test_a_server_is_waited_for_no_longer_than_a_minute():
    """A load balancer that shows a page of maintenance may ask for hours."""
    assert errors.from_answer(503, b"", after=3600.0).after == 60.0


class TestForbidden:
    def test_tells_a_terminating_namespace_from_a_missing_permission(self):
        ending = Recording.load("terminating").error()
        refused = Recording.load("forbidden").error()

        assert isinstance(ending, errors.Forbidden)
        assert isinstance(refused, errors.Forbidden)
        assert (ending.terminating, refused.terminating) == (True, False)


MANIFEST = encode(encode({"spec": {"rout": "Blue", "text": "x" * 3000}}).decode()).decode()
UNKNOWN = 'strict decoding error: unknown field "spec.rout"'


class TestLastWords:
    """What is wrong is what the server says last; before it may be a whole manifest."""

    def refused(self, message: str, causes: list[dict[str, str]] | None = None):
        details = {"causes": causes or []}
        status = {"kind": "Status", "message": message, "reason": "Invalid", "details": details}
        return errors.from_answer(422, encode(status), request="PATCH /apis/x")

    def test_of_a_patch_with_an_unknown_field_only_the_field_is_told(self):
        value = f"Invalid value: {MANIFEST}: {UNKNOWN}"
        cause = {"reason": "FieldValueInvalid", "message": value, "field": "patch"}
        error = self.refused(f' "" is invalid: patch: {value}', [cause])

        assert str(error) == f"PATCH /apis/x: {UNKNOWN}"
        assert details(error) == (UNKNOWN,)

    def test_a_short_patch_is_no_exception(self):
        error = self.refused(f' "" is invalid: patch: Invalid value: "{{\\"a\\":1}}": {UNKNOWN}')

        assert error.message == UNKNOWN

    def test_a_long_value_anywhere_is_left_out(self):
        cause = {"message": f"Invalid value: {MANIFEST}: must be short", "field": "spec.text"}
        error = self.refused(f"x is invalid: spec.text: {cause['message']}", [cause])

        assert error.message == "x is invalid: spec.text: Invalid value: …: must be short"
        assert details(error) == ("spec.text: Invalid value: …: must be short",)

    @pytest.mark.parametrize("value", ['"x"', '"a \\"b\\" c"', '""'])
    def test_a_short_value_stays(self, value):
        message = f"x is invalid: spec.a: Invalid value: {value}: must be a number"

        assert self.refused(message).message == message

    def test_what_is_escaped_is_not_cut_for_that(self):
        assert self.refused("\x1b" * 20 + " end").message == r"\u001b" * 20 + " end"

    def test_whatever_else_is_long_is_cut_before_its_last_words(self):
        error = self.refused(f"denied: {'detail ' * 200}: because of the quota")

        assert error.message.startswith("denied: detail")
        assert error.message.endswith("because of the quota")
        assert len(error.message) <= 500
        assert "\n" not in error.message


class TestMissing:
    def test_tells_an_absent_object_from_an_unknown_kind(self):
        absent, unknown = (Recording.load(n).error() for n in ("missing_object", "missing_kind"))

        assert isinstance(absent, errors.Missing)
        assert isinstance(unknown, errors.Missing)
        assert (absent.served, unknown.served) == (True, False)
        assert "is its CRD installed?" in str(unknown)


class TestUnavailable:
    @pytest.mark.parametrize(
        ("code", "reason", "passing"),
        [
            (500, "InternalError", False),
            (500, "ServerTimeout", True),
            (502, "", True),
            (503, "ServiceUnavailable", True),
            (504, "Timeout", True),
            (507, "", False),
        ],
    )
    def test_passes_by_itself_when_a_gateway_or_etcd_was_late(self, code, reason, passing):
        error = errors.from_status({"code": code, "reason": reason})

        assert isinstance(error, errors.Unavailable)
        assert error.passing is passing

    def test_knows_how_long_the_server_wants_us_to_wait(self):
        assert Recording.load("version_too_large").error().after == 1.0


class TestFromAnswer:
    @pytest.mark.parametrize(
        ("code", "content", "kind"),
        [
            (302, b"", errors.Garbled),
            (408, b"", errors.Unavailable),
            (410, b"", errors.Gone),
            (418, b"", errors.Invalid),
            (429, b"slow down", errors.Throttled),
            (401, b'{"kind":"Other","message":{}}', errors.Unauthenticated),
            (403, b'["no","status"]', errors.Forbidden),
            (404, b'"a string"', errors.Missing),
            (409, b'{"kind":"Status","details":{"causes":[7,{}]}}', errors.Stale),
            (422, b'{"kind":"Status","details":[]}', errors.Invalid),
            (503, b"<html>\xff</html>", errors.Unavailable),
        ],
    )
    def test_takes_any_body_and_goes_by_the_code(self, code, content, kind):
        error = errors.from_answer(code, content, after=3.0)

        assert type(error) is kind
        assert (error.code, error.after) == (code, 3.0)
        assert str(error)

    def test_says_the_code_when_nothing_else_was_said(self):
        assert str(errors.from_answer(418, b"")) == "HTTP 418"

    def test_ignores_a_code_that_is_no_number(self):
        assert errors.from_status({"code": "x"}).code == 0

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            (500, "etcdserver: request is too large"),
            (413, "Request entity too large: limit is 3145728"),
            (413, ""),
            (422, "Too long: may not be more than 1048576 bytes"),
        ],
    )
    def test_what_is_too_large_to_be_stored_is_refused_for_good(self, code, message):
        error = errors.from_status({"code": code, "message": message})

        assert isinstance(error, errors.Invalid)


class TestKubeError:
    def test_falls_back_to_its_name(self):
        assert str(errors.Stale()) == "Stale"

    def test_is_cut_to_one_readable_line(self):
        line = errors.one_line("a\n b\t" + "c" * 600, limit=10)

        assert line == "a b ccccc…"

    def test_dropped_was_sent_and_unreachable_says_so_itself(self):
        assert errors.Dropped("x").sent
        assert not errors.Unreachable("x", sent=False).sent
        assert errors.Throttled("x", after=2.0).after == 2.0


PATCH = 'cannot patch resource "secrets" in API group'


class TestWithheld:
    """Of a write to a Secret, words that may repeat a value are not shown; others are."""

    OWN = 'Secret "s" is invalid: data: Forbidden: field is immutable when `immutable` is set'

    @staticmethod
    def of(message: str, *reasons: str, code: int = 422) -> errors.KubeError:
        causes = [{"field": "data", "message": message, "reason": one} for one in reasons]
        error = errors.from_status(
            {"message": message, "code": code, "details": {"causes": causes}}
        )
        error.withhold()
        return error

    @pytest.mark.parametrize(
        ("message", "reasons"),
        [
            ('namespaces "shop" not found', ()),
            (
                f'secrets "s" is forbidden: User "u:x" {PATCH} "" in the namespace "shop"',
                (),
            ),
            (OWN, ("FieldValueForbidden",)),
            (OWN, ("FieldValueRequired", "FieldValueTooLong")),
        ],
    )
    def test_the_servers_own_are_shown(self, message: str, reasons: tuple[str, ...]) -> None:
        assert details(self.of(message, *reasons)) == (
            tuple(dict.fromkeys(f"data: {message}" for _ in reasons)) or (message,)
        )

    @pytest.mark.parametrize(
        ("message", "reasons"),
        [
            ("hunter2 is a bad password", ()),
            ('namespaces "hunter2 is bad" not found', ()),
            ('admission webhook "w" denied the request: namespaces "hunter2" not found', ()),
            (f'admission webhook "w" denied the request: hunter2 {OWN}', ("FieldValueForbidden",)),
            (
                f'secrets "s" is forbidden: User "u" {PATCH} "" in the namespace "shop": hunter2',
                (),
            ),
            ('Secret "s" is invalid: hunter2', ()),
            ('Secret "s" is invalid: data: Invalid value: "hunter2"', ("FieldValueInvalid",)),
            (f"hunter2 {OWN}", ("FieldValueForbidden",)),
            ('Secret.x.example "s" is invalid: hunter2', ("FieldValueForbidden",)),
        ],
    )
    def test_all_others_are_not(self, message: str, reasons: tuple[str, ...]) -> None:
        found = self.of(message, *reasons)

        assert "hunter2" not in f"{found}{details(found)}{found.causes}{found.status}{found.args}"
        assert found.message.startswith("refused with 422")
