"""The page of settings: it tells every one of them, and nothing else."""

from __future__ import annotations

from hedgerow.settings import flags
from hedgerow_testing.generate import settings_page


class TestPage:
    def test_every_setting_has_one_row(self):
        rows = [line for line in settings_page().splitlines() if line.startswith("| `")]

        assert len(rows) == len(flags())
        for row, (_, flag) in zip(rows, flags().values(), strict=True):
            assert f"`{flag.long}`" in row
            assert f"`{flag.variable()}`" in row
            assert row.count("|") == 5

    def test_every_group_is_a_section_of_its_own(self):
        page = settings_page()

        for group in {flag.group for _, flag in flags().values()}:
            assert page.count(f"\n## {group}\n") == 1
