from __future__ import annotations

import pytest

from hedgerow.core.installations import installation_of
from hedgerow.core.meta import CONTROLLER_LABEL
from support.judged import live, want


@pytest.mark.parametrize(
    ("label", "managers", "instance"),
    [
        ("bluegreen", ["hedgerow-east-bluegreen"], ""),
        ("east.bluegreen", ["hedgerow-bluegreen"], "east"),
        ("east.memcached", [], ""),
        ("", ["hedgerow-east-bluegreen", "kubectl"], "east"),
        ("", ["hedgerow-east-bluegreen", "hedgerow-bluegreen"], ""),
        ("", ["hedgerow-east-bluegreen", "hedgerow-west-bluegreen"], ""),
        ("", ["hedgerow-east-bluegreen/Update"], ""),
        ("", ["hedgerow-east-memcached", "east-bluegreen", "-bluegreen"], ""),
        ("", [], ""),
    ],
)
def test_the_label_tells_else_the_one_that_applied(label, managers, instance):
    obj = live(want(), *((manager, {}) for manager in managers))
    if label:
        obj["metadata"]["labels"] = {CONTROLLER_LABEL: label}

    assert installation_of(obj, "bluegreen").instance == instance
