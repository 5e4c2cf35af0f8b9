# the stand-in has the signatures of Cluster
from __future__ import annotations

import json
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import partial
from types import SimpleNamespace

import pytest
import yaml
from typer import Typer
from typer.testing import CliRunner

from hedgerow.cli.exits import Exit
from hedgerow.cli.install import definitions as installing
from hedgerow.cli.install.command import (
    Again,
    install_command,
    installed,
    show,
    told,
    told_of_role,
    uninstall_command,
)
from hedgerow.cli.install.definitions import (
    ATTEMPTS,
    FIELD_MANAGER,
    SERVED_TIMEOUT,
    SETTLE,
    InstallError,
    close,
    is_closed,
)
from hedgerow.cli.install.roles import grant, revoke
from hedgerow.deploy import access
from hedgerow.deploy.names import Names
from hedgerow.kube.errors import Cause, Conflict, Forbidden, Missing, Stale
from hedgerow.kube.retry import RetryClock
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.crd import crd_name
from hedgerow_schemas.memcached import Memcached
from hedgerow_schemas.openapi import DOCUMENT_PATH
from support.operator.registered import ALL, RESOURCES

NAME = "bluegreens.app.demo.kakao.com"
pytestmark = pytest.mark.anyio

# One definition is enough to tell what happens to each.
install = partial(installing.install, resources=(BlueGreen,))
uninstall = partial(installing.uninstall, resources=(BlueGreen,))


class Other(BlueGreen):
    """A second resource."""

    api = ApiResource("other.example.com/v1", "Other", "others")


class Time:
    """Virtual time: a sleep passes at once, and is counted."""

    def __init__(self):
        self.seconds = 0.0
        self.timing = RetryClock(now=lambda: self.seconds, sleep=self.sleep, draw=lambda: 0.5)

    async def sleep(self, seconds):
        self.seconds += seconds


