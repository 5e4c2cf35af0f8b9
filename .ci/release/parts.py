"""Parts: the files of a release, each made from the release's own commit."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from archives import packed
from changelog import Section, sections
from commands import StepError, run

if TYPE_CHECKING:
    from repository import Repository

SUMS = "SHA256SUMS"
NOTES, SIGNATURE, DIGEST = "NOTES.md", f"{SUMS}.sigstore.json", "image.digest"
_OURS = re.compile(r"(kubectl-)?hedgerow-\d+\.\d+\.\d+[\w.-]*|hedgerow\.yaml")
"""Names of files of a release; a shell sees nothing in them but a name."""
LAUNCHER = Path(__file__).with_name("kubectl-hedgerow")


@dataclass
class Release:
    """A version, its commit in a checkout of its own, and the directory of its files.

    `missing` has a line for each part that could not be made here.
    """

    version: str
    source: Repository
    output: Path
    files: list[Path] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def section(self) -> Section:
        """What the changelog says of the version."""
        return sections(self.source.read("CHANGELOG.md"))[self.version]

    @property
    def images(self) -> Path:
        """The archive of the images of all platforms, as a registry is to have them."""
        return self.output / f"hedgerow-{self.version}-images.tar"

    @property
    def epoch(self) -> int:
        """The time of everything that is built: midnight (UTC) of the day that the changelog says.

        So whoever builds the tag again, on any day, gets the same bytes.
        """
        return int(datetime.fromisoformat(self.section.day).replace(tzinfo=UTC).timestamp())

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every build."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch)}

    def add(self, *files: Path) -> None:
        """Note files that belong to the release."""
        self.files += files

    def move(self, place: Path) -> None:
        """Move all files to a directory that has no others than those of a former release."""
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(self.output, place)
        self.output, self.files = place, [place / file.name for file in self.files]


def python_packages(release: Release) -> dict[str, str]:
    """Build sdist and wheel, and both once more from the sdist: they must be the same bytes.

    Return an environment in which Python has the hedgerow that was built.
    """
    _hatch(release, release.source.root, release.output)
    sdist = release.output / f"hedgerow-{release.version}.tar.gz"
    wheel = release.output / f"hedgerow-{release.version}-py3-none-any.whl"
    again = release.source.root.parent / "again"
    with tarfile.open(sdist) as archive:
        archive.extractall(again)  # noqa: S202 - it was built a moment ago
    unpacked = again / sdist.name.removesuffix(".tar.gz")
    (unpacked / "PKG-INFO").unlink()  # of the build itself, which would pack it beside its own
    _hatch(release, unpacked, again)
    for file in (sdist, wheel):
        if file.read_bytes() != (again / file.name).read_bytes():
            raise StepError(f"{file.name} has other bytes when it is built from the sdist")
    release.add(sdist, wheel)
    return imported(wheel, release.source.root.parent / "built")


def imported(wheel: Path, place: Path) -> dict[str, str]:
    """Return an environment in which Python has the hedgerow of a wheel, with its version."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)  # noqa: S202 - it was built a moment ago
    return {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}


def notes(release: Release) -> None:
    """Write what the changelog says of the version."""
    (release.output / NOTES).write_text(f"{release.section.text}\n", "utf-8")


def plugin(release: Release) -> None:
    """Write the archive of the kubectl plugin, and krew's manifest for it.

    Without the repository's address there is no manifest: it has to say where the archive is.
    """
    archive = release.output / f"kubectl-hedgerow-{release.version}.tar.gz"
    wheel = release.output / f"hedgerow-{release.version}-py3-none-any.whl"
    root = release.source.root
    contents = {
        LAUNCHER.name: LAUNCHER,
        "LICENSE": root / "LICENSE",
        "requirements.txt": root / ".ci/image.txt",
        wheel.name: wheel,
    }
    archive.write_bytes(packed(dict(sorted(contents.items())), release.epoch))
    release.add(archive)
    if not release.source.home:
        release.missing.append("krew's manifest: the repository's address is not filled in")
        return
    manifest = release.output / "hedgerow.yaml"
    manifest.write_text(yaml.safe_dump(krew_manifest(release, archive), sort_keys=False), "utf-8")
    release.add(manifest)


def krew_manifest(release: Release, archive: Path) -> dict:
    """Return krew's manifest of the plugin."""
    home, version = release.source.home, f"v{release.version}"
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "hedgerow"},
        "spec": {
            "version": version,
            "homepage": home,
            "shortDescription": "Shows who owns which fields, and plans applies",
            "description": (
                "Shows the field managers of any object, plans a server-side apply field by field\n"
                "with its conflicts, and moves fields from one manager to another. It is the\n"
                "command line of hedgerow, an operator that writes by server-side apply only.\n"
            ),
            "caveats": (
                "It needs Python 3.11 or newer with venv. On its first use it makes an\n"
                "environment in the user's cache directory, of packages that are pinned by\n"
                "hash; pip fetches them from the package index that it is set up for.\n"
            ),
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux"}},
                    "uri": f"{home}/releases/download/{version}/{archive.name}",
                    "sha256": sha256(archive),
                    "bin": LAUNCHER.name,
                }
            ],
        },
    }


