"""What is said of a contested field, and which of many are listed."""

from __future__ import annotations

import pytest

from hedgerow.plan.conflict_messages import LONGEST_PATH, MOST_LISTED, listed, sentence
from hedgerow_schemas.base import ContestedField

FIELD = ContestedField(
    object="Deployment/web",
    path=".spec.replicas",
    reason="OtherValue",
    declared="2",
    live="3",
    manager="kubectl",
    operation="Update",
    subresource="scale",
)


def field(**more: object) -> ContestedField:
    return FIELD.model_copy(update=more)


ALONE = {"manager": None, "operation": None, "subresource": None}


HOLDER = "kubectl (Update scale)"
GONE = {"reason": "Removed", "live": None, **ALONE}
HELD, ITEM = f"held by {HOLDER}", {"declared": None, "live": "{}"}
SENTENCES = [
    ({}, f"you declare 2, it is 3; {HELD}"),
    ({"live": None}, f"you declare 2, it is not there; {HELD}"),
    ({"operation": None, "subresource": None}, "you declare 2, it is 3; held by kubectl"),
    (ALONE, "you declare 2, it is 3; nobody holds it"),
    ({"reason": None, "declared": None, "live": None}, f"{HELD} with another value"),
    (GONE, "you declare 2, it is not there; it was removed, and nobody holds it"),
    ({**GONE, "live": "4"},
     "you declare 2, it is 4; it was removed or scaled, and nobody holds it"),
    ({**GONE, "declared": None}, "it was removed or scaled, and nobody holds it"),
    ({"reason": "ScaledToZero", "live": "0", **ALONE},
     "you declare 2, it is 0; it was scaled to 0, and the server does not record by whom"),
    ({"reason": "DeclaredNoMore", **ITEM},
     f"it is no longer declared, it is {{}}; it stays, because {HOLDER} holds fields in it"),
    ({"reason": "UnknownOwner", **ITEM},
     f"you declare none, it is {{}}; its owner is unknown ({HOLDER})"),
    ({"path": ".status.routeTo"}, f"hedgerow says 2, it is 3; {HELD}"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "told"), SENTENCES)
def test_a_sentence_says_both_values_and_who_holds_the_field_if_anybody_does(more, told):
    assert sentence(field(**more)) == told


class TestListed:
    MANY = tuple(field(path=f".data.k{number:03}") for number in range(1150))

    def test_at_most_fifty_are_listed(self):
        assert listed(self.MANY, ()) == self.MANY[:MOST_LISTED]

    def test_what_is_listed_already_stays_so_in_its_order(self):
        before = (self.MANY[900], self.MANY[3])

        found = listed(self.MANY, before)

        assert (found[:2], len(found)) == (before, MOST_LISTED)
        assert listed(self.MANY, found) == found

    def test_what_nobody_holds_and_metadata_are_listed_first(self):
        gone = field(path=".spec.x", **ALONE)
        label = field(path=".metadata.labels.a")

        assert listed((*self.MANY, label, gone), self.MANY[:50])[:2] == (gone, label)

    def test_a_path_without_end_is_not_listed(self):
        endless = field(path="." + "x" * LONGEST_PATH)

        assert listed((endless, FIELD), ()) == (FIELD,)
