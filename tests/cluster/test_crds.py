"""The definitions on the real server: what it accepts, refuses, keeps and shows.

Each flavour of the definition stands in an API group of its own, so that nobody else's BlueGreen
in the shared cluster is touched.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from hedgerow.cli.install.definitions import packaged_document, size
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.crd import crd_name, render
from hedgerow_schemas.editor import needed_types
from hedgerow_schemas.kubernetes_types import DOCUMENT_PATH, excerpt
from hedgerow_testing.api import Api
from hedgerow_testing.generate import sandbox_document
from hedgerow_testing.sandbox import cluster
from hedgerow_testing.waiting import eventually
from support.objects import generated
from support.objects.specimen import paths, specimen
from support.operator.registered import ALL

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

POD_SPEC = "io.k8s.api.core.v1.PodSpec"
PODS = {"containers": [{"name": "blue", "image": "ealen/echo-server"}]}
CHECKS = [{"name": "smoke", "job": {"spec": {"template": {"spec": PODS}}}}]
MANAGER = "hedgerow-test"


class Plain(BlueGreen):
    """BlueGreen as committed."""

    api = ApiResource("plain.hedgerow.test/v1", "BlueGreen", "bluegreens")


class Described(BlueGreen):
    """BlueGreen as `hedgerow install` renders it."""

    api = ApiResource("described.hedgerow.test/v1", "BlueGreen", "bluegreens")


class Legacy(BlueGreen):
    """BlueGreen as it was before there were rules."""

    api = ApiResource("legacy.hedgerow.test/v1", "BlueGreen", "bluegreens")


@pytest.fixture(scope="module")
def api(sandbox):
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module")
def kubectl(sandbox):
    def run(*args, given=None):
        command = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), *args]
        ended = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, check=False
        )
        return SimpleNamespace(code=ended.returncode, out=ended.stdout, err=ended.stderr)

    return run


@pytest.fixture(scope="module")
def document(api):
    return api.raw("GET", DOCUMENT_PATH).must()


@pytest.fixture(scope="module")
def install(api, kubectl):
    def apply(crd):
        applied = api.apply(crd, MANAGER).must()
        collection = f"/apis/{crd['spec']['group']}/v1/bluegreens"
        eventually(lambda: kubectl("get", "--raw", collection).code == 0, what=collection)
        return applied

    return apply


@pytest.fixture(scope="module")
def plain(install):
    install(render(Plain, packaged_document(), describe=False))
    return Plain


@pytest.fixture(scope="module")
def described(install, document):
    install(render(Described, document, describe=True))
    return Described


def manifest(resource, namespace, name="demo", **spec):
    return {
        "apiVersion": resource.api.group_version,
        "kind": "BlueGreen",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"routeTo": "Blue", "blueSpec": PODS, **spec},
    }


@pytest.mark.usefixtures("newest")  # they are made from its types
class TestTheCommittedFiles:
    def test_the_packaged_types_are_those_of_this_server(self, document):
        """Fact: the OpenAPI document of the newest server."""
        assert packaged_document() == excerpt(document, needed_types(ALL.resources))

    @pytest.mark.anyio
    async def test_generate_takes_the_types_from_a_sandbox_that_it_takes_down(
        self, sandbox, monkeypatch
    ):
        """Fact: the OpenAPI document as a sandbox serves it."""
        made = Lent(sandbox)
        monkeypatch.setattr(cluster, "Sandbox", lambda _directory: made)

        document = await sandbox_document()

        assert excerpt(document, needed_types(ALL.resources)) == packaged_document()
        assert made.did == [("up", cluster.Options()), "down"]


class Lent:
    """A sandbox that is up already, as one that is brought up and taken down."""

    def __init__(self, sandbox):
        self.kubeconfig, self.did = sandbox.kubeconfig, []

    async def up(self, options, _tell):
        self.did.append(("up", options))

    def leash(self):
        return nullcontext()

    async def down(self):
        self.did.append("down")


class TestSizes:
    def test_the_plain_definition_fits_into_an_annotation_and_the_described_does_not(
        self, document
    ):
        """Fact: how long the server's own descriptions are."""
        limit = 256 * 1024

        assert size(render(BlueGreen, document, describe=False)) < 160_000 < limit
        assert limit < size(render(BlueGreen, document, describe=True)) < 800_000


