"""The source roots, and what the names in them may be."""

from __future__ import annotations

import operator
import sysconfig
from pathlib import Path

from support.code.sources import ROOT, modules


class TestSourceRoots:
    def test_they_are_no_packages_or_operator_would_shadow_the_standard_library(self):
        assert not (ROOT / "operator" / "__init__.py").exists()
        assert not (ROOT / "schemas" / "__init__.py").exists()

    def test_operator_is_the_standard_librarys(self):
        standard = Path(sysconfig.get_path("stdlib"))

        assert Path(operator.__file__ or "").parent == standard

    def test_they_hold_the_packages_and_no_other(self):
        tops = {module.path.relative_to(ROOT).parts[:2] for module in modules()}

        names = ("hedgerow", "hedgerow_testing", "hedgerow_tools")
        assert tops == {*(("operator", name) for name in names), ("schemas", "hedgerow_schemas")}
