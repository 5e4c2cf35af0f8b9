"""Sbom: what an image holds, as CycloneDX 1.6: read from what is installed, nothing else.

    python sbom.py --status /var/lib/dpkg/status --report pip-report.json > hedgerow.cdx.json

It runs while the image is built, by the Python whose packages it lists. `--report` is what pip says
that it has installed (`pip install --report`), from which come the hashes. There is no time in it
and no random number: the same image has the same one.
"""

import argparse
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

NAME = "hedgerow"


def main() -> None:
    """Write the SBOM to standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--status", type=Path, default=Path("/var/lib/dpkg/status"))
    parser.add_argument("--release", type=Path, default=Path("/etc/os-release"))
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    hashes = reported(json.loads(given.report.read_text("utf-8"))) if given.report else {}
    ours, python = [], []
    for one in sorted(metadata.distributions(), key=lambda one: normal(one.name)):
        (ours if normal(one.name) == NAME else python).append(distribution(one, hashes))
    system = debian(given.status, given.release) if given.status.exists() else []
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**ours[0], "type": "application"}},
        "components": [interpreter(), *python, *system],
    }
    json.dump(bom, sys.stdout, indent=1)


def normal(name: str) -> str:
    """Return a distribution's name as package indexes write it."""
    return name.lower().replace("_", "-").replace(".", "-")


def reported(report: dict) -> dict[str, str]:
    """Return the SHA-256 of each archive that pip has installed, by the distribution's name."""
    found = {}
    for one in report["install"]:
        archive = one["download_info"].get("archive_info", {})
        digest = archive.get("hashes", {}).get("sha256")
        if digest:
            found[normal(one["metadata"]["name"])] = digest
    return found


def distribution(one: metadata.Distribution, hashes: dict[str, str]) -> dict:
    """Return the component of one installed Python distribution."""
    name = normal(one.name)
    found = component("library", one.name, one.version, f"pkg:pypi/{name}@{one.version}")
    if name in hashes:
        found["hashes"] = [{"alg": "SHA-256", "content": hashes[name]}]
    if license_said := one.metadata.get("License-Expression"):
        found["licenses"] = [{"expression": license_said}]
    return found


def interpreter() -> dict:
    """Return the component of the Python that runs this."""
    version = platform.python_version()
    return component("application", "python", version, f"pkg:generic/python@{version}")


def debian(status: Path, release: Path) -> list[dict]:
    """Return the components of the base's packages, as dpkg has them on record."""
    system = dict(
        line.replace('"', "").split("=", 1)
        for line in release.read_text("utf-8").splitlines()
        if "=" in line
    )
    distro, version = system.get("ID", "debian"), system.get("VERSION_ID", "")
    found = []
    for paragraph in status.read_text("utf-8").split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if ": " in line and line[0] != " "
        )
        if not fields.get("Status", "").endswith(" installed"):
            continue
        name, said = fields["Package"], fields["Version"]
        where = f"arch={fields['Architecture']}&distro={distro}-{version}"
        found.append(component("library", name, said, f"pkg:deb/{distro}/{name}@{said}?{where}"))
    return found


def component(kind: str, name: str, version: str, purl: str) -> dict:
    """Return what every component has."""
    purl = purl.replace("+", "%2B")
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    main()
