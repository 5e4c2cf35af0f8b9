"""Programs: the real Helm 4 and Helm 3, built as the sandbox's programs are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import anyio

from hedgerow_testing.sandbox.locks import Progress
from hedgerow_testing.sandbox.pins import Module
from support.programs.gotools import prepared

HELM_4, HELM_3 = "helm4", "helm3"
_HERE: Final = Path(__file__).parent
_PACKAGES: Final = {HELM_4: "helm.sh/helm/v4/cmd/helm", HELM_3: "helm.sh/helm/v3/cmd/helm"}


def module() -> Module:
    """Return the one module of both: they share most of what is compiled."""
    text = (_HERE / "go.mod").read_text("utf-8")
    versions = re.findall(r"helm\.sh/helm/v\d v(\S+)", text)
    [go] = re.findall(r"(?m)^go (\S+)$", text)
    return Module(_HERE, "-".join(sorted(versions, reverse=True)), _PACKAGES, "-s -w", go)


async def prepare(progress: Progress) -> dict[str, Path]:
    """Return the paths of both, building what is not in the cache. Raises SandboxError."""
    return await prepared(module(), progress)


if __name__ == "__main__":
    anyio.run(prepare, print)
