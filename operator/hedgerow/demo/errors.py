"""DemoError: a claim of the demo that the API server does not confirm."""


class DemoError(Exception):
    """A problem and what to do about it, in one line."""

    explains_itself = True

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")


class UnheardError(DemoError):
    """The reader of the demo's output is gone: there is nothing to investigate."""