class Cluster:
    """A cluster of definitions: keeps what is applied and answers as the API server does."""

    def __init__(self):
        self.crds = {}
        self.roles = {}
        self.may_grant = True
        self.instances = []
        self.more = 0
        self.openapi = installing.packaged_document()
        self.version = "v1.37.2"
        self.conflicts = {}
        self.establish_after = 0
        self.served = True
        self.names_accepted = True
        self.linger = 0
        self.stale = 0
        self.deleted_closed = []
        self.stored = []
        self.log = []

    def put(self, crd, manager=FIELD_MANAGER):
        name = crd["metadata"]["name"]
        entry = {"manager": manager, "operation": "Apply", "time": f"t{len(self.log)}"}
        status = {"manager": "kube-apiserver", "subresource": "status"}
        live = deepcopy(crd)
        live["metadata"] |= {
            "uid": f"uid-{name}",
            "resourceVersion": f"{len(self.log)}",
            "managedFields": [entry, status],
        }
        self.crds[name] = live
        return live

    def put_role(self, body, manager=FIELD_MANAGER):
        meta = {
            **body["metadata"],
            "uid": f"uid-{len(self.log)}",
            "managedFields": [{"manager": manager, "operation": "Apply"}],
        }
        return {**body, "metadata": meta}

    def apply_role(self, name, body, manager, dry_run):
        """Create a role only with a version, and change only the one with its uid."""
        before = self.roles.get(name)
        meta = body["metadata"]
        if name in self.conflicts:
            raise Conflict("held", causes=self.conflicts[name])
        if before is None and "uid" in meta:
            raise Stale("gone")
        if before is not None and meta.get("uid") != before["metadata"]["uid"]:
            raise Stale("another")
        live = self.put_role(deepcopy(body), manager)
        if before is not None:
            live["metadata"]["uid"] = before["metadata"]["uid"]
        if not dry_run:
            self.roles[name] = live
        return SimpleNamespace(object=live, created=before is None)

    async def read(self, api, name, namespace=""):
        if api.kind == "ClusterRole":
            if not self.may_grant:
                raise Forbidden("you may not")
            return deepcopy(self.roles.get(name))
        self.log.append(("read", name))
        live = deepcopy(self.crds.get(name))
        if live is not None and live["metadata"].get("deletionTimestamp"):
            self.linger -= 1
            if self.linger < 0:
                del self.crds[name]
        elif live is not None:
            established = self.establish_after <= 0
            self.establish_after -= 1
            accepted = {"status": str(self.names_accepted), "message": "bg is taken"}
            live["status"] = {
                **live.get("status", {}),
                "conditions": [
                    {"type": "NamesAccepted", **accepted},
                    {"type": "Established", "status": str(established)},
                ],
            }
        return live

    async def apply(self, api, body, *, manager, timeout=10.0, dry_run=False):
        name = body["metadata"]["name"]
        if api.kind == "ClusterRole":
            return self.apply_role(name, body, manager, dry_run)
        self.log.append(("apply", name, manager, dry_run))
        if name in self.conflicts:
            raise Conflict("held", causes=self.conflicts[name])
        created = name not in self.crds
        before = self.crds.get(name)
        live = self.put(body, manager)
        if dry_run:
            self.crds.pop(name)
            if before is not None:
                self.crds[name] = before
        return SimpleNamespace(object=live, created=created)

    async def list(self, api, *, reduce):
        self.log.append(("list", api.plural, api.group_version))
        if isinstance(self.stored, Exception):
            raise self.stored
        return SimpleNamespace(items=tuple(map(reduce, deepcopy(self.stored))))

    def widen(self):
        """Have the definition that is there know a field that ours does not, and objects use it."""
        [version] = self.crds[NAME]["spec"]["versions"]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["extra"] = {"type": "string"}
        meta = [{"namespace": "shop", "name": f"demo-{number}"} for number in range(7)]
        self.stored = [{"metadata": one, "spec": {"extra": "x"}} for one in meta]

    async def get(self, path, *, params=None):
        if path == DOCUMENT_PATH:
            if isinstance(self.openapi, Exception):
                raise self.openapi
            return self.openapi
        if path == "/version":
            return {"gitVersion": self.version}
        if not self.served:
            raise Missing("not served")
        items = [{"metadata": {"name": n, "namespace": "shop"}} for n in self.instances]
        return {"items": items, "metadata": {"remainingItemCount": self.more}}

    async def resource(self, group_version, kind):
        if not self.served:
            raise Missing("not served")
        return BlueGreen.api

    async def delete(self, api, name, *, uid, version=""):
        if api.kind == "ClusterRole":
            assert self.roles.pop(name)["metadata"]["uid"] == uid
            return True
        self.log.append(("delete", name, uid))
        self.deleted_closed.append(is_closed(self.crds[name]))
        if self.stale:
            self.stale -= 1
            raise Stale("changed just now")
        self.crds[name]["metadata"]["deletionTimestamp"] = "now"
        return True


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def at_once(monkeypatch):
    """Have the commands wait for no other API server: they go by the real time."""
    monkeypatch.setattr(installing, "SETTLE", 0.0)


@pytest.fixture
def time():
    return Time()


def actions(changes):
    return [(change.name, change.action) for change in changes]


