"""Install and uninstall, as typed and as called: what becomes of definitions and of roles."""

from __future__ import annotations

from copy import deepcopy
from functools import cache, partial

import pytest
import yaml

from hedgerow.cli.exits import Exit
from hedgerow.cli.install import definitions as installing
from hedgerow.cli.install.command import Again, object_lines
from hedgerow.cli.install.definitions import (
    FIELD_MANAGER,
    SERVED_TIMEOUT,
    InstallError,
)
from hedgerow.cli.install.objects import CLUSTER_ROLE, grant, revoke
from hedgerow.cli.install.operator_objects import operator_objects
from hedgerow.deploy import access
from hedgerow.deploy.names import Names
from hedgerow.objects import PROGRAM
from hedgerow.settings import Settings
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_schemas.guestbook import Guestbook
from hedgerow_schemas.kubernetes_types import DOCUMENT_PATH
from hedgerow_schemas.memcached import Memcached
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_testing.memory.kinds import custom_resource
from hedgerow_testing.memory.schema import Atomic
from support.operator.registered import ALL, RESOURCES
from support.server.apiserver import ApiServer, Reply, refusal
from support.server.connected import Clock, connected

NAME, OTHERS = "memcacheds.memcached.cache.example.com", "others.other.example.com"
READ, DELETE = (f"{verb} CustomResourceDefinition" for verb in ("read", "delete"))
LIST = "list Memcached"
FINALIZER = "example.com/held"
DISCOVERY = f"/apis/{Memcached.api.group_version}"
MISSING, FORBIDDEN = refusal(404, "NotFound"), refusal(403, "Forbidden", "not yours")
pytestmark = pytest.mark.anyio

# One definition, a small one, is enough to tell what happens to each.
install = partial(installing.install, resources=(Memcached,))
uninstall = partial(installing.uninstall, resources=(Memcached,))
ONE = ("install", "--controllers", "memcached")


def operators():
    """Return the kinds of an operator's objects that the model does not know in full."""
    known = {api.kind for api in ApiServer().store.apis} - {"Deployment"}
    for one in operator_objects("-", "cluster", Settings()):
        kind, is_namespaced = one["kind"], "namespace" in one["metadata"]
        if kind not in known:
            api = ApiResource(one["apiVersion"], kind, f"{kind.lower()}s", is_namespaced)
            parts = dict.fromkeys(one.keys() - {"apiVersion", "kind", "metadata"}, Atomic())
            yield ServedKind(api, parts)


class Other(Memcached):
    """A second resource."""

    api = ApiResource("other.example.com/v1", "Other", "others")


@pytest.fixture
def time():
    return Clock()


@pytest.fixture
def cluster(server):
    server.store.serve(other())
    return connected(server)


@cache
def other():
    return custom_resource(Other)


def live(server, name=NAME):
    return server.store.find(CRD, name)


@cache
def definition(resource=Memcached):
    [found] = installing.rendered((resource,), PROGRAM, print).values()
    return found