def images(release: Release, platforms: list[str], base: str) -> None:
    """Build the image for each platform, the list of them, and what is in each."""
    tag = f"hedgerow:{release.version}"
    made: list[str] = []
    for platform in platforms:
        one = f"{tag}-{platform.replace('/', '-')}"
        named = ("--base", base) if base else ()
        given = ("--engine", "buildah", "--tag", one, "--platform", platform, *named)
        try:
            run(
                *(release.source.root / ".ci/image", *given),
                cwd=release.source.root,
                env=release.environment,
            )
        except StepError as error:
            said = str(error).removeprefix("image: ")
            release.missing.append(f"the image for {platform}: {said}")
            continue
        made.append(one)
    if made and made == [f"{tag}-{platform.replace('/', '-')}" for platform in platforms]:
        _together(release, tag, made)
        for platform in platforms:
            _sbom(release, platform)


def _together(release: Release, tag: str, made: list[str]) -> None:
    root = release.source.root
    if run("buildah", "images", "--quiet", "--filter", f"reference={tag}", cwd=root).strip():
        run("buildah", "manifest", "rm", tag, cwd=root)
    run("buildah", "manifest", "create", tag, cwd=root)
    for one in made:
        run("buildah", "manifest", "add", tag, one, cwd=root)
    archive = release.images
    run("buildah", "manifest", "push", "--all", tag, f"oci-archive:{archive}", cwd=root)
    release.add(archive)


def _sbom(release: Release, platform: str) -> None:
    """Have Syft write what is in the image of a platform.

    It reads the records of Debian and of Python alike, and writes what scanners take.
    """
    name = f"hedgerow-{release.version}-{platform.replace('/', '-')}.cdx.json"
    file = release.output / name
    try:
        run(
            *("syft", "scan", f"oci-archive:{release.images}", "--platform", platform),
            *("--output", f"cyclonedx-json={file}"),
            cwd=release.source.root,
        )
    except StepError as error:
        release.missing.append(f"{name}: {error}")
    else:
        release.add(file)


def _made(release: Release, name: str, env: dict[str, str]) -> Path:
    """Return the directory of what a task of the release's commit made, by that commit's code."""
    root = release.source.root
    place = root.parent / name
    place.mkdir()
    # What a task itself says of PYTHONPATH gives way to that of the environment.
    found = os.pathsep.join([env["PYTHONPATH"], str(root / "tests")])
    run(
        *("task", "--taskfile", root / "Taskfile.yml", name, "--", "--output", place),
        cwd=root,
        env=release.environment | env | {"PYTHONPATH": found},
    )
    return place


def chart(release: Release, env: dict[str, str]) -> None:
    """Package the chart."""
    for package in sorted(_made(release, "chart", env).glob("*.tgz")):
        release.add(Path(shutil.move(package, release.output)))


def site(release: Release, env: dict[str, str]) -> None:
    """Build the site, as one archive."""
    place = _made(release, "docs", env)
    pages = {f"{file.relative_to(place)}": file for file in place.rglob("*") if file.is_file()}
    archive = release.output / f"hedgerow-{release.version}-site.tar.gz"
    archive.write_bytes(packed(dict(sorted(pages.items())), release.epoch))
    release.add(archive)


def checksums(release: Release) -> None:
    """Write the SHA-256 of every file, as `sha256sum --check` reads it."""
    lines = [f"{sha256(file)}  {file.name}\n" for file in sorted(release.files)]
    (release.output / SUMS).write_text("".join(lines), "utf-8")


def made_before(release: Release) -> Release:
    """Return a release with the files that its directory lists. Raises StepError.

    It says nothing of who made them, but that none was changed or lost on the way here.
    """
    if not (release.output / SUMS).is_file() or not (release.output / NOTES).is_file():
        raise StepError(f"{release.output} has no {SUMS} and {NOTES}, which --make writes")
    for line in (release.output / SUMS).read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        file = release.output / name
        if not _OURS.fullmatch(name) or not file.is_file() or sha256(file) != digest:
            raise StepError(f"{name} is not what {SUMS} says")
        release.add(file)
    for name in (f"hedgerow-{release.version}.tar.gz", release.images.name):
        if release.output / name not in release.files:
            raise StepError(f"{SUMS} has no {name}")
    return release


def others(place: Path) -> list[str]:
    """Return the names in a directory that are no files of a former release.

    Others write a SHA256SUMS too: what is listed has to have a name of ours as well.
    """
    if not place.exists():
        return []
    sums = place / SUMS
    listed = sums.read_text("utf-8", "replace").splitlines() if sums.is_file() else []
    former = {name for line in listed if _OURS.fullmatch(name := line.partition("  ")[2])}
    former |= {SUMS, NOTES, SIGNATURE, DIGEST} if former else set()
    return sorted(
        file.name for file in place.iterdir() if file.name not in former or not file.is_file()
    )


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _hatch(release: Release, root: Path, place: Path) -> None:
    command = (sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel")
    run(*command, "--directory", place, cwd=root, env=release.environment)