class TestInstall:
    async def test_what_is_missing_is_created_under_our_field_manager_unforced(self, cluster, time):
        changes = await install(cluster, plain=True, timing=time.timing)

        assert actions(changes) == [(NAME, "created")]
        assert ("apply", NAME, "hedgerow-install", False) in cluster.log

    async def test_the_second_run_changes_nothing(self, cluster, time):
        await install(cluster, timing=time.timing)

        assert actions(await install(cluster, timing=time.timing)) == [(NAME, "unchanged")]

    async def test_a_changed_definition_is_configured(self, cluster, time):
        cluster.openapi = described(cluster.openapi)
        await install(cluster, plain=True, timing=time.timing)

        assert actions(await install(cluster, timing=time.timing)) == [(NAME, "configured")]

    async def test_a_conflict_is_told_and_the_rest_goes_on(self, cluster, time):
        cluster.conflicts[NAME] = (Cause(".spec.versions", "kubectl", "conflict with …"),)
        changes = await install(cluster, resources=(BlueGreen, Other), timing=time.timing)

        assert actions(changes) == [(NAME, "conflicted"), ("others.other.example.com", "created")]
        assert [(held.path, held.manager) for held in changes[0].conflicts] == [
            (".spec.versions", "kubectl")
        ]

    async def test_a_dry_run_asks_the_server_and_changes_nothing(self, cluster, time):
        changes = await install(cluster, dry_run=True, timing=time.timing)

        assert actions(changes) == [(NAME, "created")]
        assert cluster.crds == {}
        assert ("apply", NAME, "hedgerow-install", True) in cluster.log

    async def test_it_waits_until_the_definition_is_established(self, cluster, time):
        cluster.establish_after = 4
        await install(cluster, timing=time.timing)

        assert 0 < time.seconds < SERVED_TIMEOUT

    async def test_established_but_not_yet_in_discovery_is_not_served(self, cluster, time):
        cluster.served = False

        with pytest.raises(InstallError, match="not served after 60 s"):
            await install(cluster, timing=time.timing)
        assert time.seconds >= SERVED_TIMEOUT

    async def test_names_that_another_definition_has_end_the_wait_at_once(self, cluster, time):
        cluster.names_accepted = False

        with pytest.raises(InstallError, match="not accepted: bg is taken"):
            await install(cluster, timing=time.timing)
        assert time.seconds == 0

    async def test_a_definition_that_is_being_deleted_is_not_written(self, cluster, time):
        live = cluster.put({"metadata": {"name": NAME}})
        live["metadata"]["deletionTimestamp"] = "now"
        cluster.linger = 9

        with pytest.raises(InstallError, match="being deleted"):
            await install(cluster, timing=time.timing)
        assert [entry for entry in cluster.log if entry[0] == "apply"] == []

    @pytest.mark.parametrize(
        "openapi",
        [Missing("no such path"), Forbidden("not yours"), {"components": {"schemas": {}}}],
        ids=["missing", "forbidden", "not understood"],
    )
    async def test_without_the_clusters_openapi_plain_is_the_remedy(self, cluster, time, openapi):
        cluster.openapi = openapi

        with pytest.raises(InstallError, match="install with --plain"):
            await install(cluster, timing=time.timing)
        assert actions(await install(cluster, plain=True, timing=time.timing)) == [
            (NAME, "created")
        ]


class TestNarrowing:
    """A definition by which objects that are there would lose something."""

    @pytest.fixture(autouse=True)
    async def installed(self, cluster, time):
        await install(cluster, plain=True, timing=time.timing)
        cluster.widen()
        cluster.log.clear()

    @pytest.mark.parametrize("dry_run", [False, True])
    async def test_it_is_refused_with_what_would_be_lost_and_the_rest_goes_on(
        self, cluster, time, dry_run
    ):
        before = deepcopy(cluster.crds[NAME]["spec"])
        first, other = await install(
            cluster, plain=True, dry_run=dry_run, resources=(BlueGreen, Other), timing=time.timing
        )

        assert (first.action, other.action) == ("refused", "created")
        assert [(loss.what, loss.count) for loss in first.losses] == [
            (".spec.extra: would be lost", 7)
        ]
        assert first.losses[0].objects == tuple(f"shop/demo-{number}" for number in range(5))
        assert cluster.crds[NAME]["spec"] == before
        assert [entry[1] for entry in cluster.log if entry[0] == "apply"] == [
            "others.other.example.com"
        ]

    async def test_it_is_applied_if_it_may_be_breaking_and_told_all_the_same(self, cluster, time):
        [change] = await install(cluster, plain=True, breaking=True, timing=time.timing)

        assert (change.action, len(change.losses)) == ("configured", 1)
        assert "extra" not in str(cluster.crds[NAME]["spec"])

    async def test_without_an_object_that_has_the_field_it_is_applied(self, cluster, time):
        for one in cluster.stored:
            del one["spec"]["extra"]

        assert actions(await install(cluster, plain=True, timing=time.timing)) == [
            (NAME, "configured")
        ]

    async def test_where_nothing_is_narrowed_no_object_is_read(self, cluster, time):
        await install(cluster, plain=True, breaking=True, timing=time.timing)
        cluster.log.clear()

        assert actions(await install(cluster, plain=True, timing=time.timing)) == [
            (NAME, "unchanged")
        ]
        assert [entry for entry in cluster.log if entry[0] == "list"] == []

    @pytest.mark.parametrize("error", [Missing("not served"), Forbidden("not yours")])
    async def test_what_cannot_be_read_is_not_taken_for_nothing(self, cluster, time, error):
        cluster.stored = error

        with pytest.raises(InstallError, match=r"unknown what they would lose: .*give --breaking"):
            await install(cluster, plain=True, timing=time.timing)
        [change] = await install(cluster, plain=True, breaking=True, timing=time.timing)
        assert (change.action, change.losses) == ("configured", ())

    @pytest.mark.parametrize("breaking", [False, True])
    async def test_a_version_in_which_something_is_stored_may_not_go(self, cluster, time, breaking):
        cluster.crds[NAME]["status"] = {"storedVersions": ["v1", "v0"]}

        with pytest.raises(InstallError, match="stored in version v0, which the new definition"):
            await install(cluster, plain=True, breaking=breaking, timing=time.timing)
        assert [entry for entry in cluster.log if entry[0] == "apply"] == []

    async def test_what_another_manager_holds_is_told_only_if_nothing_would_be_lost(
        self, cluster, time
    ):
        cluster.conflicts[NAME] = (Cause(".spec.versions", "kubectl", "conflict with …"),)

        assert actions(await install(cluster, plain=True, timing=time.timing)) == [
            (NAME, "refused")
        ]
        [change] = await install(cluster, plain=True, breaking=True, timing=time.timing)
        assert (change.action, len(change.losses)) == ("conflicted", 1)


