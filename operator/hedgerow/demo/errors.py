"""DemoError: what the demo claims and the API server does not show."""


class DemoError(Exception):
    """A problem and what to look at, as one line."""

    explains_itself = True

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")


class UnheardError(DemoError):
    """Whoever read what the demo prints went away: there is nothing to investigate."""
