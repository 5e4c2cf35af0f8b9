"""Errors: those that people read, in one line."""


class OneLineError(Exception):
    """A problem and its remedy, if there is one, as one line that is shown as it is."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
