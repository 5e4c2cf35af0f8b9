"""Provenance: how an image, or files, were made: an in-toto statement with SLSA's predicate (v1).

    python3 .ci/provenance.py --image NAME --digest sha256:… --base NAME --base-digest sha256:…
        --revision COMMIT --engine "buildah version …" --started TIME --sbom FILE
    python3 .ci/provenance.py --file FILE [--file FILE …] --version VERSION
        --revision COMMIT --engine "hatchling …" --started TIME

It is not signed: whoever publishes the image or the files signs it. What is not known, such as
the digest of a base that no registry knows, is left out.
"""

import argparse
import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGE, FILES = "urn:hedgerow:containerfile:v1", "urn:hedgerow:release:v1"
"""Names for the kinds of build, which `.ci/image` and the Containerfile, or `.ci/release`, tell."""
LOCKS = (".ci/image.txt", ".ci/build.txt")


def main() -> None:
    """Write the statement to standard output."""
    parser = argparse.ArgumentParser()
    for name in ("image", "digest", "base", "base-digest", "revision", "engine", "started"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--sbom", type=Path)
    parser.add_argument("--version", default="")
    parser.add_argument("--file", type=Path, action="append", default=[])
    given = parser.parse_args()
    json.dump(statement(given), sys.stdout, indent=1)


def statement(given: argparse.Namespace) -> dict:
    """Return the in-toto statement."""
    finished = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - no part of hedgerow
    asked = {"base": given.base, "tag": given.image} if given.image else {"version": given.version}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects(given),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": IMAGE if given.image else FILES,
                "externalParameters": asked,
                "internalParameters": {},
                "resolvedDependencies": list(dependencies(given)),
            },
            "runDetails": {
                "builder": {"id": "local", "version": {"engine": given.engine}},
                "metadata": {"startedOn": given.started, "finishedOn": finished},
            },
        },
    }


def subjects(given: argparse.Namespace) -> list[dict]:
    """Return what was made: the image, or each file."""
    if given.image:
        return [{"name": given.image, "digest": digest(given.digest)}]
    return [{"name": file.name, "digest": {"sha256": content(file)}} for file in given.file]


def dependencies(given: argparse.Namespace) -> list[dict]:
    """Return what it is made of: the source, the base, the lock files, the archives."""
    commit, _, changed = given.revision.partition("-")
    found = []
    if commit:
        source = {"uri": "git+file:.", "digest": {"gitCommit": commit}}
        more = {"annotations": {"note": "built with changes that are not committed"}}
        found.append(source | (more if changed else {}))
    if given.base:
        base = {"uri": f"oci:{given.base}"}
        found.append(base | ({"digest": digest(given.base_digest)} if given.base_digest else {}))
    locks = ({"uri": f"file:{name}", "digest": {"sha256": content(ROOT / name)}} for name in LOCKS)
    bom = json.loads(given.sbom.read_text("utf-8")) if given.sbom else {"components": []}
    archives = (
        {"uri": component["purl"], "digest": {"sha256": one["content"]}}
        for component in bom["components"]
        for one in component.get("hashes", ())
    )
    return [*found, *locks, *archives]


def content(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def digest(text: str) -> dict[str, str]:
    """Return `sha256:…` as a digest set."""
    algorithm, _, value = text.partition(":")
    return {algorithm: value} if value else {}


if __name__ == "__main__":
    main()
