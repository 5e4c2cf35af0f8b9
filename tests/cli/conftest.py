from __future__ import annotations

from collections.abc import Callable

import pytest

from hedgerow.cli import main
from hedgerow.kube import client
from support.server.apiserver import ApiServer
from support.server.connected import connect


@pytest.fixture
def typing(capsys) -> Callable[..., tuple[int, str, str]]:
    """Type a line; return the exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """Return the API server in memory that commands connect to; their context has `shop`."""
    made = ApiServer(latency=0)
    monkeypatch.setattr(client, "connect", connect(made, "shop"))
    return made
