from __future__ import annotations

import pytest

from hedgerow.fields.managed_fields import Holder
from hedgerow.fields.redaction import HIDDEN
from hedgerow.fields.sets import Values
from hedgerow_tools.fields.transfers import (
    Change,
    MoveRefused,
    are_meant,
    changes,
    holdings,
    patterns,
    shown,
)
from support.objects.judged import OTHER, OURS, live, want

REPLICAS, DATA = ("f:spec", "f:replicas"), ("f:data", "f:key")
NOTE = ("f:metadata", "f:annotations", "f:a")


def secret() -> dict[str, object]:
    obj = want("Secret", "v1", data={"key": "c2VjcmV0"}, type="Opaque")
    return {**obj, "metadata": {**obj["metadata"], "annotations": {"a": "copy"}}}


class TestValues:
    def test_a_secret_s_are_hidden_but_for_what_is_none(self):
        assert shown(Values(secret()), DATA) == shown(Values(secret()), NOTE) == HIDDEN
        assert shown(Values(secret()), ("f:type",)) == "Opaque"
        assert shown(Values({**secret(), "kind": "ConfigMap"}), DATA) == "c2VjcmV0"

    def test_those_that_differ_are_told(self):
        before, after = want(spec={"replicas": 5, "b": 1}), want(spec={"replicas": True, "b": 1})
        gone = want(spec={"b": 1})
        places = [REPLICAS, ("f:spec", "f:b"), ("f:spec", "f:never")]

        assert changes(before, after, places) == (Change(".spec.replicas", 5, True),)
        assert changes(before, gone, places) == (Change(".spec.replicas", 5),)
        assert changes(before, before, places) == ()

    def test_a_secret_that_differs_is_told_without_its_values(self):
        after = {**secret(), "data": {"key": "b3RoZXI="}}

        assert changes(secret(), after, [DATA]) == (Change(".data.key", HIDDEN, HIDDEN),)


class TestHoldings:
    def test_each_leaf_has_all_its_holders_in_the_servers_order(self):
        tree = {"f:spec": {"f:replicas": {}}}
        obj = live(want(spec={"replicas": 1}), (OURS, tree), (f"{OTHER}/Update/scale", tree))

        assert holdings(obj) == {
            REPLICAS: (Holder(OURS, "Apply"), Holder(OTHER, "Update", "scale"))
        }


class TestPatterns:
    @pytest.mark.parametrize("field", ["a; B/y: b", "a\nB/y: b", "a;"])
    def test_what_would_be_another_entry_is_no_field(self, field):
        with pytest.raises(MoveRefused, match="is more than a path"):
            patterns(("spec.a", field))

    def test_a_semicolon_in_quotes_is_none_of_that(self):
        assert len(patterns(('b[name="c;d"], e',))) == 2

    def test_each_field_is_read_as_yield_reads_it(self):
        field_policy = patterns(["spec.replicas", ".metadata.**"])

        assert are_meant(field_policy, REPLICAS)
        assert are_meant(field_policy, NOTE)
        assert not are_meant(field_policy, DATA)
        assert are_meant((), DATA)

    def test_what_cannot_be_read_is_refused(self):
        with pytest.raises(MoveRefused, match=r"^'a\.\.b': 'a\.\.b' is no path"):
            patterns(["a..b"])
