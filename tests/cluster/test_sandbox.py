"""The sandbox's promises, kept by the real servers; test_sandbox_nodes.py has those of nodes."""

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import WRITES, AuditLog
from hedgerow_testing.sandbox import starting
from hedgerow_testing.sandbox.blueprint import Blueprint
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]


def session(kubeconfig: Path, **more: object) -> httpx.Client:
    """Connect as whom the kubeconfig names, by token or by certificate."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster_, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trust = ssl.create_default_context(cafile=cluster_["certificate-authority"])
    if "client-certificate" in user:
        trust.load_cert_chain(user["client-certificate"], user["client-key"])
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return httpx.Client(
        base_url=cluster_["server"], verify=trust, trust_env=False, headers={**headers, **more}
    )


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    connection = Api(sandbox.kubeconfig)
    yield connection
    connection.close()


class TestAccess:
    def test_a_stranger_is_nobody_and_may_nothing(self, sandbox: Sandbox) -> None:
        """Fact: the server takes a request without credentials as anonymous."""
        with session(sandbox.kubeconfig) as client:
            del client.headers["Authorization"]
            answer = client.get("/api/v1/namespaces")

        assert answer.status_code == 403
        assert "system:anonymous" in answer.json()["message"]

    def test_no_secret_file_is_readable_by_others(self, sandbox: Sandbox) -> None:
        """Fact: the modes of the files that a running sandbox has made."""
        for folder in ("pki", "configuration", "kubeconfigs"):
            for path in (sandbox.directory / folder).rglob("*"):
                assert path.stat().st_mode & 0o077 == 0, path
        assert sandbox.kubeconfig.stat().st_mode & 0o777 == 0o600

    async def test_a_user_may_what_rbac_grants_to_the_group(
        self, sandbox: Sandbox, api: Api, namespace: str
    ) -> None:
        """Fact: the server reads groups from a client certificate."""
        kubeconfig = await sandbox.kubeconfig_for("jane", ["readers"])
        url = f"/api/v1/namespaces/{namespace}/configmaps"
        with session(kubeconfig) as client:
            assert client.get(url).status_code == 403

            for manifest in granted(namespace, "readers"):
                api.apply(manifest, "test").must()

            eventually(lambda: client.get(url).status_code == 200)
            assert client.get("/api/v1/secrets").status_code == 403

    async def test_a_service_account_s_token_works(
        self, sandbox: Sandbox, api: Api, namespace: str
    ) -> None:
        """Fact: the server issues and knows tokens of ServiceAccounts."""
        metadata = {"name": "robot", "namespace": namespace}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        api.apply(account, "test").must()

        kubeconfig = await sandbox.kubeconfig_for_service_account(namespace, "robot")

        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        with session(kubeconfig) as client:
            url = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
            told = client.post(url, json=review).json()["status"]["userInfo"]
            denied = client.get("/api/v1/secrets").status_code
        assert told["username"] == f"system:serviceaccount:{namespace}:robot"
        assert denied == 403

    async def test_a_service_account_that_is_not_there_is_told(self, sandbox: Sandbox) -> None:
        """Fact: the server's words for an account that is missing."""
        with pytest.raises(SandboxError, match='serviceaccounts "nobody" not found'):
            await sandbox.kubeconfig_for_service_account("default", "nobody")


def granted(namespace: str, group: str) -> Iterator[dict[str, object]]:
    """Let a group read ConfigMaps; the role `view` is empty without the controllers."""
    metadata, rbac = {"name": "readers", "namespace": namespace}, "rbac.authorization.k8s.io"
    identity = {"apiVersion": f"{rbac}/v1", "metadata": metadata}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    yield {**identity, "kind": "Role", "rules": [rule]}
    role = {"apiGroup": rbac, "kind": "Role", "name": "readers"}
    subject = {"apiGroup": rbac, "kind": "Group", "name": group}
    yield {**identity, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}


class TestEtcd:
    @pytest.mark.parametrize(
        ("pair", "let_in"), [(None, False), ("serving", False), ("etcd-client", True)]
    )
    def test_only_its_own_authority_s_clients_are_let_in(
        self, sandbox: Sandbox, pair, let_in
    ) -> None:
        """Fact: etcd lets in whom its own authority signed."""
        pki = sandbox.directory / "pki"
        blueprint = Blueprint.load(sandbox.directory / "blueprint.json")
        assert blueprint is not None
        trust = ssl.create_default_context(cafile=pki / "etcd-ca.crt")
        if pair:
            trust.load_cert_chain(pki / f"{pair}.crt", pki / f"{pair}.key")
        with httpx.Client(verify=trust, trust_env=False) as client:
            try:
                url = f"https://127.0.0.1:{blueprint.ports['etcd']}/health"
                status = client.get(url).status_code
            except httpx.TransportError:
                status = 0

        assert (status == 200) is let_in


