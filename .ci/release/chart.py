"""Chart: packages manifests/chart as `helm package` does, as the same bytes each time."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from archives import packed

CHART = Path(__file__).parents[2] / "manifests" / "chart"


def archive(chart: Path) -> bytes:
    """Return the chart as a compressed tar archive, each file below the chart's name."""
    # Helm looks for Chart.yaml first.
    found = sorted(chart.rglob("*"), key=lambda path: (path.name != "Chart.yaml", path))
    name = about(chart, "name")
    return packed({f"{name}/{one.relative_to(chart)}": one for one in found if one.is_file()})


def about(chart: Path, key: str) -> str:
    """Return a value of Chart.yaml."""
    text = (chart / "Chart.yaml").read_text("utf-8")
    found = re.search(rf"(?m)^{key}: (.*)$", text)
    if found is None:
        raise ValueError(f"no {key} in {chart / 'Chart.yaml'}")
    return found[1]


def main() -> None:
    """Write NAME-VERSION.tgz, which `helm install` and `helm push` take, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("dist"), help="the directory for it")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{about(CHART, 'name')}-{about(CHART, 'version')}.tgz"
    path.write_bytes(archive(CHART))
    print(path)


if __name__ == "__main__":
    main()
