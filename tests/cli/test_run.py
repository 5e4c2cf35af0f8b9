"""hedgerow run: what its flags become, and what it refuses before it begins."""

from __future__ import annotations

import pytest

from hedgerow import app, preflight
from hedgerow.cli import main, run
from hedgerow.settings import Settings


@pytest.fixture
def began(monkeypatch):
    """Record the settings of each step instead of taking it."""
    steps: list[tuple[str, Settings]] = []

    def recorder(name):
        async def step(settings):
            steps.append((name, settings))

        return step

    monkeypatch.setattr(preflight, "look", recorder("look"))
    monkeypatch.setattr(app, "run", recorder("run"))
    monkeypatch.setattr(run, "configure", lambda *_, **__: None)
    return steps


def typed(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["run", *words])
    return int(ended.value.code or 0)


class TestFlags:
    @pytest.mark.parametrize(
        ("words", "settings"),
        [
            ((), Settings()),
            (("--controllers", "bluegreen"), Settings(controllers=("bluegreen",))),
            (("--controllers", "bluegreen,"), Settings(controllers=("bluegreen",))),
            (("-n", "a", "--namespace", "b"), Settings(namespaces=("a", "b"))),
            (("--instance", "two"), Settings(instance="two")),
            (("--kubeconfig", "k", "--context", "c"), Settings(kubeconfig="k", context="c")),
            (("--log-format", "json"), Settings(log_format="json")),
            (("--debug",), Settings(debug=True)),
        ],
    )
    def test_they_become_settings_and_what_is_missing_is_said_first(self, began, words, settings):
        assert typed(*words) == 0
        assert began == [("look", settings), ("run", settings)]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--controllers", "bluegreen,nope"), "no controller is called 'nope'; there are: bl"),
            (("-n", "Shop_"), "--namespace takes"),
            (("--instance", "-"), "--instance takes"),
            (("--log-format", "xml"), "'xml' is not one of"),
            (("shop",), "(shop); see `hedgerow run --help`"),
        ],
    )
    def test_what_makes_no_sense_is_refused_before_anything_begins(
        self, began, capsys, words, said
    ):
        assert typed(*words) == 2
        assert said in capsys.readouterr().err
        assert began == []
