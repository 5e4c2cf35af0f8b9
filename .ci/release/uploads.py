"""Uploads: the commands that make a release public, as a shell runs them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from parts import DIGEST, NOTES, SIGNATURE, SUMS
from repository import MAIN, REMOTE

if TYPE_CHECKING:
    from parts import Release


def push(version: str) -> list[str]:
    """Return what publishes the release's commit and tag, in the clone; the workflow does the rest.

    One push, of both or of none: where others have pushed meanwhile, nothing has happened.
    """
    return [f"git push --atomic {REMOTE} {MAIN} v{version}"]


def publish(release: Release) -> list[str]:
    """Return what publishes the files, in their directory, in the order in which it is safe.

    Each may be run again until the last, which makes the page of the release public: it says that
    everything is there, and nothing of it changes afterwards. What can never be taken back, the
    upload to the package index, comes after all others but the page.
    """
    version, names = release.version, sorted(file.name for file in release.files)
    packages = [f"hedgerow-{version}-py3-none-any.whl", f"hedgerow-{version}.tar.gz"]
    attached = shlex.join([*names, SUMS, SIGNATURE])
    # It uploads to the package index by GitHub's word for the workflow, instead of a password.
    uv = re.findall(r"\buv==[\d.]+", release.source.read("Taskfile.yml"))[0]
    create = f"gh release create v{version} --draft --verify-tag --notes-file {NOTES}"
    return [
        _unpublished(version),
        *_to_registry(release),
        f"cosign sign-blob --yes --bundle {SIGNATURE} {SUMS}",
        f"python -m pip install --quiet {uv}",
        f"uv publish --trusted-publishing always {shlex.join(packages)}",
        f"gh release view v{version} > /dev/null 2>&1 || {create}",
        f"gh release upload v{version} --clobber {attached}",
        f"gh release edit v{version} --draft=false",
    ]


def _unpublished(version: str) -> str:
    """Return what fails if the release is public already, or if nobody can tell."""
    listing = "gh release list --exclude-drafts --limit 1000 --json tagName --jq '.[].tagName'"
    found = f'grep --quiet --line-regexp --fixed-strings v{version} <<< "$public"'
    said = f"echo 'v{version} is published already' >&2"
    return f'public="$({listing})"; if {found}; then {said}; exit 1; fi'


def _to_registry(release: Release) -> list[str]:
    version, registry = release.version, release.source.registry or "REGISTRY"
    image = f"{registry}/hedgerow"
    charts = [file.name for file in release.files if file.suffix == ".tgz"]
    login = (
        'skopeo login --username "$REGISTRY_USER" --password-stdin '
        f'{shlex.quote(registry.partition("/")[0])} <<< "$REGISTRY_TOKEN"'
    )
    push = f"skopeo copy --all --digestfile {DIGEST} oci-archive:{release.images.name}"
    pushed = [
        f"{push} docker://{image}:{version}",
        f'cosign sign --yes --recursive "{image}@$(cat {DIGEST})"',
    ]
    packaged = [f"helm push {name} oci://{registry}/charts" for name in charts]
    steps = [*(pushed if release.images in release.files else []), *packaged]
    return [login, *steps] if steps else []