class TestPruning:
    """What the user writes arrives as it was written."""

    @pytest.mark.parametrize("flavour", ["plain", "described"])
    def test_every_field_of_a_pod_specification_survives(
        self, flavour, request, api, document, namespace
    ):
        """Fact: the server prunes what the definition does not have."""
        resource = request.getfixturevalue(flavour)
        # An older server may have fields in alpha that were withdrawn since: 1.35 has workloadRef.
        known = packaged_document() if resource is Plain else document
        pods = specimen(known, POD_SPEC)
        given = manifest(resource, namespace, blueSpec=pods, greenSpec=pods)
        kept = api.apply(given, MANAGER).must()["spec"]

        for colour in ("blueSpec", "greenSpec"):
            assert set(paths(kept[colour])) == set(paths(pods))
            assert kept[colour] == pods
        assert len(paths(pods)) > 500

    def test_what_is_empty_stays_empty_and_nothing_is_added(self, plain, api, namespace):
        """Fact: the server fills in the definition's defaults and nothing else."""
        pods = {
            "containers": [{"name": "blue", "args": [], "resources": {}, "securityContext": {}}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "nodeSelector": {},
            "affinity": {"podAffinity": {}},
            "hostname": "",
        }
        kept = api.apply(manifest(plain, namespace, blueSpec=pods), MANAGER).must()["spec"]

        defaults = {"promotion": "Immediate", "preview": False, "hold": False, "switch": "Cut"}
        assert kept == {"routeTo": "Blue", "blueSpec": pods} | defaults

    def test_numbers_and_text_stay_what_they_are(self, plain, api, namespace):
        """Fact: the server keeps int-or-string as it was written."""
        limits = {"cpu": 1, "memory": "1Gi", "ephemeral-storage": "0.5Gi"}
        probe = {"httpGet": {"port": "web"}, "terminationGracePeriodSeconds": 5}
        container = {"name": "c", "resources": {"limits": limits}, "livenessProbe": probe}
        given = manifest(plain, namespace, blueSpec={"containers": [container]})

        assert api.apply(given, MANAGER).must()["spec"]["blueSpec"]["containers"] == [container]

    def test_a_container_port_without_protocol_is_tcp_since_a_list_key_must_be_known(
        self, plain, api, namespace
    ):
        """Fact: the server wants a default for each key of a merged list."""
        pods = {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}
        kept = api.apply(manifest(plain, namespace, blueSpec=pods), MANAGER).must()["spec"]

        assert kept["blueSpec"]["containers"][0]["ports"] == [
            {"containerPort": 80, "protocol": "TCP"}
        ]


@pytest.mark.parametrize("write", ["apply", "create"])
class TestNulls:
    """What programs in Go print, by each way to write it."""

    def test_a_time_that_is_not_set_is_accepted_in_each_template(
        self, write, plain, api, namespace
    ):
        """Fact: the server takes null where the schema says nullable."""
        given = generated.bluegreen(namespace) | {"apiVersion": plain.api.group_version}

        getattr(api, write)(given, MANAGER).must()

    @pytest.mark.parametrize(
        ("place", "has_default"),
        [
            (("blueSpec", "nodeSelector"), False),
            (("greenSpec",), False),
            (("bakeSeconds",), False),
            (("hold",), True),
        ],
    )
    def test_elsewhere_a_create_leaves_it_out_and_an_apply_is_refused_without_a_default(
        self, write, place, has_default, plain, api, namespace
    ):
        """Fact: a POST drops nulls that an apply is refused for."""
        given = copy.deepcopy(manifest(plain, namespace))
        at = given["spec"]
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = None
        reply = getattr(api, write)(given, MANAGER)

        assert reply.ok is (write == "create" or has_default)


class TestPorts:
    def test_the_server_adds_no_port_so_that_none_is_left_behind(self, plain, api, namespace):
        """Fact: the server adds nothing to a list that is not there."""
        assert "ports" not in api.apply(manifest(plain, namespace), MANAGER).must()["spec"]

    def test_ports_are_told_apart_by_port_and_protocol(self, plain, api, namespace):
        """Fact: the server merges items by both keys of the definition."""
        mine = manifest(plain, namespace, ports=[{"name": "dns", "port": 53}])
        theirs = manifest(
            plain, namespace, ports=[{"name": "dns-udp", "port": 53, "protocol": "UDP"}]
        )
        api.apply(mine, MANAGER).must()
        del theirs["spec"]["blueSpec"]
        kept = api.apply(theirs, "other").must()

        assert kept["spec"]["ports"] == [
            {"name": "dns", "port": 53, "protocol": "TCP"},
            {"name": "dns-udp", "port": 53, "protocol": "UDP"},
        ]


def two(**more):
    return [{"port": 80, "name": "http"}, {"port": 81, **more}]


NAMES = (
    "metadata.name: Invalid value: the name must be a DNS-1035 label of at most 47 characters (a-z,"
    " 0-9 and '-', beginning with a letter, not ending with '-'): a Service and two Deployments"
    " are named after it"
)
REFUSED = {
    "green without green": (
        {"routeTo": "Green"},
        "spec.greenSpec: Required value: routeTo is Green, so there must be a greenSpec to",
    ),
    "blue without blue": (
        {"blueSpec": None, "greenSpec": PODS},
        "spec.blueSpec: Required value: routeTo is Blue, so there must be a blueSpec to route to",
    ),
    "another colour": (
        {"routeTo": "Purple"},
        'spec.routeTo: Unsupported value: "Purple": supported values: "Blue", "Green"',
    ),
    "no colour": ({"routeTo": None}, "spec.routeTo: Required value"),
    "another promotion": ({"promotion": "Never"}, "spec.promotion: Unsupported value"),
    "checks that are never run": (
        {"promotion": "WhenAvailable", "checks": CHECKS},
        "spec.promotion: Invalid value: checks go with promotion WhenChecked, or with Immediate,",
    ),
    "no port": ({"ports": []}, "spec.ports in body should have at least 1 items"),
    "unnamed ports": (
        {"ports": two()},
        "spec.ports: Required value: every port needs a name when there are several",
    ),
    "ports of one name": (
        {"ports": two(name="http")},
        "spec.ports: Invalid value: the names of ports must be unique",
    ),
    "too many ports": (
        {"ports": [{"port": n, "name": f"p{n}"} for n in range(1, 34)]},
        "spec.ports: Too many: 33: must have at most 32 items",
    ),
    "port beyond": ({"ports": [{"port": 65536}]}, "should be less than or equal to 65535"),
    "target port beyond": ({"ports": [{"port": 1, "targetPort": 0}]}, "spec.ports[0].targetPort"),
    "number as text": ({"ports": [{"port": 1, "targetPort": "80"}]}, "spec.ports[0].targetPort"),
    "no container": ({"blueSpec": {}}, "spec.blueSpec.containers: Required value"),
    "fraction": (
        {"blueSpec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5}}}]}},
        "spec.blueSpec.containers[0].resources.limits.cpu in body must be of type integer,string",
    ),
    "no quantity": (
        {"blueSpec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1Gb"}}}]}},
        "spec.blueSpec.containers[0].resources.limits.cpu in body should match",
    ),
    "twice the same container": (
        {"blueSpec": {"containers": [{"name": "c"}, {"name": "c"}]}},
        'spec.blueSpec.containers[1]: Duplicate value: {"name":"c"}',
    ),
}


