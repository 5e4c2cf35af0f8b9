"""The fields of a sample as a tree and as a strip, each with who holds it before and after."""

from __future__ import annotations

from hedgerow_testing.audit.judging.findings import FieldHolder, FieldView, SampleView
from hedgerow_testing.audit.judging.holders import managers, rows, runs
from testing.audit.reports import FIELDS, HELM, MANAGER, ORDINARY, WIDGET


def sample(*paths: str, before: tuple[FieldHolder, ...] = (HELM,)) -> SampleView:
    parts = [tuple(f".{name}" for name in path.split(".")[1:]) for path in paths]
    return SampleView(WIDGET, tuple(FieldView(steps, "", before, (HELM,)) for steps in parts))


def test_a_branch_with_one_place_below_it_is_one_row_with_it():
    found = rows(sample(".spec.a.b.c", ".metadata.labels.x", ".spec.a.b.d", ".spec.e"))

    assert [(row.depth, row.name, row.view is None) for row in found] == [
        (0, "metadata.labels.x", False),
        (0, "spec", True),
        (1, "a.b", True),
        (2, "c", False),
        (2, "d", False),
        (1, "e", False),
    ]


def test_a_place_that_has_places_below_it_is_a_row_of_its_own():
    found = rows(sample(".spec.a", ".spec.a.b", "", ".spec.a"))

    assert [(row.depth, row.name) for row in found] == [
        (0, ""), (0, "spec.a"), (0, "spec.a"), (1, "b")
    ]  # fmt: skip


def test_branches_above_a_change_know_of_it():
    found = {row.name: row.has_changed for row in rows(SampleView(WIDGET, FIELDS))}

    assert found == {
        "metadata": True,
        "annotations.example.com/owner": False,
        "finalizers": True,
        "spec": True,
        'ports[name="a.b"]': True,
        "port": True,
        "protocol": True,
        "size": False,
        "timeout": True,
        "unset": True,
    }


def test_fields_in_a_row_that_the_same_hold_are_one_part_of_a_strip():
    strip = runs(SampleView(WIDGET, FIELDS), "before")

    assert [(run.managers, run.count) for run in strip] == [
        (("helm",), 1), ((), 1), (("helm",), 1), ((), 1), (("helm",), 3)
    ]  # fmt: skip
    assert runs(sample(), "after") == ()


def test_managers_are_counted_by_what_they_hold_at_the_end():
    assert managers(ORDINARY) == {"helm": 3, "manager": 4}
    lost = SampleView(
        WIDGET, (FieldView((".spec", ".a"), "", (FieldHolder("", "Apply"),), (MANAGER,)),)
    )
    assert managers(report_of(lost)) == {"?": 0, "manager": 1}


def report_of(view: SampleView):
    from testing.audit.reports import report

    return report(samples=(view,))
