from __future__ import annotations

from collections.abc import Callable

import pytest

from hedgerow.cli import main


@pytest.fixture
def typing(capsys) -> Callable[..., tuple[int, str, str]]:
    """Type a line; return the exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run
