"""DemoError: a sentence of the demo that the API server does not confirm."""

from hedgerow.errors import OneLineError


class DemoError(OneLineError):
    """A problem and what to do about it, in one line."""


class UnheardError(DemoError):
    """The reader of the demo's output is gone: there is nothing to investigate."""
