"""Release: makes all files of a version, and publishes them.

    task release -- --dry-run 0.2.0    # all but the upload, and the commands that would upload
    task release -- 0.2.0              # the same, and pushes the commit and its tag
    task release -- --publish 0.2.0    # at the tag, by the workflow: makes the files, and uploads

The version and its day are written in a clone, where the commit and its tag are made: a release
that fails, and each dry run, leaves the checkout as it was.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import parts
import preparing
import uploads
from commands import StepError
from parts import Release
from repository import MAIN, REMOTE, Repository, by_digest, why_not

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = "linux/amd64,linux/arm64"


def main() -> int:
    """Make a release as the arguments say, and return the exit code."""
    given = arguments()
    repository = Repository(ROOT)
    try:
        if problems := unusable(given):
            return told(problems, 2)
        problems = [*why_not(repository, given.version, tagged=given.publish)]
        problems += [] if given.dry_run else repository.not_filled_in()
        if problems:
            return told(problems, 2)
        return release(repository, given)
    except StepError as error:
        return told([f"{error}; nothing was uploaded"], 1)
    except KeyboardInterrupt:
        return told(["stopped"], 130)


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        "task release --",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="do all but the upload, and show it")
    parser.add_argument(
        "--publish", action="store_true", help="make and upload the files of the tag checked out"
    )
    parser.add_argument("--output", type=Path, help="for the files; dist/VERSION if not given")
    parser.add_argument(
        "--platforms", default=PLATFORMS, help=f"of the image: {PLATFORMS}, or none for no image"
    )
    parser.add_argument(
        "--base",
        default="",
        help="the image's base, by digest; the one of pyproject.toml if not given",
    )
    given = parser.parse_args()
    given.output = (given.output or ROOT / "dist" / given.version).resolve()
    given.platforms = [] if given.platforms == "none" else given.platforms.split(",")
    return given


def unusable(given: argparse.Namespace) -> list[str]:
    """Return a line for each argument that makes no sense here."""
    place = given.output
    odd = [one for one in given.platforms if not re.fullmatch(r"linux/[a-z0-9]+(/v\d+)?", one)]
    found = [f"{one!r} is no platform such as linux/arm64" for one in odd]
    if given.base and not given.dry_run and not by_digest(given.base):
        found.append(f"{given.base!r} is no base by digest, such as NAME@sha256:…")
    if place.exists() and not place.is_dir():
        found.append(f"{place} is no directory")
    elif others := parts.others(place):
        found.append(f"{place} has other files, such as {others[0]}; --output names another place")
    return found


def release(repository: Repository, given: argparse.Namespace) -> int:
    """Make the files, upload them unless this is a dry run, and return the exit code."""
    now = datetime.now(UTC)  # noqa: TID251 - no part of hedgerow
    with TemporaryDirectory(prefix="hedgerow-release-") as place:
        at = f"v{given.version}" if given.publish else MAIN
        source = preparing.clone(repository, Path(place), at)
        if not given.publish:
            preparing.commit(source, given.version, f"{now:%Y-%m-%d}")
        files = Path(place) / "files"
        files.mkdir()
        made = Release(given.version, source, files)
        make(made, given, f"{now:%Y-%m-%dT%H:%M:%SZ}")
        made.move(given.output)
        for file in [*made.files, made.output / parts.SUMS, made.output / parts.NOTES]:
            print(f"made {shown(file)}")
        for missing in made.missing:
            print(f"not made: {missing}")
        if given.dry_run:
            return rehearse(made, given)
        return upload(repository, made, given)


def make(made: Release, given: argparse.Namespace, started: str) -> None:
    """Make every file of the release. Raises PartError for what no release goes without."""
    environment = parts.python_packages(made)
    parts.notes(made)
    parts.plugin(made)
    parts.images(made, given.platforms, given.base or made.source.base)
    parts.chart(made, environment)
    parts.site(made, environment)
    parts.provenance(made, started)
    parts.checksums(made)


def rehearse(made: Release, given: argparse.Namespace) -> int:
    """Print what would upload, and what is in the way of it."""
    for line in made.source.not_filled_in():
        print(f"to be filled in: {line}")
    if not given.publish:
        print("\n# here, in a clone with the release's commit and tag:")
        print("\n".join(uploads.push(made.version)))
    print(f"\n# {'here' if given.publish else 'in the workflow of the tag'}, beside the files:")
    print("\n".join(uploads.publish(made)))
    return 0


def upload(repository: Repository, made: Release, given: argparse.Namespace) -> int:
    """Upload what is complete, and return the exit code."""
    if made.missing:
        return told([f"without {missing}; nothing was uploaded" for missing in made.missing], 1)
    place, lines = made.source.root, uploads.push(made.version)
    if given.publish:
        place, lines = made.output, uploads.publish(made)
    for line in lines:
        print(f"+ {line}", flush=True)
        command = ["bash", "-euo", "pipefail", "-c", line]
        if code := subprocess.run(command, cwd=place, check=False).returncode:
            done = lines.index(line)
            after = f"{done} of {len(lines)} commands were done; all of them may be run again"
            return told([f"exit code {code} of: {line}", after], 1)
    return 0 if given.publish else taken_over(repository)


def taken_over(repository: Repository) -> int:
    """Fetch what was pushed into the checkout, and return the exit code."""
    pull = ("pull", "--quiet", "--ff-only", "--tags", REMOTE, MAIN)
    try:
        repository.git(*pull)
    except StepError as error:
        return told([f"it is pushed; only here `git {' '.join(pull)}` failed: {error}"], 1)
    return 0


def shown(file: Path) -> str:
    """Return a path as it is shortest from here."""
    return min(str(file), os.path.relpath(file), key=len)


def told(problems: list[str], code: int) -> int:
    """Print each problem as one line, and return the code."""
    for problem in problems:
        print(f"release: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
