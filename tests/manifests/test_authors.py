"""The policy on authors: the guide's table names whom it is about, and what they need."""

from __future__ import annotations

import re

from hedgerow.deploy.authors import policy
from hedgerow.deploy.names import Names
from hedgerow_testing.generate import ROOT
from support.operator.registered import ALL

GUIDE = (ROOT / "docs/guides/policy.md").read_text("utf-8")
TABLE = GUIDE.partition("\n| On | Annotations |")[2].partition("\n\n")[0]
ASKED = re.compile(r'resource\("(\w+)"\)')
JUDGED = re.compile(r'request\.resource\.resource == "(\w+)"')


def told() -> dict[str, set[str]]:
    """Return what the guide says is needed, by the kind on which something is asked."""
    found: dict[str, set[str]] = {}
    for row in TABLE.splitlines()[2:]:
        on, _, needed = (cell.strip() for cell in row.strip("|").split("|"))
        for kind in re.sub(r" \(.*\)", "", on).lower().split(", "):
            found[kind] = set(re.findall(r"[a-z]+s\b", needed.removeprefix("the kind itself")))
            found[kind] |= {kind} if "the kind itself" in needed else set()
    return found


def required() -> dict[str, set[str]]:
    """Return what the policy asks for, by the kind on which something is asked."""
    made, _ = policy(Names(), ALL.controllers)
    found: dict[str, set[str]] = {}
    for one in made["spec"]["validations"]:
        (kind,), (needed,) = (sign.findall(one["expression"]) for sign in (JUDGED, ASKED))
        found.setdefault(kind, set()).add(needed)
    return found


def test_the_guide_has_a_row_for_each_kind_with_what_its_authors_need():
    assert required().keys() == {
        "bluegreens", "cronjobs", "deployments", "guestbooks", "memcacheds", "namespaces",
        "statefulsets",
    }  # fmt: skip
    assert told() == required()
