"""Parts: a text that is wanted, known by some parts of it."""

from __future__ import annotations


class Part:
    """Equals each text that has all these parts."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and all(text in other for text in self.texts)

    def __hash__(self) -> int:
        return hash(self.texts)

    def __repr__(self) -> str:
        return f"Part{self.texts}"