def as_the_newest(refusal: str) -> str:
    """Leave out the type of what a rule refuses, which older servers name."""
    return re.sub(r'(?<=Invalid value: )"(array|object)": ', "", refusal)


class TestRefusals:
    """Each refusal by its message; an unknown field is what `kubectl create` asks to be refused."""

    @pytest.mark.parametrize(("spec", "said"), REFUSED.values(), ids=REFUSED)
    def test_a_bad_specification_is_refused_with_the_field_and_the_reason(
        self, plain, api, namespace, spec, said
    ):
        """Fact: the server evaluates the definition's rules, and says so in these words."""
        given = manifest(plain, namespace, **spec)
        given["spec"] = {key: value for key, value in given["spec"].items() if value is not None}
        created = api.create(given, MANAGER)

        assert created.status == 422
        assert said in as_the_newest(created.body["message"])

    @pytest.mark.parametrize("name", ["1demo", "d" * 48, "demo.two"])
    def test_a_name_that_children_cannot_have_is_refused(self, plain, api, namespace, name):
        """Fact: the server evaluates a rule on the name of an object."""
        created = api.create(manifest(plain, namespace, name), MANAGER)

        assert NAMES in as_the_newest(created.body["message"])

    @pytest.mark.parametrize("promotion", ["WhenChecked", "Immediate"])
    def test_checks_may_stay_when_they_are_routed_past(self, plain, api, namespace, promotion):
        """Fact: the server's verdict on the rules for checks."""
        given = manifest(plain, namespace, promotion=promotion, checks=CHECKS)

        assert api.create(given, MANAGER).ok

    def test_a_name_of_47_characters_is_accepted(self, plain, api, namespace):
        """Fact: the server's verdict on the longest name."""
        assert api.create(manifest(plain, namespace, "d" * 47), MANAGER).ok

    def test_an_unknown_field_is_refused_by_name(self, plain, kubectl, namespace):
        """Fact: kubectl asks the server for strict decoding."""
        given = manifest(plain, namespace, blueSpec={"containers": [{"name": "c", "imag": "x"}]})
        created = kubectl("create", "-f", "-", given=json.dumps(given))

        assert 'unknown field "spec.blueSpec.containers[0].imag"' in created.err


