"""Provenance: how an image was made, as an in-toto statement with SLSA's predicate (v1).

    python3 .ci/provenance.py --image NAME --digest sha256:… --base NAME --base-digest sha256:…
        --revision COMMIT --engine "buildah version …" --started TIME --sbom FILE

It is not signed: whoever publishes the image signs it, with `cosign attest` for example. What is
not known, such as the digest of a base that no registry knows, is left out.
"""

import argparse
import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_TYPE = "urn:hedgerow:containerfile:v1"
"""A name for the kind of build; the Containerfile and `.ci/image` say what it does."""
LOCKS = (".ci/image.txt", ".ci/build.txt")


def main() -> None:
    """Write the statement to standard output."""
    parser = argparse.ArgumentParser()
    for name in ("image", "digest", "base", "base-digest", "revision", "engine", "started"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--sbom", type=Path, required=True)
    given = parser.parse_args()
    json.dump(statement(given), sys.stdout, indent=1)


def statement(given: argparse.Namespace) -> dict:
    """Return the in-toto statement."""
    finished = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - no part of hedgerow
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": given.image, "digest": digest(given.digest)}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"base": given.base, "tag": given.image},
                "internalParameters": {},
                "resolvedDependencies": list(dependencies(given)),
            },
            "runDetails": {
                "builder": {"id": "local", "version": {"engine": given.engine}},
                "metadata": {"startedOn": given.started, "finishedOn": finished},
            },
        },
    }


def dependencies(given: argparse.Namespace) -> list[dict]:
    """Return what the image is made of: the source, the base, the lock files, the archives."""
    commit, _, changed = given.revision.partition("-")
    found = []
    if commit:
        source = {"uri": "git+file:.", "digest": {"gitCommit": commit}}
        more = {"annotations": {"note": "built with changes that are not committed"}}
        found.append(source | (more if changed else {}))
    base = {"uri": f"oci:{given.base}"}
    found.append(base | ({"digest": digest(given.base_digest)} if given.base_digest else {}))
    for name in LOCKS:
        content = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        found.append({"uri": f"file:{name}", "digest": {"sha256": content}})
    bom = json.loads(given.sbom.read_text("utf-8"))
    archives = (
        {"uri": component["purl"], "digest": {"sha256": one["content"]}}
        for component in bom["components"]
        for one in component.get("hashes", ())
    )
    return [*found, *archives]


def digest(text: str) -> dict[str, str]:
    """Return `sha256:…` as a digest set."""
    algorithm, _, value = text.partition(":")
    return {algorithm: value} if value else {}


if __name__ == "__main__":
    main()