class TestServers:
    def test_kubectl_works_with_the_environment_alone(self, sandbox: Sandbox) -> None:
        """Fact: kubectl finds the sandbox by the variables that we print."""
        answer = subprocess.run(
            [sandbox.kubectl, "get", "namespace", "default", "-o", "name"],
            env={**os.environ, **sandbox.environment()},
            capture_output=True,
            text=True,
            check=True,
        )

        assert answer.stdout == "namespace/default\n"

    async def test_the_version_is_the_pinned_one(self, sandbox: Sandbox, api: Api) -> None:
        """Fact: the version that the running server tells."""
        told = api.raw("GET", "/version").body

        assert told["gitVersion"] == f"v{(await sandbox.status()).version}"
        assert told["major"], told["minor"]


class TestAudit:
    def test_a_write_can_be_read_at_once_with_its_body(
        self, api: Api, audit_log: AuditLog, namespace: str
    ) -> None:
        """Fact: the server writes its audit log before it answers."""
        mark = audit_log.mark()
        api.apply(config_map(namespace, {"key": "value"}), "audited").must()

        (entry,) = audit_log.writes(mark, namespace=namespace)

        assert entry["verb"] == "patch"
        assert "fieldManager=audited" in entry["requestURI"]
        assert entry["requestObject"]["data"] == {"key": "value"}
        assert entry["user"]["username"] == "admin"
        assert entry["responseStatus"]["code"] == 201

    def test_a_write_that_changes_nothing_counts_as_a_write(
        self, api: Api, audit_log: AuditLog, namespace: str
    ) -> None:
        """Fact: the server notes an apply that changes nothing."""
        api.apply(config_map(namespace, {"key": "value"}), "audited").must()
        mark = audit_log.mark()

        api.apply(config_map(namespace, {"key": "value"}), "audited").must()

        assert len(audit_log.writes(mark, namespace=namespace)) == 1

    def test_reads_are_there_without_bodies(
        self, api: Api, audit_log: AuditLog, namespace: str
    ) -> None:
        """Fact: the audit policy leaves out the bodies of reads."""
        mark = audit_log.mark()
        api.raw("GET", f"/api/v1/namespaces/{namespace}/configmaps")

        (entry,) = audit_log.since(mark, namespace=namespace)

        assert entry["verb"] == "list"
        assert "requestObject" not in entry
        assert audit_log.writes(mark, namespace=namespace) == []

    def test_entries_are_chosen_by_agent_user_verb_and_resource(
        self, api: Api, audit_log: AuditLog, sandbox: Sandbox, namespace: str
    ) -> None:
        """Fact: how the server spells agent, user, verb and resource."""
        mark = audit_log.mark()
        with session(sandbox.kubeconfig, **{"User-Agent": "tester/1.0"}) as client:
            client.get(f"/api/v1/namespaces/{namespace}/configmaps")
            client.delete(f"/api/v1/namespaces/{namespace}/configmaps/none")
        api.raw("GET", f"/api/v1/namespaces/{namespace}/secrets")

        found = audit_log.since(mark, agent="tester", user="admin", resource="configmaps")
        assert [entry["verb"] for entry in found] == ["list", "delete"]
        assert len(audit_log.since(mark, agent="tester", verbs=WRITES)) == 1
        assert audit_log.since(mark, agent="other") == []
        assert audit_log.since(mark, user="jane") == []

    def test_leases_are_kept_in_the_log_and_left_out_of_the_writes(
        self, api: Api, audit_log: AuditLog, namespace: str
    ) -> None:
        """Fact: the server notes writes of Leases as any other."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "it", "namespace": namespace},
        }
        mark = audit_log.mark()
        api.apply(lease, "audited").must()

        assert len(audit_log.since(mark, resource="leases", namespace=namespace)) == 1
        assert audit_log.writes(mark, namespace=namespace) == []


def config_map(namespace: str, content: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "it", "namespace": namespace},
        "data": content,
    }


class TestStart:
    async def test_a_gate_has_its_effect_and_the_complaint_about_a_port_is_understood(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fact: in which words a server says that its port is taken, and which gates are on."""
        it, told = Sandbox(tmp_path / "it"), []
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            first = {"kube-apiserver": taken.getsockname()[1]}
            monkeypatch.setattr(starting, "choose", lambda n: {**choose(n), **first})

            def tell(line: str) -> None:
                told.append(line)
                if line.startswith("choosing other ports"):
                    first.clear()

            await it.up(Options(), tell)

        assert (await it.status()).up
        assert sum(line.startswith("choosing other ports") for line in told) == 1
        await it.down()
