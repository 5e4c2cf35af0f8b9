"""The picture that is redrawn in place, on terminals of any size."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.live import Live

from hedgerow_tools.render.following import Picture
from hedgerow_tools.tree.view import TreesView
from tools.tree import kin
from tools.tree.kin import owned, pod, tree

NOW = SimpleNamespace(now=lambda: datetime(2026, 1, 1, 12, 5, tzinfo=UTC))
PODS = [pod(f"web-1-{'x' * 30}-{n}", "ReplicaSet web-1", ready=False) for n in range(30)]
FAMILY = tree(owned(kin.DEPLOYMENT, "web", "r"), owned(kin.SET, "web-1", "Deployment web"), *PODS)
WATCHED = SimpleNamespace(
    forbidden={},
    trees=lambda: (FAMILY,),
    unread=lambda: {"Job": "is left out: " + "you may not " * 20},
)


def redrawn(width: int, height: int) -> list[str]:
    """Return the lines of a picture as the terminal shows them."""
    paper = io.StringIO()
    console = Console(
        file=paper, width=width, height=height, force_terminal=True, color_system=None
    )
    live = Live(console=console, auto_refresh=False, transient=False)
    Picture(TreesView(WATCHED, NOW), live).draw()
    console.print(live.get_renderable())
    return paper.getvalue().splitlines()


class TestPicture:
    @pytest.mark.parametrize("width", [20, 40, 80, 300])
    @pytest.mark.parametrize("height", [5, 24, 100])
    def test_it_is_no_wider_and_no_taller_than_the_terminal(self, width, height):
        shown = redrawn(width, height)

        assert max(map(len, shown)) <= width
        assert len(shown) <= height

    def test_what_does_not_fit_is_counted(self):
        whole, part = redrawn(100, 200), redrawn(100, 24)
        *kept, more, _ = part

        assert kept == whole[: len(kept)]
        assert len(kept) == 22
        left = len(whole) - 1 - len(kept)
        assert more.strip() == (f"… {left} more lines: enlarge the window, or name one resource")

    def test_what_fits_is_whole(self):
        assert not any("more lines" in line for line in redrawn(100, 200))
