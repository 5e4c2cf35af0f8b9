"""Recordings: what a real API server answered, kept as JSON, and what is leaned on in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from hedgerow.kube import errors

DIRECTORY = Path(__file__).parent / "recorded"
KEPT = ("content-type", "warning", "retry-after")


@dataclass(frozen=True)
class Recording:
    """One answer: HTTP status, the headers that we read, and the body as JSON or text."""

    code: int
    headers: dict[str, str]
    body: Any

    @classmethod
    def of(cls, response: httpx.Response) -> Recording:
        kept = {name: response.headers[name] for name in KEPT if name in response.headers}
        try:
            body = response.json()
        except ValueError:
            body = response.text
        return cls(response.status_code, kept, body)

    @classmethod
    def load(cls, name: str) -> Recording:
        return cls(**json.loads((DIRECTORY / f"{name}.json").read_text("utf-8")))

    def save(self, name: str) -> None:
        text = json.dumps(vars(self), indent=1, sort_keys=True, ensure_ascii=False)
        (DIRECTORY / f"{name}.json").write_text(text + "\n", "utf-8")

    @property
    def content(self) -> bytes:
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()

    def response(self) -> httpx.Response:
        return httpx.Response(self.code, headers=self.headers, content=self.content)

    def error(self, request: str = "") -> errors.KubeError:
        return errors.from_answer(self.code, self.content, request=request)

    def leaned_on(self) -> tuple[object, ...]:
        """Return what hedgerow decides by: all that must still hold with another server."""
        if self.code < 300:
            return self.code, sorted(self.headers)
        error = self.error()
        # A server may tell the same cause twice: those before 1.37 tell one of a wrong uid so.
        causes = {(cause.reason, cause.field, cause.manager) for cause in error.causes}
        return self.code, type(error).__name__, error.reason, sorted(causes), sorted(self.headers)
