"""Tree view: what is shown of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.cli.following import NOTHING
from hedgerow.cli.program import program_name
from hedgerow.cli.tree.diff import tree_changes
from hedgerow.cli.tree.listing import listed
from hedgerow.cli.tree.terminal import lines, sections
from hedgerow.cli.widths import ENDLESS
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import numbered, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from hedgerow.cli.tree.look import WatchedTrees
    from hedgerow.cli.tree.resources import TreeNode
    from hedgerow.runtime.clock import Clock


class TreesView:
    """The trees of resources; their ages alone are no change."""

    ages = False
    remedy = "enlarge the window, or name one resource"

    def __init__(self, watched: WatchedTrees, clock: Clock | None = None) -> None:
        self._watched, self._clock = watched, clock or SystemClock()
        self._last: Sequence[TreeNode] | None = None

    def data(self) -> dict[str, Any]:
        """Return the trees for programs."""
        return listed(self._watched.trees(), self._watched.unread())

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the trees as lines of columns."""
        return lines(sections(self._watched.trees(), self._clock.now()), width)

    def changes(self) -> Iterator[str]:
        """Yield the whole trees once, and then a line for each change."""
        trees, last = self._watched.trees(), self._last
        self._last = trees
        if last is None:
            whole = lines(sections(trees, self._clock.now()), ENDLESS)
            yield from (line.plain for line in whole) if trees else [NOTHING]
            return
        at = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}"
        for new in tree_changes(last, trees, program_name()):
            yield printable(f"{at} {new.namespace} {new.object}: {new.words}")

    def problems(self) -> dict[str, str]:
        """Return a line for each kind that is missing or may be out of date.

        Kinds that may not be read are counted in one line.
        """
        hidden, unread = self._watched.forbidden, self._watched.unread()
        lines = {
            kind: printable(f"{kind} {why}") for kind, why in unread.items() if kind not in hidden
        }
        if hidden:
            count = numbered(len(hidden), "kind is", "kinds are")
            lines["forbidden"] = printable(
                f"{count} left out, which you may not read here: {', '.join(sorted(hidden))};"
                f" {next(iter(hidden.values()))}"
            )
        return lines