def declare(server, change=lambda _schema: None, manager=FIELD_MANAGER, resource=Memcached):
    """Have a definition applied by force, with a change to its schema."""
    body = deepcopy(definition(resource))
    change(body["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    server.store.apply(body, manager, force=True)


def described(schema):
    schema["description"] = "theirs"


def widened(schema):
    schema["properties"]["spec"]["properties"]["extra"] = {"type": "string"}


def fill(server, *names, resource=Memcached, **spec):
    """Have objects in a namespace `shop`."""
    for name in names:
        body = {"apiVersion": resource.api.group_version, "kind": resource.api.kind}
        server.store.put(body | {"metadata": {"name": name, "namespace": "shop"}, "spec": spec})


def linger(server, *finalizers):
    metadata = {"finalizers": list(finalizers)}
    server.store.merge(live(server), {"metadata": metadata}, "somebody")


def saying(**conditions):
    """Have the server say something else of a definition that is there."""

    def look(_exchange, act):
        reply, found = act(), [{"type": k, "status": v} for k, v in conditions.items()]
        told = {"status": {"conditions": [{**one, "message": "bg is taken"} for one in found]}}
        return Reply(200, {**reply.body, **told}) if reply.code == 200 else reply

    return look


def applied(server, *, dry_run=False):
    """Return the names of the definitions that were applied."""
    found = [one for one in server.exchanges if (one.verb, one.api) == ("apply", CRD)]
    return [one.name for one in found if one.dry_run == dry_run]


def actions(changes):
    return [(change.name, change.action) for change in changes]


class TestInstall:
    async def test_what_is_missing_is_created_under_our_field_manager_unforced(
        self, server, cluster, time
    ):
        changes = await install(cluster, timing=time.timing)
        [sent] = [one for one in server.exchanges if one.verb == "apply"]

        assert actions(changes) == [(NAME, "created")]
        assert (sent.manager, sent.force, sent.dry_run) == ("hedgerow-install", False, False)
        assert live(server)

    async def test_the_second_run_changes_nothing(self, cluster, time):
        await install(cluster, timing=time.timing)
        again = await install(cluster, timing=time.timing)

        assert actions(again) == [(NAME, "unchanged")]

    async def test_a_changed_definition_is_configured(self, server, cluster, time):
        declare(server, described)

        assert actions(await install(cluster, timing=time.timing)) == [(NAME, "configured")]

    async def test_a_conflict_is_told_and_the_rest_goes_on(self, server, cluster, time):
        declare(server, described, "kubectl")
        changes = await install(cluster, resources=(Memcached, Other), timing=time.timing)

        assert actions(changes) == [(NAME, "conflicted"), (OTHERS, "created")]
        assert [(held.path, held.manager) for held in changes[0].conflicts] == [
            (".spec.versions", "kubectl")
        ]

    async def test_it_waits_until_the_definition_is_established(self, server, cluster, time):
        server.answers[READ] = saying(Established="False")
        time.meanwhile = server.answers.clear
        await install(cluster, timing=time.timing)

        assert 0 < sum(time.slept) < SERVED_TIMEOUT

    async def test_established_but_not_yet_in_discovery_is_not_served(self, server, cluster, time):
        server.answers[DISCOVERY] = MISSING

        with pytest.raises(InstallError, match="not served after 60 s"):
            await install(cluster, timing=time.timing)
        assert sum(time.slept) >= SERVED_TIMEOUT

    async def test_names_that_another_definition_has_end_the_wait_at_once(
        self, server, cluster, time
    ):
        server.answers[READ] = saying(NamesAccepted="False", Established="True")

        with pytest.raises(InstallError, match="not accepted: bg is taken"):
            await install(cluster, timing=time.timing)
        assert time.slept == []

    async def test_a_definition_that_is_being_deleted_is_not_written(self, server, cluster, time):
        declare(server)
        linger(server, FINALIZER)
        server.store.delete(live(server))

        with pytest.raises(InstallError, match="being deleted"):
            await install(cluster, timing=time.timing)
        assert applied(server) == []

    @pytest.mark.parametrize(
        "openapi",
        [MISSING, FORBIDDEN, Reply(200, {"components": {"schemas": {}}})],
        ids=["missing", "forbidden", "not understood"],
    )
    async def test_without_the_clusters_openapi_it_has_no_descriptions_of_upstream_types(
        self, server, cluster, time, openapi
    ):
        server.answers[DOCUMENT_PATH] = openapi

        [change] = await install(cluster, timing=time.timing)

        assert (change.action, change.definition) == ("created", definition())


SEVEN = [f"demo-{number}" for number in range(7)]


class TestNarrowing:
    """A definition by which objects that are there would lose something."""

    @pytest.fixture(autouse=True)
    def installed(self, server, cluster):
        declare(server, widened)
        fill(server, *SEVEN, extra="x")

    async def test_without_an_object_that_has_the_field_it_is_applied(self, server, cluster, time):
        fill(server, *SEVEN)

        assert actions(await install(cluster, timing=time.timing)) == [(NAME, "configured")]

    async def test_where_nothing_is_narrowed_no_object_is_read(self, server, cluster, time):
        declare(server)

        assert actions(await install(cluster, timing=time.timing)) == [(NAME, "unchanged")]
        assert server.asked("list") == []

    @pytest.mark.parametrize("answer", [MISSING, FORBIDDEN], ids=["missing", "forbidden"])
    async def test_what_cannot_be_read_is_not_taken_for_nothing(
        self, server, cluster, time, answer
    ):
        server.answers[LIST] = answer

        with pytest.raises(InstallError, match=r"unknown what they would lose: .*give --breaking"):
            await install(cluster, timing=time.timing)
        [change] = await install(cluster, breaking=True, timing=time.timing)
        assert (change.action, change.losses) == ("configured", ())

    @pytest.mark.parametrize("breaking", [False, True])
    async def test_a_version_in_which_something_is_stored_may_not_go(
        self, server, cluster, time, breaking
    ):
        stored = {"status": {"storedVersions": ["v1", "v0"]}}
        server.store.merge(live(server), stored, "kube-apiserver", "status")

        with pytest.raises(InstallError, match="stored in version v0, which the new definition"):
            await install(cluster, breaking=breaking, timing=time.timing)
        assert applied(server) == []

    async def test_what_another_manager_holds_is_told_only_if_nothing_would_be_lost(
        self, server, cluster, time
    ):
        declare(server, widened, "kubectl")

        assert actions(await install(cluster, timing=time.timing)) == [(NAME, "refused")]
        [change] = await install(cluster, breaking=True, timing=time.timing)
        assert (change.action, len(change.losses)) == ("conflicted", 1)


class TestUninstall:
    @pytest.fixture(autouse=True)
    def installed(self, server, cluster):
        declare(server)

    async def test_exactly_the_definition_that_was_seen_is_deleted(self, server, cluster, time):
        seen = live(server)["metadata"]["uid"]

        assert actions(await uninstall(cluster, timing=time.timing)) == [(NAME, "deleted")]
        [sent] = [one for one in server.exchanges if one.verb == "delete"]
        assert sent.body["preconditions"]["uid"] == seen

    async def test_it_refuses_while_resources_exist_of_which_the_first_are_named(
        self, server, cluster, time
    ):
        fill(server, *"abcdefghi")

        said = r"9 memcacheds exist \(shop/a, shop/b, shop/c, shop/d, shop/e, …\)"
        with pytest.raises(InstallError, match=said):
            await uninstall(cluster, timing=time.timing)
        assert live(server)

    async def test_every_kind_that_there_is_something_of_is_named(self, server, cluster, time):
        declare(server, resource=Other)
        for resource in (Memcached, Other):
            fill(server, "demo", resource=resource)

        with pytest.raises(InstallError) as refused:
            await uninstall(cluster, resources=(Memcached, Other), timing=time.timing)
        assert str(refused.value).startswith(
            "1 memcacheds exist (shop/demo), 1 others exist (shop/demo); delete them first"
        )

    async def test_a_definition_of_somebody_else_is_refused(self, server, cluster, time):
        server.store.delete(live(server))
        declare(server, manager="kubectl")

        with pytest.raises(InstallError, match=r"not installed by hedgerow .*: kubectl\)"):
            await uninstall(cluster, delete_resources=True, timing=time.timing)
        assert live(server)

    async def test_one_refusal_keeps_all_definitions(self, server, cluster, time):
        declare(server, manager="kubectl", resource=Other)

        with pytest.raises(InstallError):
            await uninstall(cluster, resources=(Memcached, Other), timing=time.timing)
        assert live(server)

    async def test_it_waits_until_the_definition_is_gone(self, server, cluster, time):
        linger(server, FINALIZER)
        time.meanwhile = lambda: linger(server)
        await uninstall(cluster, delete_resources=True, timing=time.timing)

        assert 0 < sum(time.slept) < SERVED_TIMEOUT
        assert live(server) is None

    async def test_a_definition_made_again_meanwhile_counts_as_gone(self, server, cluster, time):
        def made_again():
            server.store.drop(live(server))
            declare(server)

        linger(server, FINALIZER)
        time.meanwhile = made_again
        changes = await uninstall(cluster, delete_resources=True, timing=time.timing)

        assert actions(changes) == [(NAME, "deleted")]

    async def test_a_definition_that_stays_is_an_error_that_says_where_to_look(
        self, server, cluster, time
    ):
        linger(server, FINALIZER)

        with pytest.raises(InstallError, match="still there after 60 s; see which finalizers"):
            await uninstall(cluster, delete_resources=True, timing=time.timing)

    async def test_no_answer_is_not_taken_for_no_resources(self, server, cluster, time):
        server.answers[LIST] = MISSING

        with pytest.raises(InstallError, match="it is unknown whether memcacheds exist"):
            await uninstall(cluster, timing=time.timing)
        assert live(server)

        changes = await uninstall(cluster, delete_resources=True, timing=time.timing)
        assert actions(changes) == [(NAME, "deleted")]


class TestCommands:
    """What is typed, what is printed, and with which exit code."""

    def test_install_and_uninstall_follow_the_kubeconfig_and_the_context(self, server, typing):
        assert typing(*ONE, "--kubeconfig", "here", "--context", "there")[0] == 0
        assert typing("uninstall", "--context", "there")[0] == 0
        asked = [(login["kubeconfig"], login["context"]) for login in server.logins]
        assert asked == [("here", "there"), (None, "there")]
        assert server.store.all() == {}

    def test_an_installation_says_what_changed_and_how_large_it_is(self, server, typing):
        code, out, _ = typing(*ONE)
        size = f"{installing.size(definition()) / 1000:.0f} kB"

        assert code == 0
        assert out.startswith(f"customresourcedefinition/{NAME} created: {size}\n")

    def test_a_kubernetes_that_is_not_supported_is_told_of_in_one_line(self, server, typing):
        server.answers["/version"] = Reply(200, {"gitVersion": "v1.29.4"})

        told = "hedgerow: Kubernetes 1.29 is not supported: 1.35 is the oldest that is\n"
        assert typing(*ONE, "--dry-run")[2].startswith(told)

    def test_a_conflict_has_an_exit_code_and_names_the_field_the_manager_and_the_remedy(
        self, server, typing
    ):
        declare(server, described, "kubectl")
        code, out, _ = typing(*ONE)

        assert code == Exit.CONFLICT
        assert ".spec.versions is held by kubectl" in out
        assert "hedgerow install --dry-run --controllers memcached | kubectl apply" in out
        assert f"--field-manager={FIELD_MANAGER}" in out

    def test_a_dry_run_prints_yaml_alone_on_standard_output(self, server, typing):
        code, out, err = typing("install", "--dry-run")

        shown = [one["metadata"]["name"] for one in yaml.load_all(out, yaml.CSafeLoader)]
        roles = ["hedgerow-viewer", "hedgerow-editor"]
        assert shown == [*map(crd_name, RESOURCES), *roles]
        assert (code, f"{NAME} created (dry run)" in err) == (0, True)
        assert {*applied(server, dry_run=True)} == {*map(crd_name, RESOURCES)}
        assert server.store.all() == {}

    def test_what_would_lose_something_is_refused_unless_breaking(self, server, typing):
        declare(server, widened)
        fill(server, *SEVEN, extra="x")
        before = live(server)["spec"]
        words = ("install", "--controllers", "memcached,guestbook")

        code, out, _ = typing(*words)
        assert code == Exit.FAILED
        lines = " ".join(out.split())
        assert f"customresourcedefinition/{NAME} refused" in lines
        assert ".spec.extra: would be lost (7 of its objects: shop/demo-0, shop/demo-1" in lines
        assert "shop/demo-4, …)" in lines
        assert "install --breaking" in lines

        code, out, _ = typing(*words, "--dry-run")
        shown = [crd["metadata"]["name"] for crd in yaml.load_all(out, yaml.CSafeLoader)]
        # The two roles come after the definitions.
        assert (code, NAME in shown, len(shown)) == (1, False, 1 + 2)
        assert live(server)["spec"] == before
        assert applied(server) == [crd_name(Guestbook)]

        code, out, _ = typing(*words, "--breaking")
        assert code == 0
        assert f"{NAME} configured" in out
        assert ".spec.extra: would be lost" in out
        assert "extra" not in str(live(server)["spec"])

    def test_what_somebody_named_a_field_steers_no_terminal(self, server, typing):
        keep = "x-kubernetes-preserve-unknown-fields"
        declare(server, lambda schema: schema["properties"]["spec"].update({keep: True}))
        fill(server, "a", **{"x\x1b[31m[red]\n": "y"})

        printed = typing(*ONE)[1]
        assert "\x1b" not in printed
        assert r".spec.x\u001b[31m[red]\n: would be lost" in " ".join(printed.split())

    def test_an_uninstallation_says_what_is_gone_and_what_was_not_there(self, server, typing):
        typing(*ONE)
        code, out, _ = typing("uninstall")
        *definitions, viewer, editor = out.splitlines()

        assert code == 0
        others = set(definitions) - {f"customresourcedefinition/{NAME} deleted"}
        assert (viewer, editor) == (f"{VIEWER} deleted", f"{EDITOR} deleted")
        assert [line.split()[-1] for line in others] == ["absent"] * (len(ALL.resources) - 1)

    def test_controllers_without_a_custom_resource_need_none_and_that_is_told(self, server, typing):
        code, _, err = typing("install", "--controllers", "scaler")

        assert code == 0
        assert "nothing to install: no custom resource belongs to scaler" in err
        assert server.logins == []

    def test_with_an_image_the_operator_comes_and_goes_too(self, server, typing):
        server.store.serve(*operators())
        words = (*ONE, "--image", "registry.example/op:1")
        code, out, err = typing(*words, "--dry-run")
        assert (code, server.store.all()) == (0, {})
        kinds = [one["kind"] for one in yaml.load_all(out, yaml.CSafeLoader)]
        assert {"Deployment", "Namespace", "ClusterRole"} <= set(kinds)
        assert "deployment/hedgerow created (dry run)" in err

        server.store.open_namespace("hedgerow-system")
        for action in ("created", "unchanged"):
            code, out, err = typing(*words)
            assert (code, err) == (0, "")
            assert f"deployment/hedgerow {action}\n" in out
            assert {line.split()[1].rstrip(":") for line in out.splitlines()} == {action}

        code, out, _ = typing("uninstall")
        assert code == 0
        assert "deployment/hedgerow deleted\n" in out
        left = [one["kind"] for one in server.store.all().values()]
        assert left == ["Namespace"]

    def test_resources_are_deleted_only_when_told(self, server, typing):
        declare(server)
        fill(server, "demo")

        code, _, err = typing("uninstall")
        assert (code, "1 memcacheds exist (shop/demo)" in err) == (Exit.FAILED, True)
        assert typing("uninstall", "--delete-resources")[0] == 0
        assert live(server) is None


VIEWER, EDITOR = "clusterrole/hedgerow-viewer", "clusterrole/hedgerow-editor"
NAMES = ("hedgerow-viewer", "hedgerow-editor")
NONE = {"apiVersion": access.VERSION, "kind": "ClusterRole", "rules": []}
THEIRS = {**NONE, "metadata": {"name": "hedgerow-viewer"}}


def readable(role):
    """Return the kinds on which a role has a right."""
    return {name for rule in role["rules"] for name in rule["resources"] if "/" not in name}


class TestRoles:
    """Those who have `view` or `edit` see the kinds that are installed."""

    @pytest.fixture
    def roles(self, server):
        """Return what gives the roles that there are."""
        return lambda: [one for name in NAMES if (one := server.store.find(CLUSTER_ROLE, name))]

    async def test_they_are_those_of_the_manifests(self, cluster):
        names = Names()
        changes = await grant(cluster, ALL.resources, ALL.resources)

        made = [access.viewer(names, ALL.resources), access.editor(names, ALL.resources)]
        assert [change.body for change in changes] == made
        assert actions(changes) == [(one["metadata"]["name"], "created") for one in made]

    async def test_a_second_run_changes_nothing(self, cluster):
        for expected in ("created", "unchanged"):
            changes = await grant(cluster, RESOURCES, RESOURCES)
            assert {change.action for change in changes} == {expected}

    async def test_what_was_installed_before_stays_readable(self, cluster, roles):
        await grant(cluster, (Memcached,), ALL.resources)
        changes = await grant(cluster, (BlueGreen,), ALL.resources)

        assert {change.action for change in changes} == {"configured"}
        both = {"memcacheds", "bluegreens"}
        assert [readable(role) for role in roles()] == [both, both]

    async def test_somebody_elses_of_that_name_is_left_as_it_is(self, server, cluster, roles):
        theirs, _ = server.store.apply(THEIRS, "helm")

        changes = await grant(cluster, RESOURCES, RESOURCES)

        assert [change.action for change in changes] == ["foreign", "created"]
        assert [change.action for change in await revoke(cluster)] == ["deleted"]
        assert roles() == [theirs]

    @pytest.mark.parametrize("theirs", [THEIRS, {**THEIRS, "rules": None}], ids=["other", "no"])
    async def test_one_that_somebody_makes_just_now_is_theirs_whatever_its_rules(
        self, server, cluster, roles, theirs
    ):
        def late(exchange, act):
            reply = act()
            if exchange.name == "hedgerow-viewer":
                server.store.apply({k: v for k, v in theirs.items() if v is not None}, "helm")
            return reply

        server.answers["read ClusterRole"] = late
        changes = await grant(cluster, RESOURCES, RESOURCES)

        assert [change.action for change in changes] == ["foreign", "created"]
        assert not roles()[0].get("rules")

    async def test_a_dry_run_makes_none(self, cluster, roles):
        changes = await grant(cluster, RESOURCES, RESOURCES, dry_run=True)

        assert {change.action for change in changes} == {"created"}
        assert roles() == []

    async def test_a_field_of_another_manager_is_a_conflict(self, server, cluster):
        await grant(cluster, RESOURCES, RESOURCES)
        server.store.apply(THEIRS, "kubectl", force=True)
        viewer, _ = await grant(cluster, RESOURCES, RESOURCES)

        assert list(object_lines(viewer)) == [
            f"{VIEWER} conflicted",
            "  .rules is held by kubectl with another value: left as it is",
            f"  to take it over: `{Again().taking_over()}`",
        ]

    def test_what_is_typed_again_is_about_the_same_kinds_and_the_same_cluster(self, server, typing):
        declare(server, described, "kubectl")
        same = "--kubeconfig 'a b' --context dev"
        words = (*ONE, "--kubeconfig", "a b", "--context", "dev")

        assert (
            f"hedgerow install --dry-run --controllers memcached {same} | kubectl apply"
            f" --server-side --force-conflicts --field-manager=hedgerow-install {same} -f -"
        ) in typing(*words)[1]

    async def test_without_the_right_they_are_left_out_and_that_is_told(self, server, cluster):
        server.denied = {"get clusterroles"}
        changes = await grant(cluster, RESOURCES, RESOURCES)

        assert {change.action for change in changes} == {"forbidden"}
        assert "you may not write it" in next(iter(object_lines(changes[0])))
        assert {change.action for change in await revoke(cluster)} == {"forbidden"}
