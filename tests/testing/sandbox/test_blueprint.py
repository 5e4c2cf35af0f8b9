"""What a sandbox was asked to be, and whether that is what is asked for now."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hedgerow_testing.sandbox.blueprint import Blueprint, Options

AUDIT = Path("/tmp/audit.log")
PLAIN = Blueprint(
    options=Options(),
    version="1.37.2",
    binaries={"etcd": Path("/bin/etcd")},
    ports={"kube-apiserver": 6443},
    tokens={"admin": "secret"},
)
RICH = replace(PLAIN, options=Options(nodes=2, audit=AUDIT))


@dataclass(frozen=True)
class Case:
    have: Blueprint
    wanted: Options
    told: tuple[str, ...] = ()


CASES = {
    "the same": Case(PLAIN, Options()),
    "less than there is": Case(RICH, Options()),
    "all there is": Case(RICH, RICH.options),
    "controllers come with nodes": Case(RICH, Options(controllers=True)),
    "its version by another name": Case(PLAIN, Options(kubernetes="v1.37")),
    "another version": Case(PLAIN, Options(kubernetes="1.35"), ("Kubernetes 1.37.2",)),
    "a longer version": Case(PLAIN, Options(kubernetes="1.3"), ("Kubernetes 1.37.2",)),
    "controllers": Case(PLAIN, Options(controllers=True), ("no controllers",)),
    "nodes": Case(PLAIN, Options(nodes=1), ("0 nodes", "no controllers")),
    "more nodes": Case(RICH, Options(nodes=3), ("2 nodes",)),
    "an audit log": Case(PLAIN, Options(audit=AUDIT), ("audit log off",)),
    "another audit log": Case(RICH, Options(audit=Path("/b")), (f"audit log {AUDIT}",)),
    "answers": Case(PLAIN, Options(responses=True), ("no answers in its audit log",)),
}


class TestDifferences:
    @pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
    def test_only_what_is_wanted_and_lacking_is_a_difference(self, case: Case) -> None:
        assert case.have.differences(case.wanted) == list(case.told)


class TestComponents:
    def test_they_come_in_the_order_of_their_start(self) -> None:
        servers = ("etcd", "kube-apiserver")
        controllers = ("kube-controller-manager", "kube-scheduler")

        assert Options().components() == servers
        assert Options(controllers=True).components() == (*servers, *controllers)
        assert Options(nodes=1).components() == (*servers, *controllers, "kwok")


class TestLoad:
    @pytest.mark.parametrize("blueprint", [PLAIN, RICH])
    def test_what_was_saved_is_read_back_and_was_private(self, tmp_path: Path, blueprint) -> None:
        path = tmp_path / "it"
        blueprint.save(path)

        assert Blueprint.load(path) == blueprint
        assert path.stat().st_mode & 0o777 == 0o600

    def test_a_missing_or_damaged_one_is_none(self, tmp_path: Path) -> None:
        assert Blueprint.load(tmp_path / "it") is None
        (tmp_path / "it").write_text('{"options": ')
        assert Blueprint.load(tmp_path / "it") is None
