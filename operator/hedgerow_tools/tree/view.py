"""Tree view: what is shown of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import numbered, printable
from hedgerow_tools.tree.terminal import lines, sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from hedgerow.runtime.clock import Clock
    from hedgerow_tools.tree.look import WatchedTrees
    from hedgerow_tools.tree.members.resources import TreeNode


class Trees(Struct, frozen=True):
    """The trees for programs; `unread` kinds say why."""

    resources: tuple[TreeNode, ...]
    unread: dict[str, str]


class TreesView:
    """The trees of resources."""

    remedy = "enlarge the window, or name one resource"

    def __init__(self, watched: WatchedTrees, clock: Clock | None = None) -> None:
        self._watched, self._clock = watched, clock or SystemClock()

    def data(self) -> Trees:
        """Return the trees for programs."""
        return Trees(self._watched.trees(), self._watched.unread())

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the trees as lines of columns."""
        return lines(sections(self._watched.trees(), self._clock.now()), width)

    def problems(self) -> list[str]:
        """Return a line for each kind that is missing or may be out of date.

        Kinds that may not be read are counted in one line.
        """
        hidden, unread = self._watched.forbidden, self._watched.unread()
        lines = [printable(f"{kind} {why}") for kind, why in unread.items() if kind not in hidden]
        if hidden:
            count = numbered(len(hidden), "kind is", "kinds are")
            lines.append(
                printable(
                    f"{count} left out, which you may not read here: {', '.join(sorted(hidden))};"
                    f" {next(iter(hidden.values()))}"
                )
            )
        return lines
