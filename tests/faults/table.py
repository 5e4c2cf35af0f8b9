"""Table: what the runs came to, by fault, as the README has it."""

from __future__ import annotations

from typing import Any


def summary(verdicts: list[dict[str, Any]]) -> str:
    """Return a Markdown table: for each fault, runs, passed, the slowest and the busiest."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for verdict in verdicts:
        rows.setdefault(verdict["fault"], []).append(verdict)
    lines = [
        "| Fault | Runs | Passed | Slowest step | Most requests in a second |",
        "|---|--:|--:|--:|--:|",
        *(_row(fault, found) for fault, found in rows.items()),
        _row("**all**", verdicts),
    ]
    return "\n".join(lines)


def _row(name: str, found: list[dict[str, Any]]) -> str:
    passed = sum(verdict["passed"] for verdict in found)
    longest = max((verdict["longest"] for verdict in found), default=0)
    busiest = max((verdict["busiest"] for verdict in found), default=0)
    return f"| {name} | {len(found)} | {passed} | {longest:.1f} s | {busiest} |"
