"""Version: which Kubernetes is too old, in one sentence."""

from pathlib import Path

import pytest

from hedgerow.version import OLDEST_KUBERNETES, untested
from hedgerow_testing.sandbox.pins import numbers, releases

TOLD = "Kubernetes 1.29 is not supported: 1.35 is the oldest that is"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"gitVersion": "v1.29.4-eks-036c24b"}, TOLD),
        ({"gitVersion": "v1.35.0"}, ""),
        ({"gitVersion": "v1.99.0+rke2"}, ""),
        ({"gitVersion": "unknown"}, ""),
        ({"gitVersion": None}, ""),
        ({}, ""),
    ],
)
def test_a_release_that_is_not_supported_any_more_is_told_of(answer, told):
    assert untested(answer) == told


def test_the_oldest_that_is_supported_is_the_oldest_that_is_tested():
    assert numbers(releases()[-1].version)[:2] == OLDEST_KUBERNETES


def test_the_page_tells_of_each_version_that_is_pinned():
    page = Path("docs/reference/kubernetes-versions.md").read_text("utf-8")
    (head,) = (line for line in page.splitlines() if line.startswith("| What hedgerow uses"))
    minors = [".".join(release.version.split(".")[:2]) for release in reversed(releases())]

    assert [cell.strip() for cell in head.strip("|").split("|")[1:]] == minors
    assert f"those of {minors[-1]} |" in page
