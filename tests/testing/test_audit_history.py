"""What an audit log tells of each write: what kind it was, and the object before and after it."""

from __future__ import annotations

import pytest

from hedgerow.fields.sets import ABSENT
from hedgerow_testing.audit.judging.causes import adds_only, causes, respelled, taker
from hedgerow_testing.audit.judging.history import History, LoggedWrite, moment
from support.objects.audited import KEY, USER, entry, widget

BODY = {"apiVersion": "example.org/v1", "kind": "Widget"}
KINDS = {
    "apply": ("patch", BODY, "fieldManager=w", "apply"),
    "forced": ("patch", BODY, "fieldManager=w&force=true", "forced apply"),
    "merge": ("patch", {"spec": {}}, "fieldManager=w", "merge patch"),
    "json": ("patch", [], "", "JSON patch"),
    "put": ("update", {}, "", "whole-object update"),
    "delete": ("delete", None, "", "delete"),
}
INTERVAL = ("f:spec", "f:interval")
HELD = {"f:spec": {"f:interval": {}}}


def written(*entries) -> list[LoggedWrite]:
    return [write for _, write in History().read_entries(entries) if write]


def changed(before, after, verb="patch", body=BODY, query="fieldManager=w") -> LoggedWrite:
    """Return the write that made one object of another."""
    return written(entry("create", before, user="author"), entry(verb, after, body, query=query))[1]