@pytest.fixture(scope="module")
def older(install, api):
    """Resources that were made when there were no rules."""
    full = render(Legacy, packaged_document(), describe=False)
    namespace = api.namespace("older-than-the-rules")
    install(without_rules(full))
    made = {}
    for name, colour in (("1-bad-name", "Blue"), ("bad-route", "Green")):
        given = manifest(Legacy, namespace, name, routeTo=colour)
        given["metadata"]["finalizers"] = ["hedgerow.test/keep"]
        eventually(lambda given=given: api.create(given, MANAGER).ok, what="no rules")
        made[name] = given
    install(full)
    new = manifest(Legacy, namespace, "2-refused")
    eventually(lambda: not api.apply(new, MANAGER, dry_run=True).ok, what="the rules")
    yield made
    api.raw("DELETE", f"/api/v1/namespaces/{namespace}")


class TestWhatIsOlderThanTheRules:
    """A resource made before a rule existed can still be edited, reported on and finished."""

    @pytest.mark.parametrize("name", ["1-bad-name", "bad-route"])
    def test_its_status_and_labels_can_be_written_and_its_finalizer_removed(self, older, api, name):
        """Fact: the server ratchets: what does not change is not judged anew."""
        legacy = older[name]
        status = identity(legacy) | {"status": {"routeTo": "Green"}}
        labelled = identity(legacy)
        labelled["metadata"]["labels"] = {"team": "shop"}

        assert api.apply(status, MANAGER, subresource="status").must()["status"] == {
            "routeTo": "Green"
        }
        assert api.apply(labelled, "other").ok
        api.delete(legacy).must()
        api.merge(legacy, {"metadata": {"finalizers": None}}, MANAGER).must()
        assert api.get(legacy).status == 404


