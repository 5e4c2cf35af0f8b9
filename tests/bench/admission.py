"""`task bench -- --admission 2000`: how long an API server waits for a review.

A client in Go, as the API server is one, sends the review of a new BlueGreen again and again over
one connection, to an operator that has nothing else to do.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench.scale import Alone
from serving.serving import pair

ADMISSION_MARKS = "<!-- admission -->", "<!-- /admission -->"
CLIENT = Path(__file__).parent / "admission-go"
WEBHOOKS = "127.0.0.1", 19443
GROUP = {"group": "app.demo.kakao.com", "version": "v1"}
COLUMNS = {"n": "reviews", "p50_ms": "p50, ms", "p99_ms": "p99, ms", "max_ms": "max, ms"}

Latency = dict[str, float]


class Admission(Alone):
    """An operator that serves webhooks."""

    def __init__(self, servers: Path, command: str) -> None:
        super().__init__(servers, command)
        folder = Path(self._work.name)
        pair(folder)
        bind = ":".join(map(str, WEBHOOKS))
        options = f"--webhooks --webhook-bind-address {bind} --certificate-directory {folder}"
        self._operator.cmd += f" {options}"
        self._url = f"https://{bind}/validate-app-demo-kakao-com-v1-bluegreen"
        self._review = folder / "review.json"

    def measure(self, client: Path, number: int) -> Latency:
        """Return how long so many reviews took, one after the other."""
        run = self._run
        self._review.write_text(json.dumps(review(run.bluegreen(run.NS, "new"))), "utf-8")
        with self._running():
            if run.until(_is_open, 60, self._operator) is None:
                raise RuntimeError(self._log.read_text("utf-8"))
            command = [client, "-url", self._url, "-review", self._review, "-n", str(number)]
            asked = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        return latency(json.loads(asked.stdout))


def _is_open() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(WEBHOOKS) == 0


def review(new: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an API server asks about a BlueGreen that somebody creates."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {**GROUP, "kind": "BlueGreen"},
            "resource": {**GROUP, "resource": "bluegreens"},
            "operation": "CREATE",
            "namespace": new["metadata"]["namespace"],
            "name": new["metadata"]["name"],
            "userInfo": {"username": "bench", "groups": ["system:authenticated"]},
            "object": new,
        },
    }


def latency(took: list[float]) -> Latency:
    """Return the figures of answers that took so many milliseconds."""
    ordered = sorted(took)
    return {
        "n": len(ordered),
        "p50_ms": round(median(ordered), 2),
        "p99_ms": round(ordered[-1 - len(ordered) // 100], 2),
        "max_ms": round(ordered[-1], 2),
    }


def of_admission(found: Latency) -> Iterator[str]:
    """Yield the lines of the table."""
    if found:
        yield f"| {' | '.join(COLUMNS.values())} |"
        yield "|" + "--:|" * len(COLUMNS)
        yield f"| {' | '.join(f'{found[name]:,}' for name in COLUMNS)} |"
