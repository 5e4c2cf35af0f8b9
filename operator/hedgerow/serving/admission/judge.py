"""Judge: the program that reads one large review, answers it and ends.

`large_reviews` starts it as `python -m hedgerow.serving.admission.judge`. It is given where
a controller is, as `module:name`, and `validate`, `mutate` or `claims`, the review on standard
input, and writes `{"code": …, "answer": …}` to standard output.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from pydantic_core import to_json

from hedgerow.registry import referred
from hedgerow.serving.admission.answering import MEMORY, answered

if TYPE_CHECKING:
    from hedgerow.serving.admission.answering import Verb

SECONDS: Final = 3
"""Seconds of CPU."""
LONGEST: Final = 30
"""Seconds after which it ends by itself, in case its parent process is gone."""
NICENESS: Final = 10
"""All other work of the operator has priority."""


def main() -> None:
    """Answer the review on standard input; the process ends if it exceeds the limits."""
    confine()
    name, verb = sys.argv[1:]
    code, answer = answered(sys.stdin.buffer.read(), referred(name), cast("Verb", verb))
    sys.stdout.buffer.write(to_json({"code": code, "answer": answer}))


def confine() -> None:
    """Limit this process's memory and time; limits that the system does not have are skipped."""
    os.nice(NICENESS)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)  # nothing catches SIGALRM
    limits = {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_CPU: SECONDS,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    main()
