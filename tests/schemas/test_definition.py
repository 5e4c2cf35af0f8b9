from __future__ import annotations

import re

from hedgerow_schemas.definition import (
    DNS_1035_LABEL,
    EDITOR,
    Column,
    Rule,
    Scale,
    list_map,
    named_after,
    rules,
)


class TestColumn:
    def test_a_column_is_always_shown_unless_it_has_a_priority(self):
        assert "priority" not in Column("Ready", ".status.ready", "Whether.").wire()
        assert Column("Why", ".status.why", "Why.", priority=1).wire()["priority"] == 1


class TestRule:
    def test_a_rule_is_told_with_its_message_and_reason(self):
        assert Rule("self.a > 0", "a must be positive").wire() == {
            "rule": "self.a > 0",
            "message": "a must be positive",
            "reason": "FieldValueInvalid",
        }

    def test_a_rule_blames_the_field_it_names(self):
        assert Rule("has(self.a)", "a is missing", path=".a").wire()["fieldPath"] == ".a"

    def test_a_rule_on_creation_spares_what_exists(self):
        wire = Rule("a || b", "no", on_create_only=True).wire()

        assert wire["rule"] == "oldSelf.hasValue() || (a || b)"
        assert wire["optionalOldSelf"] is True

    def test_rules_keep_their_order_and_what_editors_read(self):
        first, second = Rule("a", "A", editor={"required": ["a"]}), Rule("b", "B")
        extra = rules(first, second)

        assert extra["x-kubernetes-validations"] == [first.wire(), second.wire()]
        assert extra[EDITOR] == {"allOf": [{"required": ["a"]}]}

    def test_rules_that_editors_cannot_check_leave_them_alone(self):
        assert EDITOR not in rules(Rule("a", "A"))


class TestScale:
    def test_it_says_where_its_numbers_are(self):
        assert Scale(".spec.a", ".status.b", ".status.c").wire() == {
            "specReplicasPath": ".spec.a",
            "statusReplicasPath": ".status.b",
            "labelSelectorPath": ".status.c",
        }


class TestNamedAfter:
    def test_the_server_and_editors_hear_the_same(self):
        rule = named_after("a Service", 9)
        limits = rule.editor["properties"]["metadata"]["properties"]["name"]

        assert f"size() <= {limits['maxLength']}" in rule.rule
        assert f"matches('{limits['pattern']}')" in rule.rule
        assert "at most 9 characters" in rule.message
        assert "a Service are named after it" in rule.message

    def test_what_exists_is_spared(self):
        assert named_after("a Service", 9).on_create_only

    def test_a_label_begins_with_a_letter_and_ends_with_no_hyphen(self):
        taken = [n for n in ("a", "a-1", "1a", "a-", "A", "a.b") if re.match(DNS_1035_LABEL, n)]

        assert taken == ["a", "a-1"]


class TestListMap:
    def test_a_list_map_names_its_keys(self):
        assert list_map("port", "protocol") == {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        }
