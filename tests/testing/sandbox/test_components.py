"""The command lines: everything on the loopback address, nothing open to strangers."""

import csv
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hedgerow_testing.sandbox.blueprint import CONTROLLERS, PEER, Blueprint, Options
from hedgerow_testing.sandbox.components import STAGES, USERS, command, health, write_configuration
from hedgerow_testing.sandbox.directory import Directory

OPTIONS = Options(nodes=1, audit=Path("/logs/audit.log"))
PORTS = {name: 20_000 + n for n, name in enumerate((*OPTIONS.components(), PEER))}
BLUEPRINT = Blueprint(
    options=OPTIONS,
    version="1.37.2",
    binaries={name: Path("/bin") / name for name in OPTIONS.components()},
    ports=PORTS,
    tokens={user: f"token-of-{user}" for user in USERS},
)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    made = Directory(tmp_path / "it")
    made.prepare()
    made.furnish()
    write_configuration(made, BLUEPRINT)
    return made


def flags(component: str, directory: Directory, blueprint: Blueprint = BLUEPRINT) -> dict[str, str]:
    binary, *given = map(str, command(component, directory, blueprint))
    assert binary == f"/bin/{component}"
    return dict(flag.removeprefix("--").split("=", 1) for flag in given)


class TestCommand:
    @pytest.mark.parametrize("component", OPTIONS.components())
    def test_a_server_listens_on_the_loopback_address_alone(self, directory, component) -> None:
        given = flags(component, directory)

        listening = [given[n] for n in given if n.startswith("listen") or n.endswith("address")]
        assert listening
        for address in listening:
            assert "127.0.0.1" in address

    @pytest.mark.parametrize("component", OPTIONS.components())
    def test_every_file_it_names_is_there_and_readable_by_its_owner_alone(
        self, directory, component
    ) -> None:
        given = flags(component, directory)
        named = {Path(v) for n, v in given.items() if v.startswith(str(directory.path))}
        named -= {directory.etcd}

        assert named
        for path in named:
            assert path.is_dir() or path.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("component", OPTIONS.components())
    def test_no_secret_is_on_a_command_line(self, directory, component) -> None:
        line = shlex.join(map(str, command(component, directory, BLUEPRINT)))

        assert "token-of" not in line

    def test_etcd_demands_client_certificates_of_its_own_authority(self, directory) -> None:
        given = flags("etcd", directory)

        for purpose in ("", "peer-"):
            assert given[f"{purpose}client-cert-auth"] == "true"
            assert given[f"{purpose}trusted-ca-file"].endswith("etcd-ca.crt")
        assert given["unsafe-no-fsync"] == "true"

    def test_the_api_server_has_rbac_and_nothing_weaker(self, directory) -> None:
        given = flags("kube-apiserver", directory)

        assert given["authorization-mode"] == "RBAC"
        assert given["client-ca-file"].endswith("pki/ca.crt")
        assert "disable-admission-plugins" not in given

    def test_the_audit_log_is_written_before_the_answer_and_kept_in_one_file(
        self, directory
    ) -> None:
        given = flags("kube-apiserver", directory)

        assert given["audit-log-path"] == "/logs/audit.log"
        assert given["audit-log-mode"] == "blocking"
        assert int(given["audit-log-maxsize"]) > 1000
        policy = json.loads(Path(given["audit-policy-file"]).read_text())
        assert policy["rules"][0]["level"] == "Request"
        assert {"create", "update", "patch", "delete"} < set(policy["rules"][0]["verbs"])
        assert policy["rules"][-1] == {"level": "Metadata"}

    def test_the_audit_log_has_the_answers_to_writes_on_request(self, directory) -> None:
        blueprint = replace(BLUEPRINT, options=replace(OPTIONS, responses=True))
        write_configuration(directory, blueprint)
        given = flags("kube-apiserver", directory, blueprint)

        policy = json.loads(Path(given["audit-policy-file"]).read_text())
        assert [rule["level"] for rule in policy["rules"]] == ["RequestResponse", "Metadata"]

    def test_without_an_audit_file_no_flag_speaks_of_it(self, directory) -> None:
        given = flags("kube-apiserver", directory, replace(BLUEPRINT, options=Options()))

        assert not [name for name in given if "audit" in name]


class TestWriteConfiguration:
    def test_the_controllers_are_no_masters(self, directory) -> None:
        with (directory.configuration / "tokens.csv").open(newline="") as file:
            rows = {user: (token, groups) for token, user, _, groups in csv.reader(file)}

        assert rows["admin"] == ("token-of-admin", "system:masters")
        for name in CONTROLLERS:
            assert rows[f"system:{name}"] == (f"token-of-system:{name}", "")

    def test_the_administrator_s_kubeconfig_needs_no_temporary_files(self, directory) -> None:
        config = yaml.safe_load(directory.kubeconfig.read_text())

        assert directory.kubeconfig.stat().st_mode & 0o777 == 0o600
        (cluster,), (user,) = config["clusters"], config["users"]
        assert cluster["cluster"]["server"] == f"https://127.0.0.1:{PORTS['kube-apiserver']}"
        assert Path(cluster["cluster"]["certificate-authority"]).exists()
        assert user["user"] == {"token": "token-of-admin"}

    def test_two_sandboxes_share_no_key(self, directory, tmp_path: Path) -> None:
        other = Directory(tmp_path / "other")
        other.prepare()
        other.furnish()
        write_configuration(other, BLUEPRINT)

        keys = [path.read_bytes() for d in (directory, other) for path in d.pki.glob("*.key")]
        assert len(set(keys)) == len(keys)


class TestHealth:
    @pytest.mark.parametrize("component", OPTIONS.components())
    def test_a_component_is_asked_over_tls_on_its_own_port(self, component) -> None:
        asked = health(component, BLUEPRINT)

        assert asked.url.startswith(f"https://127.0.0.1:{PORTS[component]}/")


class TestStages:
    def test_every_stage_is_one_that_kwok_reads(self) -> None:
        stages = list(yaml.safe_load_all(STAGES.read_text()))

        assert [stage["metadata"]["name"] for stage in stages] == [
            "node-ready",
            "pod-start",
            "pod-gates-open",
            "pod-gates-shut",
            "pod-complete",
            "pod-delete",
        ]
        assert {stage["kind"] for stage in stages} == {"Stage"}
