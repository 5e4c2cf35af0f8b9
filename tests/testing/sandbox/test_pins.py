"""Which Kubernetes a sandbox may be, as the committed Go modules say."""

import shutil
from pathlib import Path

import pytest

from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.pins import CONTROL_PLANE, MODULES, numbers, pick, releases

PINNED = [release.version for release in releases()]


class TestReleases:
    def test_the_newest_comes_first(self) -> None:
        found = [numbers(release.version) for release in releases()]

        assert found == sorted(found, reverse=True)
        assert len(found) >= 2

    @pytest.mark.parametrize("release", releases(), ids=lambda release: release.version)
    def test_every_binary_is_a_tool_of_its_pinned_module(self, release) -> None:
        for binary in (*CONTROL_PLANE, "kubectl", "etcd", "kwok"):
            module = release.module(binary)
            text = (module.directory / "go.mod").read_text("utf-8")

            assert module.packages[binary] in text
            assert f"v{module.version}" in text

    @pytest.mark.parametrize("release", releases(), ids=lambda release: release.version)
    def test_every_staging_module_is_pinned_to_its_kubernetes(self, release) -> None:
        staging = f"v0{release.version.removeprefix('1')}"
        lines = (release.kubernetes.directory / "go.mod").read_text("utf-8").splitlines()
        replaced = [line.split() for line in lines if "=>" in line]

        assert len(replaced) > 25
        assert {parts[-1] for parts in replaced} == {staging}

    def test_kubernetes_is_stamped_with_its_version_and_the_others_are_not(self) -> None:
        release = pick("1.37")

        stamp = "k8s.io/component-base/version.git"
        assert f"-X {stamp}Version=v1.37.2" in release.kubernetes.ldflags
        assert f"-X {stamp}Major=1 -X {stamp}Minor=37" in release.kubernetes.ldflags
        assert release.etcd.ldflags == release.kwok.ldflags == "-s -w"

    def test_a_go_mod_without_its_module_is_an_error_and_not_a_guess(self, tmp_path: Path) -> None:
        shutil.copytree(MODULES, tmp_path / "modules")
        (tmp_path / "modules/etcd/go.mod").write_text("module x\n\ngo 1.26.0\n")

        with pytest.raises(ValueError, match=r"pinned go\.mod"):
            releases(tmp_path / "modules")


class TestPick:
    @pytest.mark.parametrize(
        ("wanted", "version"),
        [
            ("", PINNED[0]),
            ("1.37", "1.37.2"),
            ("v1.37", "1.37.2"),
            ("1.37.2", "1.37.2"),
            ("v1.37.2", "1.37.2"),
            ("1.35", "1.35.4"),
        ],
    )
    def test_a_pinned_version_is_found_by_any_of_its_names(self, wanted, version) -> None:
        assert pick(wanted).version == version

    @pytest.mark.parametrize("wanted", ["1.3", "1", "2.0", "1.37.20", "1.37.", "newest", "1.37.2 "])
    def test_any_other_version_is_refused_with_the_list_of_the_pinned(self, wanted) -> None:
        with pytest.raises(SandboxError, match=f"choose one of {', '.join(PINNED)}"):
            pick(wanted)


class TestDigest:
    def test_it_changes_with_the_sums_and_with_the_module(self, tmp_path: Path) -> None:
        shutil.copytree(MODULES, tmp_path / "modules")
        seen = {pick("", tmp_path / "modules").etcd.digest}

        for name in ("go.sum", "go.mod"):
            with (tmp_path / "modules/etcd" / name).open("a") as file:
                file.write("\n")
            seen.add(pick("", tmp_path / "modules").etcd.digest)

        assert len(seen) == 3
