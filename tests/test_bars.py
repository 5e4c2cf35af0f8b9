"""Bars: what counts towards the coverage, and what is too little."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
from slipcover import Slipcover
from slipcover.importer import SlipcoverLoader

from support.code.bars import Lines, reaches, together

SOURCE = """\
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from nowhere import Something


class Named(Protocol):
    @property
    def name(self) -> str:
        '''Its name.'''
        ...


def f(x: int) -> str:
    for _ in range(x):
        if x > 1:
            return "many"
    match x:
        case 1:
            return "one"
        case 0:
            return "none"
    raise NotImplementedError
"""


@pytest.fixture
def missing(tmp_path: Path) -> Callable[..., list[str]]:
    """Run the source in some processes, each of them with numbers; return what did not run."""

    def missing(*processes: tuple[int, ...]) -> list[str]:
        path = tmp_path / "made.py"
        path.write_text(SOURCE)
        files = together([ran(str(path), each) for each in processes], [str(tmp_path)])
        (lines,) = files.values()
        return lines.missing

    return missing


def ran(path: str, numbers: tuple[int, ...]) -> Any:
    noted = Slipcover(branch=True)
    loader = SlipcoverLoader(noted, SourceFileLoader("made", path), path)
    spec = spec_from_loader("made", loader, origin=path)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    for number in numbers:
        module.f(number)
    return noted.get_coverage()


def test_what_runs_in_any_process_runs(missing):
    assert missing((1, 2), (0,)) == []
    assert missing((1,), (2,)) == ["21", "22", "18->22"]


def test_a_branch_has_to_be_taken_whether_it_leads_to_other_lines_or_not(missing):
    assert missing((2, 0)) == ["20", "16->15", "18->20"]
    assert missing((1, 0)) == ["17", "16->17"]


def test_what_nothing_imports_is_missing(missing):
    assert {"1", "14", "22", "16->15", "18->22"} <= {*missing()}


def test_nothing_may_be_missing_where_all_is_to_run():
    assert reaches({"a.py": Lines(9999, [])}, 100)
    assert not reaches({"a.py": Lines(9999, ["1"])}, 100)