class TestUninstall:
    @pytest.fixture(autouse=True)
    async def installed(self, cluster, time):
        await install(cluster, plain=True, timing=time.timing)

    async def test_exactly_the_definition_that_was_seen_is_deleted(self, cluster, time):
        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "deleted")]
        assert ("delete", NAME, f"uid-{NAME}") in cluster.log

    async def test_what_is_not_there_is_absent(self, cluster, time):
        cluster.crds = {}

        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "absent")]

    @pytest.mark.parametrize(
        ("instances", "more", "said"),
        [
            (["demo"], 0, r"1 bluegreens exist \(shop/demo\)"),
            (["a", "b"], 7, r"9 bluegreens exist \(shop/a, shop/b, …\)"),
        ],
        ids=["one", "more than shown"],
    )
    async def test_it_refuses_while_resources_exist(self, cluster, time, instances, more, said):
        cluster.instances, cluster.more = instances, more

        with pytest.raises(InstallError, match=said):
            await uninstall(cluster, timing=time.timing)
        assert NAME in cluster.crds

    async def test_every_kind_that_there_is_something_of_is_named(self, cluster, time):
        both = (BlueGreen, Other)
        await installing.install(cluster, plain=True, resources=both, timing=time.timing)
        cluster.instances = ["demo"]

        with pytest.raises(InstallError) as refused:
            await installing.uninstall(cluster, resources=both, timing=time.timing)
        assert str(refused.value).startswith(
            "1 bluegreens exist (shop/demo), 1 others exist (shop/demo); delete them first"
        )

    async def test_the_definition_is_closed_to_new_resources_when_it_is_deleted(
        self, cluster, time
    ):
        await uninstall(cluster, timing=time.timing)

        assert cluster.deleted_closed == [True]
        assert time.seconds >= SETTLE

    async def test_a_resource_that_was_made_before_it_was_closed_is_kept(self, cluster, time):
        before = cluster.crds[NAME]["spec"]
        during_sleep(time, lambda: cluster.instances.append("late"))

        with pytest.raises(InstallError, match=r"1 bluegreens exist \(shop/late\)"):
            await uninstall(cluster, timing=time.timing)
        assert cluster.deleted_closed == []
        assert cluster.crds[NAME]["spec"] == before

    async def test_where_another_manager_holds_the_definition_nothing_is_deleted(
        self, cluster, time
    ):
        cluster.conflicts[NAME] = (Cause(".spec.versions", "kubectl", "conflict with …"),)

        with pytest.raises(InstallError, match="cannot keep others from creating resources"):
            await uninstall(cluster, timing=time.timing)
        assert cluster.deleted_closed == []

    async def test_one_that_is_installed_again_meanwhile_is_not_deleted(self, cluster, time):
        opened = deepcopy(cluster.crds[NAME])
        during_sleep(time, lambda: cluster.crds.update({NAME: opened}))

        with pytest.raises(InstallError, match="was installed again meanwhile"):
            await uninstall(cluster, timing=time.timing)
        assert cluster.deleted_closed == []

    async def test_one_that_somebody_else_deletes_meanwhile_is_gone(self, cluster, time):
        during_sleep(time, cluster.crds.clear)

        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "deleted")]
        assert cluster.deleted_closed == []

    async def test_one_that_changes_just_then_is_looked_at_again(self, cluster, time):
        cluster.stale = 2

        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "deleted")]
        assert cluster.deleted_closed == [True] * 3

    async def test_one_that_changes_all_the_time_is_left_and_opened_again(self, cluster, time):
        cluster.stale = ATTEMPTS

        with pytest.raises(Stale):
            await uninstall(cluster, timing=time.timing)
        assert not is_closed(cluster.crds[NAME])

    async def test_after_one_that_was_killed_it_goes_on(self, cluster, time):
        await close(cluster, deepcopy(cluster.crds[NAME]))

        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "deleted")]

    async def test_told_so_it_deletes_them_too(self, cluster, time):
        cluster.instances = ["demo"]
        changes = await uninstall(cluster, delete_resources=True, timing=time.timing)

        assert actions(changes) == [(NAME, "deleted")]

    async def test_a_definition_of_somebody_else_is_refused(self, cluster, time):
        cluster.put({"metadata": {"name": NAME}}, manager="kubectl")

        with pytest.raises(InstallError, match=r"not installed by hedgerow .*: kubectl\)"):
            await uninstall(cluster, delete_resources=True, timing=time.timing)
        assert NAME in cluster.crds

    async def test_one_refusal_keeps_all_definitions(self, cluster, time):
        cluster.put({"metadata": {"name": "others.other.example.com"}}, manager="kubectl")

        with pytest.raises(InstallError):
            await uninstall(cluster, resources=(BlueGreen, Other), timing=time.timing)
        assert [entry for entry in cluster.log if entry[0] == "delete"] == []

    async def test_it_waits_until_the_definition_is_gone(self, cluster, time):
        cluster.linger = 4
        await uninstall(cluster, timing=time.timing)

        assert 0 < time.seconds < SERVED_TIMEOUT
        assert cluster.crds == {}

    async def test_a_definition_made_again_meanwhile_counts_as_gone(self, cluster, time):
        cluster.linger = 10**6
        replace_during_sleep(cluster, time)

        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "deleted")]

    async def test_a_definition_that_stays_is_an_error_that_says_where_to_look(self, cluster, time):
        cluster.linger = 10**6

        with pytest.raises(InstallError, match="still there after 60 s; see which finalizers"):
            await uninstall(cluster, delete_resources=True, timing=time.timing)

    async def test_no_answer_is_not_taken_for_no_resources(self, cluster, time):
        cluster.served = False

        with pytest.raises(InstallError, match="it is unknown whether bluegreens exist"):
            await uninstall(cluster, timing=time.timing)
        assert NAME in cluster.crds

        changes = await uninstall(cluster, delete_resources=True, timing=time.timing)
        assert actions(changes) == [(NAME, "deleted")]


