"""`task release`: from a commit to the files, the tag and the uploads, or to one clear line."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from support.code.sources import ROOT, committed
from support.programs.archives import unpack
from support.programs.wheels import environment, wheelhouse

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.untraced,  # it runs in processes of its own
    pytest.mark.skipif(not shutil.which("git"), reason="git is not on the PATH"),
]
VERSION = "9.9.9"
BASE = f"python:3.11-slim@sha256:{'0' * 64}"
LONGEST = 600
"""Characters of a file in changes."""
HOME, REGISTRY = "https://hub.example/people/hedgerow", "registry.example/people"
LOGIN = {"REGISTRY_USER": "somebody", "REGISTRY_TOKEN": "a password"}
UPLOADERS = ("buildah", "cosign", "gh", "helm", "skopeo", "syft", "uv", "python")
PEOPLE = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Somebody"), ("EMAIL", "somebody@example.com"))
}
UPLOADER = """#!/bin/sh
echo "$(basename "$0") $*" >> "$UPLOADS"
case "$(basename "$0") $*" in
  "python -m pip"*) ;;
  "python "*) exec PYTHON "$@" ;;
  "$FAILING"*) echo "first" >&2; echo "there is no such thing" >&2; exit 7 ;;
  "gh release view"*) exit 1 ;;
  "buildah manifest push"*) for last; do :; done; echo images > "${last#oci-archive:}" ;;
  "syft scan"*) for last; do :; done; echo "{}" > "${last#cyclonedx-json=}" ;;
  "buildah inspect"*) echo "sha256:0" ;;