class TestKubectl:
    def test_the_columns_say_what_is_wanted_and_what_is_so(self, plain, api, kubectl, namespace):
        """Fact: kubectl prints the definition's columns as the server evaluates them."""
        given = manifest(plain, namespace, promotion="WhenAvailable")
        api.apply(given, MANAGER).must()
        conditions = [
            {"type": "Ready", "status": "False", "reason": "FieldConflict"},
            {"type": "Contested", "status": "True", "reason": "FieldConflict"},
        ]
        status = {"routeTo": "Green", "phase": "Held", "conditions": conditions}
        api.apply(identity(given) | {"status": status}, MANAGER, subresource="status").must()
        plural = crd_name(plain)
        short = kubectl("get", plural, "-n", namespace).out.splitlines()
        wide = kubectl("get", plural, "-n", namespace, "-o", "wide").out.splitlines()

        columns = ["NAME", "WANTED", "ROUTETO", "PHASE", "READY", "CONTESTED"]
        assert short[0].split() == [*columns, "AGE"]
        assert short[1].split()[:6] == ["demo", "Blue", "Green", "Held", "False", "True"]
        assert wide[0].split() == [*columns, "REASON", "PROMOTION", "AGE"]
        assert wide[1].split()[6:8] == ["FieldConflict", "WhenAvailable"]

    def test_short_name_and_category_lead_to_it(self, plain, kubectl):
        """Fact: the server publishes short names and categories."""
        listed = kubectl("api-resources", f"--api-group={plain.api.group}", "-o", "wide").out

        assert listed.splitlines()[1].split()[:2] == ["bluegreens", "bg"]
        assert "hedgerow" in listed

    def test_explain_knows_every_level(self, plain, kubectl):
        """Fact: kubectl explains what the server publishes of a definition."""
        whole = explain(kubectl, plain, "spec", "--recursive")

        assert "readinessProbe" in whole
        assert "<[]ContainerPort>" in whole or "containerPort" in whole

    def test_explain_tells_of_our_fields_always_and_of_theirs_when_described(
        self, plain, described, kubectl
    ):
        """Fact: the server publishes the definition's descriptions."""
        ours = "The colour that the Service selects."
        theirs = "List of containers belonging to the pod."

        for resource in (plain, described):
            assert ours in explain(kubectl, resource, "spec")
        assert theirs not in explain(kubectl, plain, "spec.blueSpec")
        assert theirs in explain(kubectl, described, "spec.blueSpec")


class TestStatus:
    def test_status_is_written_only_through_its_own_endpoint(self, plain, api, namespace):
        """Fact: the server drops the status from a create."""
        given = manifest(plain, namespace) | {"status": {"routeTo": "Blue"}}

        assert "status" not in api.create(given, MANAGER).must()

    def test_conditions_and_contested_fields_have_an_owner_each(self, plain, api, namespace):
        """Fact: the server merges the status by the definition's list types."""
        given = manifest(plain, namespace)
        api.apply(given, MANAGER).must()
        ready = {"type": "Ready", "status": "True", "reason": "Available"}
        ours = {"conditions": [ready], "contested": [contested(".spec.a"), contested(".spec.b")]}
        theirs = {"conditions": [{**ready, "type": "Other"}], "contested": [contested(".spec.c")]}
        api.apply(identity(given) | {"status": ours}, MANAGER, subresource="status").must()
        kept = api.apply(identity(given) | {"status": theirs}, "other", subresource="status").must()

        assert [c["type"] for c in kept["status"]["conditions"]] == ["Ready", "Other"]
        assert [c["path"] for c in kept["status"]["contested"]] == [".spec.a", ".spec.b", ".spec.c"]


def contested(path):
    return {"object": "Deployment/demo", "path": path, "manager": "kubectl"}


def identity(given):
    name, namespace = given["metadata"]["name"], given["metadata"]["namespace"]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": given["apiVersion"], "kind": given["kind"], "metadata": metadata}


def without_rules(crd):
    """Return a definition in which every CEL rule is missing."""

    def strip(node):
        if isinstance(node, dict):
            return {k: strip(v) for k, v in node.items() if k != "x-kubernetes-validations"}
        return [strip(v) for v in node] if isinstance(node, list) else node

    return strip(copy.deepcopy(crd))


def explain(kubectl, resource, path, *more):
    kind = f"{resource.api.plural}.{path}"
    version = f"--api-version={resource.api.group_version}"
    # What it asks for is published some time after the definition is served.
    return eventually(
        lambda: (told := kubectl("explain", kind, version, *more)).code == 0 and told.out, what=kind
    )
