"""Chart: the chart in the repository, and Helm as its users run it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hedgerow_testing.api import Object

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "manifests" / "chart"
RELEASE, NAMESPACE = "hedgerow", "hedgerow-system"
KUBERNETES: Final = "1.37.0"
"""The version for which templates are rendered without a server."""
HOOK: Final = "helm.sh/hook"

Identity = tuple[str, str, str]


@dataclass(frozen=True)
class Helm:
    """One of the programs, with a home of its own, at a server or at none."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def __call__(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run it; one that fails fails the test, unless it may."""
        places = {f"HELM_{name}_HOME": str(self.home) for name in ("CACHE", "CONFIG", "DATA")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **places}
        environment |= {"KUBECONFIG": str(self.kubeconfig or os.devnull)}
        command = [str(word) for word in (self.program, *words)]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert ended.returncode == 0 or not check, f"{command}: {ended.stderr}"
        return ended

    def rendered(self, values: Mapping[str, Any], chart: Path = CHART) -> dict[Identity, Object]:
        """Return what a chart makes of values, hooks left out, by kind, namespace and name."""
        text = self("template", RELEASE, chart, *_at_home(), *given(values)).stdout
        found = [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]
        objects = [one for one in found if HOOK not in one["metadata"].get("annotations", {})]
        return {identity(one): one for one in objects}

    def refusal(self, values: Mapping[str, Any]) -> str:
        """Return why values are refused; raises AssertionError if they are not."""
        ended = self("template", RELEASE, CHART, *_at_home(), *given(values), check=False)
        assert ended.returncode != 0, "it was rendered"
        return ended.stderr


def identity(obj: Object) -> Identity:
    """Return kind, namespace and name."""
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def given(values: Mapping[str, Any]) -> list[str]:
    """Return values as arguments."""
    return [part for name, one in values.items() for part in _given(name, one)]


def _given(name: str, value: Any) -> tuple[str, str]:
    return "--set-json", f"{name}={json.dumps(value)}"


def _at_home() -> tuple[str, ...]:
    return "--namespace", NAMESPACE, "--kube-version", KUBERNETES


def previous(directory: Path) -> Path:
    """Return the chart as an earlier version may have been.

    Its definition of Memcached lacks a field.
    """
    chart = Path(shutil.copytree(CHART, directory / "previous"))
    edit(chart / "Chart.yaml", r"(?m)^((?:appV|v)ersion): .*$", r"\1: 0.0.9")
    [memcacheds] = (chart / "definitions").glob("*_memcacheds.yaml")
    edit(memcacheds, r" +priorityClassName:\n(?: {16,}.*\n)+?(?= +required:)", "")
    return chart


def edit(path: Path, pattern: str, instead: str) -> None:
    """Change a file; raises AssertionError if the pattern is nowhere in it."""
    text, number = re.subn(pattern, instead, path.read_text("utf-8"))
    assert number, f"{pattern} in {path}"
    path.write_text(text, "utf-8")
