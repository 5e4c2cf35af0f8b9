"""Release: makes all files of a version, and publishes them.

    task release -- --dry-run 0.2.0    # all but the upload, and the commands that would upload
    task release -- 0.2.0              # the same, and pushes the commit and its tag
    task release -- --make 0.2.0       # at the tag, by the workflow: makes the files
    task release -- --upload 0.2.0     # at the tag, by the workflow: uploads files that were made

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
        problems = [*why_not(repository, given.version, tagged=given.make or given.upload)]
        problems += [] if given.dry_run or given.make else repository.not_filled_in()
        if problems:
            return told(problems, 2)
        return handed_on(repository, given) if given.upload else release(repository, given)
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
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="do all but the upload, and show it")
    how.add_argument("--make", action="store_true", help="make the files of the tag checked out")
    how.add_argument(
        "--upload", action="store_true", help="upload what --make has made, and make nothing"
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
    elif given.upload:
        found += [] if place.exists() else [f"there is no {place}, which --make makes"]
    elif others := parts.others(place):
        found.append(f"{place} has other files, such as {others[0]}; --output names another place")
    return found


def release(repository: Repository, given: argparse.Namespace) -> int:
    """Make the files, upload them unless this is a dry run, and return the exit code."""
    now = datetime.now(UTC)  # noqa: TID251 - no part of hedgerow
    with TemporaryDirectory(prefix="hedgerow-release-") as place:
        at = f"v{given.version}" if given.make else MAIN
        source = preparing.clone(repository, Path(place), at)
        if not given.make:
            preparing.commit(source, given.version, f"{now:%Y-%m-%d}")
        files = Path(place) / "files"
        files.mkdir()
        made = Release(given.version, source, files)
        make(made, given)
        made.move(given.output)
        for file in [*made.files, made.output / parts.SUMS, made.output / parts.NOTES]:
            print(f"made {shown(file)}")
        for missing in made.missing:
            print(f"not made: {missing}")
        if given.dry_run:
            return rehearse(made)
        if made.missing:
            return told([f"without {missing}; nothing was uploaded" for missing in made.missing], 1)
        if given.make:
            return 0
        done = upload(source.root, uploads.push(made.version))
        return done or taken_over(repository)


def handed_on(repository: Repository, given: argparse.Namespace) -> int:
    """Upload the files that were made before, perhaps by another machine; return the exit code."""
    made = parts.made_before(Release(given.version, repository, given.output))
    return upload(given.output, uploads.publish(made))


def make(made: Release, given: argparse.Namespace) -> None:
    """Make every file of the release. Raises PartError for what no release goes without."""
    environment = parts.python_packages(made)
    parts.notes(made)
    parts.plugin(made)
    parts.images(made, given.platforms, given.base or made.source.base)
    parts.chart(made, environment)
    parts.site(made, environment)
    parts.checksums(made)


def rehearse(made: Release) -> int:
    """Print what would upload, and what is in the way of it."""
    for line in made.source.not_filled_in():
        print(f"to be filled in: {line}")
    print("\n# here, in a clone with the release's commit and tag:")
    print("\n".join(uploads.push(made.version)))
    print("\n# in the workflow of the tag, beside the files:")
    print("\n".join(uploads.publish(made)))
    return 0


def upload(place: Path, lines: list[str]) -> int:
    """Run the commands in a directory, and return the exit code."""
    for line in lines:
        print(f"+ {line}", flush=True)
        command = ["bash", "-euo", "pipefail", "-c", line]
        if code := subprocess.run(command, cwd=place, check=False).returncode:
            done = lines.index(line)
            after = f"{done} of {len(lines)} commands were done; all of them may be run again"
            return told([f"exit code {code} of: {line}", after], 1)
    return 0


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
