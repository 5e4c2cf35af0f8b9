"""Conflict: a picture of two field managers and one field of one object."""

from __future__ import annotations

from hedgerow.demo import acts, samples
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from pictures.drawing import arrow, box, picture, text

_TITLE = "Two field managers, one field: hedgerow overwrites nothing"


def draw() -> str:
    """Return what the demo does in its sixth and seventh act as one picture."""
    name, image = samples.container()
    variable = f"{samples.VARIABLE['name']}={samples.VARIABLE['value']}"
    told = (
        f"A BlueGreen declares image {image} and {variable}. {acts.TAKER} has set the image of the"
        f" Deployment to {samples.IMAGE}. hedgerow applies {variable}, leaves the image as it is,"
        " and reports the conflict on the BlueGreen."
    )
    fields = [
        ("labels", "…", "ours"),
        ("selector", "…", "ours"),
        ("image", samples.IMAGE, "theirs"),
        ("env", variable, "ours"),
    ]
    parts = [
        text(20, 34, _TITLE, "ink b l"),
        # What is declared.
        box(20, 56, 250, 118, "ours-tint", "ours"),
        text(34, 80, "BlueGreen/demo", "ink b"),
        text(34, 104, f"image: {image}", "ink m"),
        text(34, 128, f"env: {variable}", "ink m"),
        text(34, 158, acts.MANAGER, "ours b s"),
        # Who else writes.
        box(410, 56, 250, 118, "theirs-tint", "theirs"),
        text(424, 80, "Somebody else", "ink b"),
        text(424, 104, "kubectl set image …", "ink m"),
        text(424, 128, f"{name}={samples.IMAGE}", "ink m"),
        text(424, 158, acts.TAKER, "theirs b s"),
        # The object.
        box(130, 232, 420, 166, "plain-tint", "frame"),
        text(144, 256, f"Deployment/{acts.GREEN}", "ink b"),
        arrow("M145 178V226", "ours"),
        arrow("M535 178V226", "theirs"),
        text(157, 208, "all other fields", "ours s"),
        text(523, 208, "one field", "theirs s", "end"),
    ]
    managers = {"ours": acts.MANAGER, "theirs": acts.TAKER}
    for row, (field, value, holder) in enumerate(fields):
        y = 266 + 31 * row
        parts += [
            box(144, y, 392, 26, f"{holder}-tint", holder),
            text(156, y + 18, f"{field}: {value}", "ink m"),
            text(524, y + 18, managers[holder], f"{holder} b s", "end"),
        ]
    rows = (
        ("✗ Contested", "alarm b", "the image stays as it is. Status, Events and `hedgerow tree`"),
        ("", "", "say who holds it. Everything else is kept up to date."),
        ("You choose", "ink b", f"leave it to its holder: annotate {YIELD}"),
        ("", "", f"take it back: annotate {CLAIM}, where allowed"),
        ("", "", "agree: declare the same value, and both hold it"),
    )
    for row, (label, kind, words) in enumerate(rows):
        y = 430 + 22 * row + 10 * (row > 1)
        parts += [text(20, y, label, kind)] * bool(label)
        parts.append(text(140, y, words))
    return picture((680, 552), _TITLE, told, parts)
