"""Terminal: a console that styles our own words, and that nothing in the words can steer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from hedgerow.texts import escaped, escaped_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment


class Terminal(Console):
    """A console without markup, in whose texts all that is not printable is escaped.

    Colours and the movements of the cursor are not part of a text: they pass.
    """

    def __init__(self, *, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(width=width, stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable, cleaned; also of each part of it."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escaped_lines(segment.text))


def one_line(text: str, style: str = "") -> Text:
    """Return a text in which the ends of lines are escaped as well."""
    return Text(escaped(text), style)
