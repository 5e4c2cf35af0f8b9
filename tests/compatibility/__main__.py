"""Compatibility: records what a release promises, which the next one is compared with.

`python -m compatibility` is a step of the release. Without one, the record is that of 0.1.0 to be.
"""

from __future__ import annotations

import json
from pathlib import Path

from compatibility.surface import surface
from hedgerow.version import version

RECORD = Path(__file__).parent / "released.json"


def recorded() -> dict[str, object]:
    """Return the record of the last release."""
    return json.loads(RECORD.read_text("utf-8"))


def written(promised: dict[str, object]) -> str:
    """Return a record as JSON that can be compared line by line."""
    parts: list[str] = []
    for name, value in sorted(promised.items()):
        text = json.dumps(value)
        if isinstance(value, dict):
            lines = [f"{json.dumps(key)}: {_line(below)}" for key, below in sorted(value.items())]
            text = "{\n" + ",\n".join(lines) + "\n}"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))  # the order of parameters counts


if __name__ == "__main__":
    RECORD.write_text(written({"version": version(), **surface()}), "utf-8")
    print(f"{RECORD.name}: what {version()} promises")