@pytest.mark.usefixtures("at_once")
class TestCommands:
    """What is printed, and with which exit code."""

    async def test_an_installation_says_what_changed_and_how_large_it_is(self, cluster, capsys):
        show(await applied(cluster), plain=True, dry_run=False)
        size = f"{installing.size(cluster.crds[NAME]) / 1000:.0f}"

        said = capsys.readouterr().out
        assert said.startswith(f"customresourcedefinition/{NAME} created: {size[:2]}")

    async def test_a_kubernetes_that_is_not_supported_is_told_of_in_one_line(self, cluster, capsys):
        cluster.version = "v1.29.4"

        await applied(cluster, dry_run=True)
        told = "hedgerow: Kubernetes 1.29 is not supported: 1.35 is the oldest that is\n"
        assert capsys.readouterr().err.startswith(told)

    async def test_a_conflict_names_the_field_the_manager_and_the_remedy(self, cluster, capsys):
        cluster.conflicts[NAME] = (Cause(".spec.versions", "kubectl", "conflict with …"),)
        show(await applied(cluster), plain=True, dry_run=False)
        text = capsys.readouterr().out

        assert ".spec.versions is held by kubectl" in text
        assert "hedgerow install --dry-run --plain | kubectl apply" in text
        assert f"--field-manager={FIELD_MANAGER}" in text

    async def test_a_dry_run_prints_yaml_alone_on_standard_output(self, cluster, capsys):
        show(await applied(cluster, dry_run=True), plain=True, dry_run=True)
        printed = capsys.readouterr()

        shown = [crd["metadata"]["name"] for crd in yaml.load_all(printed.out, yaml.CSafeLoader)]
        assert shown == [crd_name(resource) for resource in RESOURCES]
        assert f"{NAME} created (dry run)" in printed.err

    async def test_a_described_definition_says_where_its_descriptions_come_from(self, cluster):
        (change,) = await install(cluster, dry_run=True)

        assert "described by this cluster" in next(iter(told(change, plain=False)))


