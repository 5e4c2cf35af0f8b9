"""Chart: packages manifests/chart as `helm package` does, as the same bytes each time."""

from __future__ import annotations

import argparse
import gzip
import io
import re
import tarfile
from pathlib import Path

CHART = Path(__file__).parents[1] / "manifests" / "chart"


def archive(chart: Path) -> bytes:
    """Return the chart as a compressed tar archive, each file below the chart's name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        # Helm looks for Chart.yaml first.
        for path in sorted(chart.rglob("*"), key=lambda path: (path.name != "Chart.yaml", path)):
            if path.is_file():
                entry = tarfile.TarInfo(f"{about(chart, 'name')}/{path.relative_to(chart)}")
                entry.size, entry.mode = path.stat().st_size, 0o644
                with path.open("rb") as file:
                    tar.addfile(entry, file)
    return gzip.compress(buffer.getvalue(), mtime=0)


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
