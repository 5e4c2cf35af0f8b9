"""Reports: what is kept of them, and when they are complete."""

from __future__ import annotations

from hedgerow.contract import Key, Report
from hedgerow.runtime.source_reports import ALL, Reports

A, B, C = ("", "a"), ("", "b"), ("", "c")
SOURCE = ("home", "app")
FOUND = {SOURCE: (Report(A, "Secret/app", "NameTaken", "it is somebody's"),)}


class Heard:
    """Reports to one controller, by two resources that there were at the start."""

    def __init__(self) -> None:
        self.reports = Reports()
        self.news: list[Key] = []
        self.there: tuple[Key, ...] | None = None
        self.reports.on_news("sources", self.news.append)
        self.reports.expect("sources", lambda: self.there)

    @property
    def in_use(self) -> bool:
        return self.reports.in_use("sources", SOURCE)


class TestComplete:
    def test_all_count_as_used_until_each_resource_has_reported(self):
        heard = Heard()
        heard.reports.replace("sources", A, {})
        assert heard.in_use

        heard.there = (A, B)
        heard.reports.replace("sources", C, {})
        assert heard.in_use

        heard.reports.forget("sources", B)
        assert not heard.in_use
        assert heard.news == [ALL]

    def test_one_that_is_made_later_is_not_waited_for(self):
        heard = Heard()
        heard.there = (A, B)
        heard.reports.replace("sources", A, {})
        heard.there = (A, B, C)
        heard.reports.replace("sources", B, {})

        assert not heard.in_use

    def test_what_is_in_use_is_what_was_reported(self):
        heard = Heard()
        heard.there = (A,)
        heard.reports.replace("sources", A, FOUND)
        assert heard.in_use
        assert heard.reports.of("sources", SOURCE) == FOUND[SOURCE]

        heard.reports.forget("sources", A)
        assert not heard.in_use
        assert heard.reports.of("sources", SOURCE) == ()


class TestKept:
    def test_nothing_is_kept_of_resources_that_come_and_go(self):
        heard = Heard()
        heard.there = (A,)  # which cannot be read, and never reports
        for number in range(100):
            key = ("", f"short-lived-{number}")
            heard.reports.replace("sources", key, FOUND)
            heard.reports.forget("sources", key)

        received = heard.reports._received["sources"]
        assert (received.by, received.found, received.reports.left) == ({}, {}, {A})