@pytest.mark.usefixtures("at_once")
class TestCommandLine:
    """What the flags come down to."""

    @pytest.fixture
    def connected(self, cluster, monkeypatch):
        """Return every connection this cluster, and keep what was asked for."""
        asked = []

        @asynccontextmanager
        async def connect(**named):
            asked.append((named["kubeconfig"], named["context"]))
            yield cluster

        monkeypatch.setattr("hedgerow.kube.client.connect", connect)
        return asked

    @pytest.fixture
    def run(self):
        app = Typer()
        app.command("install")(install_command)
        app.command("uninstall")(uninstall_command)
        return lambda *words: CliRunner().invoke(app, words)

    def test_install_and_uninstall_follow_the_kubeconfig_and_the_context(
        self, connected, cluster, run
    ):
        assert run("install", "--kubeconfig", "here", "--context", "there").exit_code == 0
        assert run("uninstall", "--context", "there").exit_code == 0
        assert connected == [("here", "there"), (None, "there")]
        assert cluster.crds == cluster.roles == {}

    def test_a_conflict_has_an_exit_code_of_its_own(self, connected, cluster, run):
        cluster.conflicts[NAME] = (Cause(".spec.versions", "kubectl", "conflict with …"),)

        assert run("install", "--plain").exit_code == Exit.CONFLICT

    @pytest.mark.parametrize("dry_run", [False, True])
    def test_as_json_each_definition_is_an_entry(self, connected, cluster, run, dry_run):
        cluster.conflicts[NAME] = (Cause(".spec.versions", "kubectl", "conflict with …"),)
        ended = run("install", "--plain", "-o", "json", *["--dry-run"] * dry_run)
        told = json.loads(ended.stdout)
        found = {each["name"]: each for each in told["definitions"]}

        assert (ended.exit_code, ended.stderr, told["dryRun"]) == (Exit.CONFLICT, "", dry_run)
        assert list(found) == [crd_name(resource) for resource in RESOURCES]
        held = found.pop(NAME)
        assert (held["action"], held["conflicts"]) == (
            "conflicted",
            [{"path": ".spec.versions", "manager": "kubectl"}],
        )
        assert held["bytes"] > 1000
        assert {(each["action"], *each["conflicts"]) for each in found.values()} == {("created",)}

    def test_what_would_lose_something_is_refused_unless_breaking(self, connected, cluster, run):
        run("install", "--plain")
        cluster.widen()

        ended = run("install", "--plain")
        assert ended.exit_code == Exit.FAILED
        lines = " ".join(ended.stdout.split())
        assert f"customresourcedefinition/{NAME} refused" in lines
        assert ".spec.extra: would be lost (7 of its objects: shop/demo-0, shop/demo-1" in lines
        assert "shop/demo-4, …)" in lines
        assert "install --plain --breaking" in lines

        tried = run("install", "--plain", "--dry-run")
        shown = [crd["metadata"]["name"] for crd in yaml.load_all(tried.stdout, yaml.CSafeLoader)]
        # The two roles come after the definitions.
        assert (tried.exit_code, NAME in shown, len(shown)) == (1, False, len(RESOURCES) - 1 + 2)
        told = json.loads(run("install", "--plain", "-o", "json").stdout)["definitions"]
        [loss] = next(one["losses"] for one in told if one["name"] == NAME)
        assert (loss["what"], loss["count"]) == (".spec.extra: would be lost", 7)
        assert len(loss["objects"]) == 5

        done = run("install", "--plain", "--breaking")
        assert done.exit_code == 0
        assert f"{NAME} configured" in done.stdout
        assert ".spec.extra: would be lost" in done.stdout

    def test_what_somebody_named_a_field_steers_no_terminal(self, connected, cluster, run):
        run("install", "--plain")
        cluster.widen()
        [version] = cluster.crds[NAME]["spec"]["versions"]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-preserve-unknown-fields"] = True
        cluster.stored = [{"metadata": {"name": "a"}, "spec": {"x\x1b[31m[red]\n": "y"}}]

        printed = run("install", "--plain").stdout
        assert "\x1b" not in printed
        assert r".spec.x\u001b[31m[red]\n: would be lost" in " ".join(printed.split())

    def test_an_uninstallation_says_what_is_gone_and_what_was_not_there(
        self, connected, cluster, run
    ):
        run("install", "--plain")
        cluster.crds = {NAME: cluster.crds[NAME]}
        ended = run("uninstall")
        first, *others, viewer, editor = ended.stdout.splitlines()

        assert ended.exit_code == 0
        assert first == f"customresourcedefinition/{NAME} deleted"
        assert (viewer, editor) == (f"{VIEWER} deleted", f"{EDITOR} deleted")
        assert [line.split()[-1] for line in others] == ["absent"] * (len(ALL.resources) - 1)

    def test_controllers_without_a_custom_resource_need_none_and_that_is_told(self, connected, run):
        ended = run("install", "--controllers", "scaler")

        assert ended.exit_code == 0
        assert "nothing to install: no custom resource belongs to scaler" in ended.output
        assert connected == []

    def test_as_json_nothing_to_install_is_an_empty_list(self, connected, run):
        ended = run("install", "--controllers", "scaler", "-o", "json")

        assert json.loads(ended.stdout) == {"dryRun": False, "definitions": [], "roles": []}
        assert (ended.exit_code, connected) == (0, [])

    def test_flags_reach_the_server(self, connected, cluster, run):
        ended = run("install", "--dry-run", "--plain")

        assert ended.exit_code == 0
        assert "kind: CustomResourceDefinition" in ended.output
        assert cluster.crds == {}

    def test_resources_are_deleted_only_when_told(self, connected, cluster, run):
        run("install", "--plain")
        cluster.instances = ["demo"]

        assert isinstance(run("uninstall").exception, InstallError)
        assert run("uninstall", "--delete-resources").exit_code == 0


