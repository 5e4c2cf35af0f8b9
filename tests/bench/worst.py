"""`python -m bench.worst`: what the largest objects that are let in cost, by entry point.

Each entry point of the pure part is called with the object of each situation; what is printed is
the CPU time of the best of some calls in the worst situation. The event loop bears 50 ms.
"""

from __future__ import annotations

import gc
import time

from hedgerow.encoding import encode
from hedgerow.plan.too_large import most_values
from plan.worst import ENTRIES, SITUATIONS, admitted

CALLS = 5


def main() -> None:
    """Print the table."""
    worst: dict[str, tuple[float, str]] = {}
    gc.disable()
    for where in SITUATIONS:
        case = admitted(where)
        text = encode(case.live)
        print(f"{where}: {case.size} items, {len(text)} bytes, {most_values(text)} values at most")
        for name, work in ENTRIES.items():
            taken = []
            for _ in range(CALLS):
                began = time.process_time()
                work(case)
                taken.append(time.process_time() - began)
            worst[name] = max(worst.get(name, (0.0, "")), (min(taken), where))
    print("| entry point | ms | situation |\n|---|---|---|")
    for name, (seconds, where) in sorted(worst.items(), key=lambda one: -one[1][0]):
        print(f"| {name} | {seconds * 1000:.1f} | {where} |")


if __name__ == "__main__":
    main()
