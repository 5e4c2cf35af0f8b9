"""Quiet: `hedgerow` without Normal Events: tests count writes, and some of these are left out."""

from functools import partial

from hedgerow import app
from hedgerow.cli import main
from hedgerow.runtime.events.recorder import Limits


def without_normal_events() -> None:
    """Have the operator of this process publish none."""
    vars(app)["Limits"] = partial(Limits, normal=0)


if __name__ == "__main__":
    without_normal_events()
    main()
