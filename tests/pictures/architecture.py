"""Architecture: a picture of the layers, which a test holds against .importlinter."""

from __future__ import annotations

from typing import NamedTuple

from pictures.drawing import arrow, box, picture, text

_TITLE = "The layers of hedgerow, and what passes between them"


class Part(NamedTuple):
    """A package, and what is in it."""

    name: str
    what: str
    pure: bool = False


ROWS = (
    (
        Part("hedgerow.cli", "the commands"),
        Part("hedgerow.testing", "the test kit, audits of operators"),
    ),
    (
        Part("hedgerow.process", "one operator: leadership, signals"),
        Part("hedgerow.serving", "webhooks, metrics, health"),
    ),
    (
        Part("hedgerow.runtime", "caches, work queue, passes, applies"),
        Part("hedgerow.controllers", "a resource's children and status", pure=True),
    ),
    (
        Part("hedgerow.kube", "watches, requests, credentials"),
        Part("hedgerow.plan", "what to write, what is contested", pure=True),
    ),
    (
        Part("hedgerow.contract", "what a controller gets and returns", pure=True),
        Part("hedgerow.fields", "who holds which field", pure=True),
    ),
    (
        Part("hedgerow.sandbox", "an API server on this machine"),
        Part("hedgerow_schemas", "the resources and their definitions", pure=True),
    ),
)
"""Top down: nothing imports what is in a row above it."""

_LEFT, _RIGHT, _WIDE, _HIGH, _STEP, _TOP = 56, 396, 288, 56, 82, 88


def draw() -> str:
    """Return the layers, and the way of one pass through them."""
    told = (
        "A part uses nothing in a row above it. A pass: kube sees a change, runtime asks the"
        " controller and the plan, which are pure functions, and applies the result through kube."
    )
    parts = [
        text(20, 34, "How hedgerow is built", "ink b l"),
        text(20, 60, "A part uses nothing in a row above it.", "ink"),
        box(470, 46, 18, 18, "ours-tint", "ours"),
        text(496, 60, "pure: no clock, no network", "ink s"),
    ]
    for number, row in enumerate(ROWS):
        for x, part in zip((_LEFT, _RIGHT), row, strict=True):
            parts += _box(x, _TOP + _STEP * number, part)
    runtime, kube, server = (_TOP + _STEP * row for row in (2, 3, len(ROWS)))
    middle, edge = _HIGH / 2, _LEFT + _WIDE
    parts += [
        box(_LEFT, server, _RIGHT + _WIDE - _LEFT, 40, "plain-tint", "faint"),
        text((_LEFT + _RIGHT + _WIDE) / 2, server + 26, "Kubernetes API server", "ink b", "middle"),
        arrow(f"M{_LEFT - 4} {kube + middle}H28V{server + 20}H{_LEFT - 4}", both=True),
        arrow(f"M{_LEFT + 40} {runtime + _HIGH + 2}V{kube - 3}"),
        arrow(f"M{edge + 4} {runtime + middle}H{_RIGHT - 4}", "ours", both=True),
        arrow(f"M{edge + 2} {runtime + _HIGH + 2}L{_RIGHT - 3} {kube + 1}", "ours", both=True),
    ]
    passes = (
        (28, server - 40, "1"),
        (edge + 26, runtime + middle - 14, "2"),
        (edge + 20, runtime + _HIGH + 38, "3"),
        (_LEFT + 62, runtime + _HIGH + 18, "4"),
    )
    for x, y, number in passes:
        parts += [
            f'<circle class="paper line-faint" cx="{x:g}" cy="{y - 5:g}" r="9"/>',
            text(x, y, number, "ink b s", "middle"),
        ]
    steps = (
        "One pass: 1 a watch shows a change. 2 The controller says which children there should be.",
        "3 The plan says what to write, and what is contested. 4 The runtime applies it, each",
        "controller as a field manager of its own.",
    )
    parts += [text(20, server + 68 + 20 * row, step, "ink s") for row, step in enumerate(steps)]
    return picture((_RIGHT + _WIDE + 16, server + 124), _TITLE, told, parts)


def _box(x: int, y: int, part: Part) -> list[str]:
    kind = ("ours-tint", "ours") if part.pure else ("plain-tint", "faint")
    return [
        box(x, y, _WIDE, _HIGH, *kind),
        text(x + 14, y + 24, part.name, "ink b m"),
        text(x + 14, y + 44, part.what, "ink s"),
    ]