esac
""".replace("PYTHON", sys.executable)
"""A program that notes what it is told, and fails where the test wants it to; Python only runs."""


@dataclass(frozen=True)
class Checkout:
    """A checkout with a history of its own."""

    root: Path

    def git(self, *words: object) -> str:
        return subprocess.run(
            ["git", *map(str, words)],
            cwd=self.root, env={**os.environ, **PEOPLE}, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip

    def commit(self, words: str = "something") -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", words)

    def state(self) -> tuple[str, ...]:
        """Return the commit and every file that is not committed, but for bytecode."""
        found = self.git("status", "--porcelain", "--ignored", "--", ".", ":(exclude)*__pycache__*")
        return self.git("rev-parse", "HEAD"), found

    def release(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, ".ci/release", *map(str, words)],
            cwd=self.root,
            env={**os.environ, **PEOPLE, **environment},
            capture_output=True, text=True, check=False, timeout=250,
        )  # fmt: skip

    def edit(self, name: str, change: Callable[..., str], *of: str) -> None:
        before = (self.root / name).read_text("utf-8")
        after = change(before, *of)
        assert after != before
        (self.root / name).write_text(after, "utf-8")


@dataclass(frozen=True)
class Story:
    """A dry run, the release, and what the workflow then does at its tag."""

    checkout: Checkout
    workflow: Checkout
    rehearsed: subprocess.CompletedProcess[str]
    unchanged: bool
    released: subprocess.CompletedProcess[str]
    made: subprocess.CompletedProcess[str]
    published: subprocess.CompletedProcess[str]
    uploads: list[str]

    @property
    def files(self) -> Path:
        """What the workflow made."""
        return self.workflow.root / "dist" / VERSION


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Story:
    place = tmp_path_factory.mktemp("release")
    checkout = publishers(place / "checkout")
    origin = place / "origin.git"
    checkout.git("clone", "--quiet", "--bare", ".", origin)
    checkout.git("remote", "add", "origin", origin)
    before = checkout.state()
    tools = uploaders(place)
    rehearsed = checkout.release("--dry-run", "--output", place / "rehearsed", VERSION, **tools)
    after = checkout.state()
    released = checkout.release("--platforms", "none", VERSION)
    assert released.returncode == 0, released.stderr
    workflow = Checkout(place / "workflow")
    checkout.git("clone", "--quiet", "--branch", f"v{VERSION}", origin, workflow.root)
    log = Path(tools["UPLOADS"])
    log.unlink()
    made = workflow.release("--make", VERSION, **tools | {"FAILING": "-"})
    published = workflow.release("--upload", VERSION, **tools | {"FAILING": "-"})
    uploads = log.read_text("utf-8").splitlines()
    return Story(checkout, workflow, rehearsed, before == after, released, made, published, uploads)


def publishers(root: Path) -> Checkout:
    """Return a checkout of this repository on main, as a publisher has it.

    The task that makes the site has tests of its own: here is another in its place.
    """
    for file in committed():
        target = root / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    checkout = Checkout(root)
    urls = f'[project.urls]\nRepository = "{HOME}"\n[tool.hedgerow.release]'
    checkout.edit("pyproject.toml", lambda text: text.replace("[tool.hedgerow.release]", urls))
    for key, value in (("registry", REGISTRY), ("base", BASE)):
        filled = f'{key} = "{value}"'
        checkout.edit("pyproject.toml", lambda text, *of: text.replace(*of), f'{key} = ""', filled)
    checkout.edit("Taskfile.yml", others_in_place)
    for change in (root / "changes").glob("*.*.md"):
        change.unlink()
    (root / "changes/named.fixed.md").write_text("What was wrong\nis right.\n", "utf-8")
    return begun(checkout)


def begun(checkout: Checkout) -> Checkout:
    """Return a checkout with a first commit on main, in a repository of its own."""
    assert not (checkout.root / ".git").exists()
    checkout.git("init", "--quiet", "--initial-branch", "main")
    checkout.commit()
    return checkout


def others_in_place(text: str) -> str:
    taskfile = yaml.safe_load(text)
    output = '{{index (splitList " " .CLI_ARGS) 1}}'
    taskfile["tasks"]["docs"] = {"cmds": [f"mkdir {output}/a && echo x > {output}/a/index.html"]}
    return yaml.safe_dump(taskfile, sort_keys=False)


def uploaders(place: Path) -> dict[str, str]:
    """Return an environment whose uploading programs only note what they are told.

    There is no base for images: `buildah pull` fails.
    """
    tools, log = place / "tools", place / "uploads"
    tools.mkdir()
    for name in UPLOADERS:
        (tools / name).write_text(UPLOADER, "utf-8")
        (tools / name).chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    return {"PATH": path, "UPLOADS": str(log), "FAILING": "buildah pull", **LOGIN}


class TestDryRun:
    def test_it_makes_the_files_and_leaves_the_checkout_as_it_was(self, story):
        assert (story.rehearsed.returncode, story.rehearsed.stderr) == (0, "")
        assert story.unchanged
        made = {path.name for path in (story.checkout.root.parent / "rehearsed").iterdir()}
        names = {path.name for path in story.files.iterdir()}
        assert made == {name for name in names if not re.search("-linux-|-images", name)}

    def test_it_says_in_one_line_what_it_could_not_make_and_why(self, story):
        missing = re.findall(r"^not made: (.*)$", story.rehearsed.stdout, re.MULTILINE)

        why = f"task image: the base {BASE} is not to be had"
        assert missing == [f"the image for linux/{name}: {why}" for name in ("amd64", "arm64")]

    def test_it_shows_the_commands_that_the_release_and_its_workflow_run(self, story):
        shown = story.rehearsed.stdout.splitlines()

        assert ran(story.released) == [f"git push --atomic origin main v{VERSION}"]
        of_images = [line for line in ran(story.published) if "image.digest" in line]
        assert len(of_images) == 2
        common = [*ran(story.released), *ran(story.published)]
        assert [line for line in shown if line in common] == [
            line for line in common if line not in of_images and "-linux-" not in line
        ]


def ran(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = done.stdout.splitlines()
    return [line.removeprefix("+ ") for line in lines if line.startswith("+ ")]


class TestCommit:
    def test_version_and_day_are_where_they_belong_and_only_commands_name_the_new_one(self, story):
        changed = story.workflow.git("show", "--name-only", "--format=%s", "HEAD").splitlines()
        text = (story.workflow.root / "CHANGELOG.md").read_text("utf-8")
        guide = (story.workflow.root / "docs/guides/in-cluster.md").read_text("utf-8")
        gitops = (story.workflow.root / "docs/guides/helm.md").read_text("utf-8")
        figures = (story.workflow.root / "docs/performance.md").read_text("utf-8")

        assert changed[0] == f"release: {VERSION}"
        assert {"pyproject.toml", "CHANGELOG.md", "manifests/cluster/deployment.yaml"} < {*changed}
        assert re.search(
            rf"^## \[Next\] - unreleased\n\n<!-- changes -->\n\n"
            rf"## \[{VERSION}\] - \d{{4}}-\d\d-\d\d\n\n\S",
            text,
            re.MULTILINE,
        )
        assert "\n### Fixed\n\n- What was wrong\n  is right.\n" in text
        assert "changes/named.fixed.md" in changed
        assert not (story.workflow.root / "changes/named.fixed.md").exists()
        assert f"registry.example/hedgerow:{VERSION}" in guide
        assert f"targetRevision: v{VERSION}\n" in gitops
        assert VERSION not in figures

    def test_it_is_pushed_with_its_tag_and_the_checkout_has_both(self, story):
        assert story.released.returncode == 0
        assert story.checkout.git("describe") == f"v{VERSION}"
        assert story.workflow.git("describe") == f"v{VERSION}"
        assert story.checkout.git("status", "--porcelain") == ""


class TestFiles:
    def test_the_tag_gives_the_same_bytes_again(self, story):
        first = story.checkout.root / "dist" / VERSION
        same = [f"hedgerow-{VERSION}.tar.gz", f"hedgerow-{VERSION}-py3-none-any.whl"]
        same += [f"kubectl-hedgerow-{VERSION}.tar.gz", "hedgerow.yaml", "NOTES.md"]
        same += [f"hedgerow-{VERSION}.tgz"]

        assert (story.made.returncode, ran(story.made)) == (0, []), story.made.stderr
        assert story.published.returncode == 0, story.published.stderr
        for name in same:
            assert (first / name).read_bytes() == (story.files / name).read_bytes(), name

    def test_every_file_has_its_checksum(self, story):
        lines = (story.files / "SHA256SUMS").read_text().splitlines()
        sums = {name: digest for digest, name in (line.split("  ") for line in lines)}

        assert sums == {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in story.files.iterdir()
            if path.name not in ("SHA256SUMS", "NOTES.md")
        }

    def test_the_wheel_has_the_version_everywhere(self, story):
        with ZipFile(story.files / f"hedgerow-{VERSION}-py3-none-any.whl") as wheel:
            about = wheel.read(f"hedgerow-{VERSION}.dist-info/METADATA").decode()
            deployed = wheel.read("hedgerow/manifests/cluster/deployment.yaml").decode()

        assert f"\nVersion: {VERSION}\n" in about
        assert f"\nProject-URL: Repository, {HOME}\n" in about
        assert f"image: hedgerow:{VERSION}" in deployed

    def test_the_notes_are_the_section_of_the_changelog(self, story):
        notes = (story.files / "NOTES.md").read_text("utf-8")

        assert notes.endswith("\n- What was wrong\n  is right.\n")
        assert notes.strip() in (story.workflow.root / "CHANGELOG.md").read_text("utf-8")

    def test_chart_and_site_are_made_by_the_code_of_the_release(self, story):
        with tarfile.open(story.files / f"hedgerow-{VERSION}.tgz") as chart:
            about = chart.extractfile("hedgerow/Chart.yaml")
            assert about is not None
            assert yaml.safe_load(about)["version"] == VERSION
        with tarfile.open(story.files / f"hedgerow-{VERSION}-site.tar.gz") as site:
            assert site.getnames() == ["a/index.html"]


class TestUploads:
    def test_the_index_comes_after_all_that_can_be_taken_back_and_the_page_last(self, story):
        begin = next(n for n, line in enumerate(story.uploads) if "gh release list" in line)
        done = story.uploads[begin:]
        image = f"{REGISTRY}/hedgerow"

        assert [" ".join(line.split()[:3]) for line in done] == [
            "gh release list",
            "skopeo login --username",
            "skopeo copy --all",
            "cosign sign --yes",
            f"helm push hedgerow-{VERSION}.tgz",
            "cosign sign-blob --yes",
            "python -m pip",
            "uv publish --trusted-publishing",
            "gh release view",
            "gh release create",
            "gh release upload",
            "gh release edit",
        ]
        assert "--draft" in done[-3].split()
        assert done[-1] == f"gh release edit v{VERSION} --draft=false"
        assert done[2].endswith(
            f" oci-archive:hedgerow-{VERSION}-images.tar docker://{image}:{VERSION}"
        )
        assert done[4].endswith(f"oci://{REGISTRY}/charts")

    @pytest.mark.parametrize(
        ("listed", "code"),
        [
            ("echo v9.9.8; echo v9.9.90", 0),
            (f"echo v9.9.8; echo v{VERSION}", 1),
            ("exit 4", 4),
        ],
        ids=["others", "this one", "nobody can tell"],
    )
    def test_what_is_public_is_left_as_it_is(self, story, listed, code, tmp_path):
        (tmp_path / "gh").write_text(f"#!/bin/sh\n{listed}\n")
        (tmp_path / "gh").chmod(0o755)
        first = ran(story.published)[0]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", first],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

        assert done.returncode == code
        assert done.stderr == (f"v{VERSION} is published already\n" if code == 1 else "")

    @pytest.mark.parametrize(
        ("name", "line"),
        [
            (f"hedgerow-{VERSION}-py3-none-any.whl", "{name} is not what SHA256SUMS says"),
            ("NOTES.md", "{place} has no SHA256SUMS and NOTES.md, which --make writes"),
            (f"hedgerow-{VERSION}-images.tar", "SHA256SUMS has no {name}"),
        ],
    )
    def test_what_was_lost_or_changed_on_the_way_is_not_uploaded(self, story, name, line, tmp_path):
        place = shutil.copytree(story.files, tmp_path / "files")
        (place / name).unlink()
        sums = place / "SHA256SUMS"
        if "images" in name:
            kept = [one for one in sums.read_text().splitlines(keepends=True) if name not in one]
            sums.write_text("".join(kept))
        elif name in sums.read_text():
            (place / name).write_text("something else")
        done = story.workflow.release("--upload", "--output", place, VERSION)

        said = line.format(name=name, place=place)
        assert done.stderr == f"release: {said}; nothing was uploaded\n"
        assert (done.returncode, done.stdout) == (1, "")

    def test_a_name_that_a_shell_would_run_is_not_uploaded(self, story, tmp_path):
        place = shutil.copytree(story.files, tmp_path / "files")
        name = f"hedgerow-{VERSION}$(id).tgz"
        (place / name).write_text("")
        with (place / "SHA256SUMS").open("a") as sums:
            sums.write(f"{hashlib.sha256().hexdigest()}  {name}\n")
        done = story.workflow.release("--upload", "--output", place, VERSION)

        assert name in done.stderr
        assert (done.returncode, done.stdout) == (1, "")

    def test_the_images_stand_on_the_base_of_the_commit(self, story):
        pulled = [line.split()[-1] for line in story.uploads if "buildah pull" in line]

        assert pulled == [BASE, BASE]

    def test_what_is_in_each_image_is_written_beside_it(self, story):
        scanned = [line for line in story.uploads if line.startswith("syft scan ")]

        assert [re.findall(r"--platform (\S+)", line) for line in scanned] == [
            ["linux/amd64"],
            ["linux/arm64"],
        ]
        for name in ("amd64", "arm64"):
            assert (story.files / f"hedgerow-{VERSION}-linux-{name}.cdx.json").is_file()

    def test_an_image_of_each_platform_is_in_the_list(self, story):
        added = [line.split()[-1] for line in story.uploads if "manifest add" in line]

        assert added == [f"hedgerow:{VERSION}-linux-{name}" for name in ("amd64", "arm64")]


class TestPlugin:
    def test_the_manifest_says_where_the_archive_is_and_what_it_must_be(self, story):
        archive = story.files / f"kubectl-hedgerow-{VERSION}.tar.gz"
        manifest = yaml.safe_load((story.files / "hedgerow.yaml").read_text("utf-8"))
        (platform,) = manifest["spec"]["platforms"]

        assert manifest["spec"]["version"] == f"v{VERSION}"
        assert platform["uri"] == f"{HOME}/releases/download/v{VERSION}/{archive.name}"
        assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()

    def test_it_sets_itself_up_once_from_what_is_pinned(self, story, tmp_path):
        with tarfile.open(story.files / f"kubectl-hedgerow-{VERSION}.tar.gz") as archive:
            unpack(archive, tmp_path / "plugin")
        linked = tmp_path / "kubectl-hedgerow"  # as krew does
        linked.symlink_to(tmp_path / "plugin/kubectl-hedgerow")
        given = environment(wheelhouse()) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        first, second = (
            subprocess.run(
                [linked, "version"],
                env=given, capture_output=True, text=True, check=False, timeout=250,
            )
            for _ in range(2)
        )  # fmt: skip

        assert (first.returncode, VERSION in first.stdout) == (0, True), first.stderr
        assert "setting up, once" in first.stderr
        assert (second.stdout, second.stderr) == (first.stdout, "")


@dataclass(frozen=True)
class Refused:
    """What stands in the way, and the one line that says so."""

    name: str
    line: str
    change: Callable[[Checkout], object] = lambda _: None
    words: tuple[str, ...] = ("--dry-run", "0.2.0")


def emptied(made: Checkout) -> None:
    (made.root / "changes/one.added.md").unlink()
    made.commit()


def listed(made: Checkout) -> None:
    made.edit("CHANGELOG.md", lambda text: f"{text}\n## [0.2.0] - 2026-01-01\n")
    made.commit()


def with_a_registry(made: Checkout) -> None:
    made.edit("pyproject.toml", lambda text: text.replace('y = ""', 'y = "registry.example"'))
    made.edit("pyproject.toml", lambda text: text.replace('e = ""', f'e = "{BASE}"'))
    made.commit()


def with_a_moving_base(made: Checkout) -> None:
    with_a_registry(made)
    made.edit("pyproject.toml", lambda text: text.replace(BASE, "python:3.11-slim"))
    urls = '[project.urls]\nRepository = "https://hub.example"\n\n[tool.'
    made.edit("pyproject.toml", lambda text: text.replace("[tool.", urls))
    made.commit()


def tagged(made: Checkout, main: str) -> None:
    """Tag a commit, of which main at the origin is this one."""
    made.edit("pyproject.toml", lambda text: text.replace("0.1.0", "0.2.0"))
    made.commit()
    made.git("tag", "v0.2.0")
    made.git("update-ref", "refs/remotes/origin/main", main)


def in_place(made: Checkout, sums: str, *names: str) -> None:
    """Put files into a directory."""
    (made.root / "kept/SHA256SUMS").write_text(sums)
    for name in names:
        (made.root / "kept" / name).write_text("precious")
    made.commit()


def changed(made: Checkout) -> None:
    for name in ("CHANGELOG.md", "pyproject.toml"):
        made.edit(name, lambda text: f"{text}\n")


MAKE, DRY, KEPT = ("--make", "0.2.0"), "--dry-run", ("--dry-run", "--output", "kept", "0.2.0")
OTHERS = "--output names another place"
REFUSED = [
    Refused("no version", "'0.2' is no version such as 1.2.3", words=(DRY, "0.2")),
    Refused("not a number", "'v0.2.0' is no version such as 1.2.3", words=(DRY, "v0.2.0")),
    Refused("going back", "0.0.9 is older than 0.1.0, which pyproject.toml has",
            words=(DRY, "0.0.9")),
    Refused("older than a tag", "0.2.0 is older than v0.10.0, which is released",
            lambda made: made.git("tag", "v0.10.0")),
    Refused("tagged", "the tag v0.2.0 exists already", lambda made: made.git("tag", "v0.2.0")),
    Refused("changed", "not everything is committed: CHANGELOG.md and 1 more", changed),
    Refused("another branch", "this checkout is on other; a release is made of main",
            lambda made: made.git("switch", "--quiet", "--create", "other")),
    Refused("no branch", "this checkout is on no branch; a release is made of main",
            lambda made: made.git("switch", "--quiet", "--detach")),
    Refused("nothing new",
            "changes has no file with a change, so there is nothing to release", emptied),
    Refused("listed", "CHANGELOG.md has a section 0.2.0 already", listed),
    Refused("other files", f"{{root}}/kept has other files, such as SHA256SUMS; {OTHERS}",
            words=KEPT),
    Refused("files that others list", f"{{root}}/kept has other files, such as NOTES.md; {OTHERS}",
            lambda made: in_place(made, "0  letters\n", "NOTES.md"), KEPT),
    Refused("files beside a release", f"{{root}}/kept has other files, such as letters; {OTHERS}",
            lambda made: in_place(made, "0  hedgerow-0.1.0.tar.gz\n0  letters\n", "NOTES.md"),
            KEPT),
    Refused("a file", "{root}/CHANGELOG.md is no directory",
            words=(DRY, "--output", "CHANGELOG.md", "0.2.0")),
    Refused("no platform", "'arm64' is no platform such as linux/arm64",
            words=(DRY, "--platforms", "linux/amd64,arm64", "0.2.0")),
    Refused("no home", "pyproject.toml has no Repository under [project.urls]",
            with_a_registry, ("0.2.0",)),
    Refused("a base that moves", "'python:3.11-slim' is no base by digest, such as NAME@sha256:…",
            words=("--make", "--base", "python:3.11-slim", "0.2.0")),
    Refused("a base that moves, in the commit",
            "pyproject.toml has no base by digest under [tool.hedgerow.release]",
            with_a_moving_base, ("0.2.0",)),
    Refused("nothing made", "there is no {root}/dist/0.2.0, which --make makes",
            words=("--upload", "0.2.0")),
    Refused("no tag", "this checkout is not at the tag v0.2.0", words=MAKE),
    Refused("a tag of something else", "the tag v0.2.0 has the version 0.1.0 in pyproject.toml",
            lambda made: made.git("tag", "v0.2.0"), MAKE),
    Refused("a tag beside main",
            "the tag v0.2.0 is not on origin/main, as far as this checkout knows",
            lambda made: tagged(made, "HEAD~1"), MAKE),
    Refused("a tag on main that says nothing", "CHANGELOG.md says nothing of 0.2.0 and its day",
            lambda made: tagged(made, "HEAD"), MAKE),
]  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """Return the root of a checkout of only what is looked at before anything is built."""
    root = tmp_path_factory.mktemp("small")
    shutil.copytree(ROOT / ".ci/release", root / ".ci/release")
    (root / "kept").mkdir()
    (root / "kept/letters").write_text("precious")
    (root / "kept/SHA256SUMS").write_text("0  something-else\n")
    (root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Next] - unreleased\n\n<!-- changes -->\n"
    )
    (root / "changes").mkdir()
    (root / "changes/one.added.md").write_text("A change.\n")
    (root / "pyproject.toml").write_text(
        '[project]\nversion = "0.1.0"\n\n[tool.hedgerow.release]\nregistry = ""\nbase = ""\n'
    )
    (root / ".gitignore").write_text("__pycache__/\n")
    return begun(Checkout(root)).root


class TestRefusals:
    @pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
    def test_one_line_says_what_is_in_the_way(self, case, small, tmp_path):
        checkout = Checkout(shutil.copytree(small, tmp_path, dirs_exist_ok=True))
        case.change(checkout)
        done = checkout.release(*case.words)

        assert done.stderr == f"release: {case.line.format(root=tmp_path)}\n"
        assert (done.returncode, done.stdout) == (2, "")
        assert (tmp_path / "kept/letters").exists()


@pytest.fixture(scope="module")
def changelog():
    file = ROOT / ".ci/release/changelog.py"
    spec = importlib.util.spec_from_file_location("changelog_of_releases", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


class TestChangelog:
    MARK = "<!-- changes -->"

    def test_what_is_unreleased_becomes_a_version_below_the_next(self, changelog):
        before = (
            f"# Changelog\n\n## [Next] - unreleased\n\nIn short.\n\n{self.MARK}\n\n\n"
            "### Added\n\n- One.\n\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n"
        )
        after = changelog.dated(before, "0.2.0", "2026-02-02")

        assert after == (
            f"# Changelog\n\n## [Next] - unreleased\n\n{self.MARK}\n\n"
            "## [0.2.0] - 2026-02-02\n\nIn short.\n\n### Added\n\n- One.\n\n"
            "## [0.1.0] - 2026-01-01\n\n- Old.\n"
        )
        found = changelog.sections(after)
        assert found["0.2.0"].text == "In short.\n\n### Added\n\n- One."
        assert (found["Next"].text, found["0.1.0"].day) == ("", "2026-01-01")

    def test_the_first_version_may_be_described_before_its_release(self, changelog):
        text = f"## [0.1.0] - unreleased\n\n- One.\n\n{self.MARK}\n"

        assert changelog.dated(text, "0.1.0", "2026-01-01") == (
            f"## [Next] - unreleased\n\n{self.MARK}\n\n## [0.1.0] - 2026-01-01\n\n- One.\n"
        )

    def test_each_file_of_a_change_is_named_after_its_kind_and_short(self):
        """So that `task release` can collect them: towncrier refuses other names."""
        kinds = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
        files = [file for file in (ROOT / "changes").iterdir() if file.name != "template.md"]

        named = rf"[a-z0-9-]+\.({'|'.join(kinds['fragment'])})\.md"
        assert [file.name for file in files if not re.fullmatch(named, file.name)] == []
        assert [file.name for file in files if len(file.read_text("utf-8")) > LONGEST] == []
