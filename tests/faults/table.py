"""Table: what the runs came to, by fault, as docs/explanation/faults.md has it."""

from __future__ import annotations

from typing import Any

Verdicts = list[dict[str, Any]]


def summary(verdicts: Verdicts) -> str:
    """Return a Markdown table: for each fault, runs, passed, the slowest and the busiest."""
    return "\n".join(
        [
            "| Fault | Runs | Passed | Slowest step | Most requests in a second |",
            "|---|--:|--:|--:|--:|",
            *(_row(fault, found) for fault, found in _by("fault", verdicts).items()),
            _row("**all**", verdicts),
        ]
    )


def _by(key: str, verdicts: Verdicts) -> dict[str, Verdicts]:
    groups: dict[str, Verdicts] = {}
    for verdict in verdicts:
        groups.setdefault(verdict[key], []).append(verdict)
    return groups


def _row(name: str, found: Verdicts) -> str:
    longest, busiest = _most("longest", found), _most("busiest", found)
    return f"| {name} | {len(found)} | {_passed(found)} | {longest:.1f} s | {busiest} |"


def _passed(found: Verdicts) -> int:
    return sum(verdict["passed"] for verdict in found)


def _most(key: str, found: Verdicts) -> Any:
    return max((verdict[key] for verdict in found), default=0)