class TestHistory:
    @pytest.mark.parametrize(("verb", "body", "query", "what"), KINDS.values(), ids=list(KINDS))
    def test_a_write_is_named_by_its_kind(self, verb, body, query, what):
        ((request, _),) = History().read_entries([entry(verb, widget(), body, query=query)])

        assert request.what == what
        assert request.evidence.what == what
        assert request.manager == ("w" if "fieldManager" in query else "")

    def test_a_request_is_shown_with_its_time_and_body(self):
        body = {"metadata": {"name": "a", "managedFields": [{}]}, "spec": {"text": "x" * 3000}}
        entries = [
            entry("update", widget(), body, second=1.5),
            entry("update", widget(), {"data": {"a": "c2VjcmV0"}}, resource="secrets"),
            entry("delete", None),
        ]

        shown, hidden, none = (one.evidence for one, _ in History().read_entries(entries))

        assert shown.at == "2026-11-25T10:00:01.500+00:00"
        assert shown.body.startswith('{"metadata": {"name": "a"}, "spec": {"text": "xxx')
        assert len(shown.body) <= 2000
        assert (hidden.body, none.body) == ("(hidden)", "")

    def test_the_last_answer_is_what_was_before_the_next_write(self):
        history, first, second = History(), widget(), widget()
        entries = [entry("create", first), entry("patch", second), entry("get")]

        found = [write for _, write in history.read_entries(entries)]

        assert [(one.before, one.after) for one in found[:2] if one] == [
            (None, first),
            (first, second),
        ]
        assert found[2] is None
        assert history.state(KEY) == second
        assert history.states() == (second,)
        assert len(history.writes_of(KEY)) == 2

    def test_what_stored_nothing_is_no_write(self):
        virtual = {"apiGroup": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"}

        assert not written(
            entry("patch", widget(), code=409),
            entry("patch", widget(), query="dryRun=All"),
            entry("create", {}, **virtual),
            {**entry("patch", widget()), "stage": "ResponseStarted"},
        )

    def test_a_write_is_empty_if_the_version_stays(self):
        same = widget()

        _, empty, other = written(
            entry("create", same), entry("patch", same), entry("patch", widget())
        )

        assert empty.is_empty
        assert not other.is_empty
        assert not written(entry("create", same))[0].is_empty

    def test_an_object_lives_on_while_a_finalizer_holds_it(self):
        held = widget(deletionTimestamp="now", finalizers=["x"])
        history = History()

        *_, (_, last) = history.read_entries([entry("create", widget()), entry("delete", held)])
        assert history.state(KEY) == held
        assert last
        assert last.after == held

        released = widget(deletionTimestamp="now")
        ((_, last),) = history.read_entries([entry("patch", released)])
        assert history.state(KEY) is None
        assert last
        assert last.after is None
        assert not last.is_empty
        assert last.object.kind == "Widget"

    @pytest.mark.parametrize("verb", ["delete", "deletecollection"])
    def test_a_deleted_object_is_gone(self, verb):
        history = History()

        list(history.read_entries([entry("create", widget()), entry(verb, {"kind": "Status"})]))

        assert history.states() == ()

    def test_a_subresource_that_answers_another_kind_changes_the_version(self):
        scale = {"kind": "Scale", "metadata": {"resourceVersion": "9"}, "spec": {"replicas": 2}}
        history, live = History(), widget({"replicas": 1})

        list(
            history.read_entries(
                [entry("create", live), entry("patch", scale, subresource="scale")]
            )
        )

        state = history.state(KEY)
        assert state
        assert state["metadata"]["resourceVersion"] == "9"
        assert (live["spec"], state["spec"]) == ({"replicas": 1}, {"replicas": 2})
        assert not written(entry("patch", scale, subresource="scale"))[0].after

    def test_one_that_changes_no_number_changes_the_version_alone(self):
        eviction = {"kind": "Status", "metadata": {"resourceVersion": "9"}, "spec": {"x": 2}}
        history, live = History(), widget({"replicas": 1})

        list(
            history.read_entries(
                [entry("create", live), entry("create", eviction, subresource="x")]
            )
        )

        state = history.state(KEY)
        assert state
        assert state["metadata"]["resourceVersion"] == "9"
        assert state["spec"] == live["spec"]

    def test_a_generated_name_is_in_the_answer(self):
        made = widget(generateName="demo-", name="demo-hwdrq")
        (write,) = written(entry("create", made, name=""))

        assert write.object.key == "Widget.example.org/demo-*"
        assert str(write.object) == "Widget shop/demo-hwdrq"

    def test_an_unknown_object_is_told_by_its_address(self):
        (write,) = written(entry("delete", None))

        assert str(write.object) == "widgets shop/demo"

    def test_a_time_is_read_and_what_is_none_is_zero(self):
        assert moment("1970-01-01T00:00:01Z") == 1
        assert moment("soon") == 0


CAUSES = {
    "spelling by a patch": (
        changed(widget({"interval": "60s"}), widget({"interval": "1m0s"}), body={}),
        ("other-spelling", "patch"),
    ),
    "a default": (
        changed(widget(), widget({"interval": "1m"}), "update"),
        ("default-written-back", "whole-object-update"),
    ),
    "a finalizer": (
        changed(widget(), widget({"interval": "1m"}, finalizers=["x"]), "update"),
        ("default-written-back", "finalizer-by-update"),
    ),
    "a finalizer that goes": (
        changed(widget(finalizers=["x"]), widget({"interval": "1m"}), "update"),
        ("default-written-back", "finalizer-by-update"),
    ),
    "an annotation": (
        changed(widget({"interval": "1"}), widget({"interval": "2"}, labels={"a": "b"}), "update"),
        ("annotation-by-update",),
    ),
    "labels that are lost": (
        changed(widget({"interval": "1"}, labels={"a": "b"}), widget({"interval": "2"}), "update"),
        ("whole-object-update",),
    ),
    "by force": (
        changed(
            widget({"interval": "1"}), widget({"interval": "2"}), query="fieldManager=w&force=1"
        ),
        ("forced-apply",),
    ),
    "the same value": (
        changed(widget({"interval": "1"}), widget({"interval": "1"}, {"w": HELD})),
        ("same-value-apply",),
    ),
    "another value, unforced": (
        changed(widget({"interval": "1"}), widget({"interval": "2"})),
        ("patch",),
    ),
    "made so": (written(entry("create", widget({"interval": "1"})))[0], ("create",)),
    "nobody": (None, ("unknown",)),
}
ALIKE = {
    "durations": ("60s", "1m0s"),
    "a part of a duration": ("1.5h", "90m"),
    "a duration without a whole": (".5s", "500ms"),
    "no time": ("0", "0s"),
    "quantities": ("1000m", "1"),
    "a number as text": ("1", 1),
    "case": ("Info", "INFO"),
    "blanks": ("a ", "a"),
    "a bool as text": ("true", True),
    "times": ("2026-11-25T10:00:00+00:00", "2026-11-25T10:00:00Z"),
    "in a map": ({"a": "60s", "b": 1}, {"a": "1m", "b": 1}),
    "in a list": (["1000m"], ["1"]),
    "in another order": (["a", "b"], ["b", "a"]),
}
UNLIKE = {
    "the same": ("a", "a"),
    "other durations": ("60s", "61s"),
    "a duration without a unit": ("30", "30s"),
    "nothing": (ABSENT, "a"),
    "gone": ("a", ABSENT),
    "other keys": ({"a": 1}, {"b": 1}),
    "other items": (["a"], ["b"]),
    "more items": (["a"], ["a", "b"]),
    "other kinds": ({}, []),
    "null": (None, ""),
    "long texts": ("a" * 300, "A" * 300),
}


class TestCauses:
    @pytest.mark.parametrize(("write", "why"), CAUSES.values(), ids=list(CAUSES))
    def test_a_cause_is_told_by_what_the_write_did(self, write, why):
        assert causes(write, INTERVAL) == why

    @pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=list(ALIKE))
    def test_another_spelling_is_known(self, one, other):
        assert respelled(one, other)
        assert respelled(other, one)

    @pytest.mark.parametrize(("one", "other"), UNLIKE.values(), ids=list(UNLIKE))
    def test_another_value_is_none(self, one, other):
        assert not respelled(one, other)

    def test_what_is_filled_in_is_told_from_what_is_changed(self):
        assert adds_only(ABSENT, 1)
        assert adds_only({"a": {}}, {"a": {"b": 1}})
        assert not adds_only({"a": 1}, {"a": 2, "b": 1})
        assert not adds_only({"a": 1}, {"a": 1})
        assert not adds_only(ABSENT, ABSENT)
        assert not adds_only(1, 2)
        assert adds_only([{"a": 1}, 2], [{"a": 1, "b": {}}, 2])
        assert not adds_only([1], [1])
        assert not adds_only([1], [1, 2])

    def test_the_last_write_that_took_a_field_is_found(self):
        first, second = widget({"interval": "1"}), widget({"interval": "2"}, {"w": HELD})
        writes = written(
            entry("create", first, user="author"),
            entry("patch", second),
            entry("patch", widget({"interval": "2"}, {"w": HELD})),
        )

        found = taker(writes, INTERVAL, USER)

        assert found is writes[1]
        assert taker(writes, ("f:spec", "f:other"), USER) is None
        assert taker(writes[:1], INTERVAL, USER) is None
