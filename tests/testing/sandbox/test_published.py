"""Where release binaries are published, and what tells their digests."""

import json

import pytest

from hedgerow_testing.sandbox.pins import Module, pick
from hedgerow_testing.sandbox.published import Origins, is_digest, published

RELEASE = pick("1.37")
DIGEST = "ab" * 32
OTHER = "cd" * 32
K8S = "https://dl.k8s.io/release/v1.37.2/bin/linux"
ETCD = "https://github.com/etcd-io/etcd/releases/download/v3.6.8"
KWOK = "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0"


def asset(binary: str, platform: str = "linux-amd64"):
    found = published(RELEASE.module(binary), binary, platform, Origins())
    assert found
    return found


class TestPublished:
    @pytest.mark.parametrize(
        ("binary", "platform", "url", "digests", "member"),
        [
            (
                "kube-apiserver",
                "linux-amd64",
                f"{K8S}/amd64/kube-apiserver",
                f"{K8S}/amd64/kube-apiserver.sha256",
                "",
            ),
            ("kubectl", "linux-arm64", f"{K8S}/arm64/kubectl", f"{K8S}/arm64/kubectl.sha256", ""),
            (
                "etcd",
                "linux-amd64",
                f"{ETCD}/etcd-v3.6.8-linux-amd64.tar.gz",
                f"{ETCD}/SHA256SUMS",
                "etcd-v3.6.8-linux-amd64/etcd",
            ),
            (
                "kwok",
                "linux-arm64",
                f"{KWOK}/kwok-linux-arm64",
                "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0",
                "",
            ),
        ],
    )
    def test_each_is_where_its_project_puts_it(self, binary, platform, url, digests, member):
        found = asset(binary, platform)

        assert (found.url, found.digests, found.member) == (url, digests, member)

    @pytest.mark.parametrize("platform", ["darwin-arm64", "linux-riscv64"])
    def test_for_other_platforms_there_is_none(self, platform) -> None:
        assert published(RELEASE.kwok, "kwok", platform, Origins()) is None

    def test_of_other_modules_there_is_none(self, tmp_path) -> None:
        module = Module(tmp_path / "node-1.37", "1.37.2", {"kubelet": "x"}, "", "1.26.0")

        assert published(module, "kubelet", "linux-amd64", Origins()) is None


SUMS = f"{OTHER}  etcd-v3.6.8-darwin-amd64.zip\n{DIGEST}  etcd-v3.6.8-linux-amd64.tar.gz\n"


def release(*assets: object) -> str:
    return json.dumps({"tag_name": "v0.8.0", "assets": assets})


class TestDigest:
    @pytest.mark.parametrize(
        ("binary", "content", "digest"),
        [
            ("kubectl", DIGEST, DIGEST),
            ("kubectl", f"{DIGEST.upper()}\n", DIGEST),
            ("kubectl", "<html>not found</html>", ""),
            ("kubectl", DIGEST[:-1], ""),
            ("kubectl", "", ""),
            ("etcd", SUMS, DIGEST),
            ("etcd", SUMS.replace("  ", " *"), DIGEST),
            ("etcd", f"{OTHER}  etcd-v3.6.8-darwin-amd64.zip\n", ""),
            ("etcd", "nonsense", ""),
            ("kwok", release({"name": "kwok-linux-amd64", "digest": f"sha256:{DIGEST}"}), DIGEST),
            ("kwok", release({"name": "kwok-linux-amd64", "digest": None}), ""),
            ("kwok", release({"name": "kwok-linux-amd64", "digest": "sha512:00"}), ""),
            ("kwok", release({"name": "kwok-linux-arm64", "digest": f"sha256:{DIGEST}"}), ""),
            ("kwok", '{"message": "API rate limit exceeded"}', ""),
            ("kwok", "<html>", ""),
        ],
    )
    def test_it_is_read_as_the_project_tells_it_or_is_not_there(self, binary, content, digest):
        assert asset(binary).digest_in(content.encode()) == digest

    @pytest.mark.parametrize(
        ("text", "good"), [(DIGEST, True), (DIGEST + "\n", False), ("", False)]
    )
    def test_a_digest_is_64_hexadecimal_digits(self, text, good) -> None:
        assert is_digest(text) is good