VIEWER, EDITOR = "clusterrole/hedgerow-viewer", "clusterrole/hedgerow-editor"


def readable(role):
    """Return the kinds on which a role has a right."""
    return {name for rule in role["rules"] for name in rule["resources"] if "/" not in name}


class TestRoles:
    """Those who have `view` or `edit` see the kinds that are installed."""

    async def test_they_are_those_of_the_manifests(self, cluster):
        names = Names()
        changes = await grant(cluster, ALL.resources, ALL.resources)

        made = [access.viewer(names, ALL.resources), access.editor(names, ALL.resources)]
        assert [change.role for change in changes] == made
        assert actions(changes) == [(one["metadata"]["name"], "created") for one in made]

    async def test_a_second_run_changes_nothing(self, cluster):
        for expected in ("created", "unchanged"):
            changes = await grant(cluster, RESOURCES, RESOURCES)
            assert {change.action for change in changes} == {expected}

    async def test_what_was_installed_before_stays_readable(self, cluster):
        await grant(cluster, (BlueGreen,), ALL.resources)
        changes = await grant(cluster, (Memcached,), ALL.resources)

        assert {change.action for change in changes} == {"configured"}
        both = {"bluegreens", "memcacheds"}
        assert [readable(role) for role in cluster.roles.values()] == [both, both]

    async def test_somebody_elses_of_that_name_is_left_as_it_is(self, cluster):
        theirs = cluster.put_role({"metadata": {"name": "hedgerow-viewer"}, "rules": []}, "helm")
        cluster.roles["hedgerow-viewer"] = theirs

        changes = await grant(cluster, RESOURCES, RESOURCES)

        assert [change.action for change in changes] == ["foreign", "created"]
        assert [change.action for change in await revoke(cluster)] == ["deleted"]
        assert cluster.roles == {"hedgerow-viewer": theirs}

    async def test_one_that_somebody_makes_just_now_is_theirs(self, cluster, monkeypatch):
        theirs = cluster.put_role({"metadata": {"name": "hedgerow-viewer"}, "rules": []}, "helm")
        read = cluster.read

        async def late(api, name, namespace=""):
            found = await read(api, name, namespace)
            cluster.roles.setdefault("hedgerow-viewer", theirs)
            return found

        monkeypatch.setattr(cluster, "read", late)
        changes = await grant(cluster, RESOURCES, RESOURCES)

        assert [change.action for change in changes] == ["foreign", "created"]
        assert cluster.roles["hedgerow-viewer"] is theirs

    async def test_a_dry_run_makes_none(self, cluster):
        changes = await grant(cluster, RESOURCES, RESOURCES, dry_run=True)

        assert {change.action for change in changes} == {"created"}
        assert cluster.roles == {}

    async def test_a_field_of_another_manager_is_a_conflict(self, cluster):
        cluster.conflicts["hedgerow-viewer"] = (Cause(".rules", "kubectl", "conflict with …"),)
        viewer, _ = await grant(cluster, RESOURCES, RESOURCES)

        assert list(told_of_role(viewer)) == [
            f"{VIEWER} conflicted",
            "  .rules is held by kubectl with another value: left as it is",
            f"  to take it over: `{Again().taking_over(plain=False)}`",
        ]

    def test_what_is_typed_again_is_about_the_same_kinds_and_the_same_cluster(self):
        again = Again(controllers=("guestbook",), kubeconfig="a b", context="dev")
        same = "--kubeconfig 'a b' --context dev"

        assert again.command("--breaking") == (
            f"hedgerow install --breaking --controllers guestbook {same}"
        )
        assert again.taking_over(plain=True) == (
            f"hedgerow install --dry-run --plain --controllers guestbook {same} | kubectl apply"
            f" --server-side --force-conflicts --field-manager=hedgerow-install {same} -f -"
        )

    async def test_without_the_right_they_are_left_out_and_that_is_told(self, cluster):
        cluster.may_grant = False
        changes = await grant(cluster, RESOURCES, RESOURCES)

        assert {change.action for change in changes} == {"forbidden"}
        assert "you may not write it" in next(iter(told_of_role(changes[0])))
        assert {change.action for change in await revoke(cluster)} == {"forbidden"}


async def applied(cluster, *, dry_run=False):
    return await installed(cluster, RESOURCES, plain=True, dry_run=dry_run)


def described(document):
    whole = deepcopy(document)
    whole["components"]["schemas"]["io.k8s.api.core.v1.Container"]["description"] = "theirs"
    return whole


def replace_during_sleep(cluster, time):
    def replace():
        if "deletionTimestamp" in cluster.crds[NAME]["metadata"]:
            cluster.crds[NAME]["metadata"]["uid"] = "uid-of-another"

    during_sleep(time, replace)


def during_sleep(time, act):
    async def sleep(seconds):
        time.seconds += seconds
        act()

    time.timing = RetryClock(now=time.timing.now, sleep=sleep, draw=time.timing.draw)
