"""The rights that the manifests grant: by name where there is a name, and never too many."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import ClassVar

import pytest

from hedgerow import ApiResource, BuiltIn, Controller, Desired, Resource, Secret, Select
from hedgerow.deploy.names import Names
from hedgerow.deploy.overlays import OVERLAYS, parts
from hedgerow.deploy.rights import (
    Right,
    of_controllers,
    of_editors,
    of_installation,
    of_publishing,
    of_reviews,
    of_viewers,
    rights,
    rules,
)
from hedgerow.registry import Registry
from support.cluster.granted import denied, granted, used
from support.code.sources import ROOT
from support.operator.registered import ALL, REGISTRY, RESOURCES

NAMESPACES = {"namespaced": ("shop", "shop-test")}
ROLES = ("Role", "ClusterRole")


def objects(overlay: str, kinds: tuple[str, ...] = (), *, shards: int = 1) -> list[dict]:
    namespaces = NAMESPACES.get(overlay, ())
    made = parts(overlay, "image:1", REGISTRY, namespaces=namespaces, shards=shards)
    found = [obj for part in made for obj in part.objects]
    return [obj for obj in found if not kinds or obj["kind"] in kinds]


def bound(overlay: str, kind: str) -> set[tuple[str, str]]:
    """Return namespace and name of the roles bound to the operator by bindings of that kind."""
    return {
        (binding["metadata"].get("namespace", ""), binding["roleRef"]["name"])
        for binding in objects(overlay, (kind,))
        for subject in binding["subjects"]
        if subject == {"kind": "ServiceAccount", "name": "hedgerow", "namespace": "hedgerow-system"}
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
class TestEveryOverlay:
    @pytest.mark.parametrize("shards", [1, 3])
    def test_no_rule_has_update_or_a_wildcard(self, overlay, shards):
        for role in objects(overlay, ROLES, shards=shards):
            for rule in role["rules"]:
                named = [name for values in rule.values() for name in values]
                assert {"update", "escalate", "bind", "impersonate"} & set(named) == set()
                assert [name for name in named if "*" in name] == []

    def test_a_secret_a_lease_and_a_configuration_are_granted_by_name_only(self, overlay):
        guarded = ("secrets", "leases", "validatingwebhookconfigurations")
        found = granted(objects(overlay, ROLES))

        assert {right for right in found if right.resource in guarded and not right.name} == {
            Right("coordination.k8s.io", "leases", "list")
        }

    def test_the_operator_has_no_right_beside_those_on_resources(self, overlay):
        names = {
            name
            for kind in ("RoleBinding", "ClusterRoleBinding")
            for _, name in bound(overlay, kind)
        }
        own = [role for role in objects(overlay, ROLES) if role["metadata"]["name"] in names]

        assert own
        assert "nonResourceURLs" not in str(own)

    def test_shards_have_rights_on_their_own_leases_and_no_more(self, overlay):
        plain, divided = (objects(overlay, ROLES, shards=shards) for shards in (1, 12))
        changed = [role for role in divided if role not in plain]
        [names] = [
            rule["resourceNames"]
            for role in changed
            for rule in role["rules"]
            if rule["resources"] == ["leases"] and "resourceNames" in rule
        ]

        assert [role["metadata"]["namespace"] for role in changed] == ["hedgerow-system"]
        assert names == ["hedgerow", *(f"hedgerow-shard-{number}-of-12" for number in range(12))]
        assert {(right.resource, right.name) for right in granted(divided) - granted(plain)} == {
            ("leases", name) for name in names[1:]
        }

    def test_the_operator_may_write_no_rights_no_pods_and_no_definitions(self, overlay):
        kept = {"roles", "clusterroles", "rolebindings", "clusterrolebindings", "pods", "nodes"}
        kept |= {"customresourcedefinitions", "serviceaccounts", "namespaces"}
        operators = [r for r in objects(overlay, ROLES) if "aggregate" not in str(r["metadata"])]
        writes = [r for r in granted(operators) if r.verb not in ("get", "list", "watch")]

        assert [right for right in writes if right.resource.split("/")[0] in kept] == []

    def test_every_binding_names_a_role_that_is_there(self, overlay):
        roles = {
            (role["kind"], role["metadata"].get("namespace"), role["metadata"]["name"])
            for role in objects(overlay, ROLES)
        }

        for binding in objects(overlay, ("RoleBinding", "ClusterRoleBinding")):
            where = binding["metadata"].get("namespace")
            assert (binding["roleRef"]["kind"], where, binding["roleRef"]["name"]) in roles


class TestNamespaced:
    def test_the_operator_has_no_right_in_the_whole_cluster(self):
        assert bound("namespaced", "ClusterRoleBinding") == set()

    def test_it_has_a_role_in_each_of_its_namespaces_and_in_its_own(self):
        assert bound("namespaced", "RoleBinding") == {
            ("shop", "hedgerow"),
            ("shop-test", "hedgerow"),
            ("hedgerow-system", "hedgerow-system"),
        }


class TestOneNamespace:
    def test_a_controller_that_watches_one_has_its_rights_there_alone(self):
        class Sources(Resource):
            api: ClassVar[ApiResource] = Secret.api

        vault = BuiltIn(select=Select(namespace="vault"))
        sources = Controller("sources", Sources, lambda *_: Desired(), owns=(), built_in=vault)
        watching = Registry((sources,))
        made = [obj for part in parts("cluster", "image:1", watching) for obj in part.objects]
        places = {
            role["metadata"].get("namespace", "")
            for role in made
            if role["kind"] in ROLES
            for rule in role["rules"]
            if "secrets" in rule.get("resources", ()) and "resourceNames" not in rule
        }

        assert places == {"vault"}


class TestNamespaces:
    def test_nothing_may_be_written_to_them(self):
        granted = of_controllers(ALL["secretsync"])
        verbs = {one.verb for one in granted if one.resource == "namespaces"}

        assert verbs == {"list", "watch"}


class TestOtherOverlays:
    def test_only_the_one_with_webhooks_may_touch_their_configurations(self):
        assert bound("cluster", "ClusterRoleBinding") == {
            ("", "hedgerow"),
            ("", "hedgerow-metrics-auth"),
            ("", "hedgerow-webhook"),
        }
        assert bound("no-webhook", "ClusterRoleBinding") == {
            ("", "hedgerow"),
            ("", "hedgerow-metrics-auth"),
        }


class TestRights:
    def test_they_are_the_union_of_what_the_controllers_declare(self):
        each = [of_controllers([controller]) for controller in REGISTRY.controllers]

        assert of_controllers(REGISTRY.controllers) == frozenset[Right]().union(*each)
        memcached = next(
            one for one, c in zip(each, REGISTRY.controllers, strict=True) if c.name == "memcached"
        )
        assert Right("batch", "jobs", "delete") not in memcached

    def test_a_resource_is_never_written_but_for_its_status(self):
        found = of_controllers(REGISTRY.controllers)

        for resource in RESOURCES:
            api = resource.api
            assert {r for r in found if (r.group, r.resource) == (api.group, api.plural)} == rights(
                api.group, api.plural, ("list", "watch")
            )
            assert Right(api.group, f"{api.plural}/status", "patch") in found

    def test_what_an_installation_has_for_its_own_carries_its_name(self):
        for base in ("hedgerow", "hedgerow-x"):
            names = {right.name for right in of_installation(base) | of_publishing(base)}
            assert names == {base, f"{base}-serving", ""}
            assert [right.verb for right in of_installation(base) if not right.name] == ["list"]

    def test_reviews_are_made_and_never_stored_or_read(self):
        assert {right.verb for right in of_reviews()} == {"create"}

    def test_editors_may_do_what_viewers_may_and_neither_writes_a_status(self):
        assert of_viewers(RESOURCES) < of_editors(RESOURCES)
        written = {r.resource for r in of_editors(RESOURCES) if r.verb in ("patch", "create")}
        assert [name for name in written if name.endswith("/status")] == []

    def test_editors_may_scale_what_can_be_scaled(self):
        scaled = {(r.resource, r.verb) for r in of_editors(RESOURCES) if "/scale" in r.resource}

        assert scaled == {("memcacheds/scale", "get"), ("memcacheds/scale", "patch")}


class TestRules:
    def test_they_say_the_same_as_the_rights(self):
        given = of_controllers(REGISTRY.controllers) | of_installation("a") | of_publishing("a")

        assert granted([{"rules": rules(given)}]) == given

    def test_resources_of_a_group_with_the_same_verbs_share_one(self):
        given = rights("g", "a", ("patch", "get")) | rights("g", "b", ("get", "patch"))
        named = rights("g", "c", ("get", "patch"), "one")

        assert rules(given | named) == [
            {"apiGroups": ["g"], "resources": ["a", "b"], "verbs": ["get", "patch"]},
            {
                "apiGroups": ["g"],
                "resources": ["c"],
                "resourceNames": ["one"],
                "verbs": ["get", "patch"],
            },
        ]

    def test_names_with_the_same_verbs_share_one_and_what_is_for_all_does_not(self):
        named = rights("g", "a", ("get",), "a-10") | rights("g", "a", ("get",), "a-2")

        assert rules(named | rights("g", "a", ("get",))) == [
            {"apiGroups": ["g"], "resources": ["a"], "verbs": ["get"]},
            {
                "apiGroups": ["g"],
                "resources": ["a"],
                "resourceNames": ["a-2", "a-10"],
                "verbs": ["get"],
            },
        ]


class TestWhatAnAuditLogShows:
    entry = {
        "verb": "patch",
        "requestURI": "/apis/g/v1/as/one",
        "objectRef": {"apiGroup": "g", "resource": "as", "name": "one"},
        "responseStatus": {"code": 200},
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }

    def test_an_apply_that_created_used_both_rights(self):
        given = rights("g", "as", ("create", "patch", "get"))
        made = self.entry | {"responseStatus": {"code": 201}}

        assert used([self.entry], given) == rights("g", "as", ("patch",))
        assert used([made], given) == rights("g", "as", ("create", "patch"))

    def test_a_right_by_name_is_used_by_that_name(self):
        assert used([self.entry], rights("g", "as", ("patch",), "one"))
        assert not used([self.entry], rights("g", "as", ("patch",), "two"))

    def test_a_subresource_is_a_resource_of_its_own(self):
        status = self.entry | {"objectRef": self.entry["objectRef"] | {"subresource": "status"}}

        assert not used([status], rights("g", "as", ("patch",)))
        assert used([status], rights("g", "as/status", ("patch",)))

    def test_what_was_forbidden_is_denied_by_whomever(self):
        by_rbac = self.entry | {"annotations": {"authorization.k8s.io/decision": "forbid"}}
        at_creation = self.entry | {"responseStatus": {"code": 403, "message": "no"}}

        assert denied([self.entry]) == []
        assert [verb for verb, *_ in denied([by_rbac, at_creation])] == ["patch", "patch"]


class TestInstances:
    def test_two_installations_share_no_object_but_what_belongs_to_all(self):
        def identities(instance: str) -> set[tuple[str, str]]:
            made = parts("cluster", "i", REGISTRY, names=Names(instance))
            found = [obj for part in made for obj in part.objects]
            return {(obj["kind"], obj["metadata"]["name"]) for obj in found}

        assert identities("") & identities("x") == {
            ("Namespace", "hedgerow-system"),
            ("ClusterRole", "hedgerow-viewer"),
            ("ClusterRole", "hedgerow-editor"),
            ("ClusterRole", "hedgerow-metrics-reader"),
        }


@dataclass(frozen=True)
class Row:
    """A row of the guide's table of what a stolen token does at worst."""

    resources: tuple[str, ...]
    names: tuple[str, ...]
    verbs: frozenset[str]
    worst: str
    bounds: str

    def is_about(self, right: Right) -> bool:
        named = any(fnmatch(right.name, pattern) for pattern in self.names)
        # A namespace that the operator is limited to may be called anything.
        is_named = right.name and right.resource != "namespaces"
        is_there = named if is_named else not self.names
        return is_there and right.resource in self.resources and right.verb in self.verbs


def rows() -> list[Row]:
    text = (ROOT / "docs/reference/rights.md").read_text("utf-8")
    table = text.partition("## With a stolen token")[2].partition("|---|---|---|---|\n")[2]
    found: list[Row] = []
    for line in table.partition("\n\n")[0].splitlines():
        on, verbs, worst, bounds = (cell.strip() for cell in line.strip("|").split(" | "))
        resources, _, names = on.partition(" named ")
        plurals, named = (tuple(re.findall("`([^`]+)`", part)) for part in (resources, names))
        found.append(Row(plurals, named, frozenset(verbs.split(", ")), worst, bounds))
    return found


def of_the_account() -> set[Right]:
    """Return each right that any overlay prints for the operator, with every controller."""
    made = [
        obj
        for overlay in OVERLAYS
        for shards in (1, 3)
        for part in parts(
            overlay, "image:1", ALL, namespaces=NAMESPACES.get(overlay, ()), shards=shards
        )
        for obj in part.objects
    ]
    given = {
        (obj["roleRef"]["name"], obj["metadata"].get("namespace"))
        for obj in made
        if obj["kind"] in ("RoleBinding", "ClusterRoleBinding")
        and any(subject["kind"] == "ServiceAccount" for subject in obj["subjects"])
    }
    roles = [obj for obj in made if obj["kind"] in ROLES]
    own = [
        role
        for role in roles
        if (role["metadata"]["name"], role["metadata"].get("namespace")) in given
    ]
    return {*granted(own)}


CUSTOM = tuple(resource.api.plural for resource in ALL.resources)
PHRASES = {
    "the custom resources": CUSTOM,
    "… /status": tuple(f"{plural}/status" for plural in CUSTOM),
    "events (events.k8s.io)": ("events",),
    "the Lease hedgerow, and with shards that of each": ("leases",),
    "all Leases of hedgerow-system": ("leases",),
    "the Secret hedgerow-serving": ("secrets",),
    "the webhook configuration hedgerow": ("validatingwebhookconfigurations",),
}
"""What the table of rights calls in other words than RBAC does."""


def needed() -> dict[tuple[str, str], list[str]]:
    """Return what for each resource and verb is needed, as the guide's table of rights says."""
    text = (ROOT / "docs/reference/rights.md").read_text("utf-8")
    table = text.partition("| On | Verbs | What for |\n|---|---|---|\n")[2]
    found: dict[tuple[str, str], list[str]] = {}
    for line in table.partition("\n\n")[0].splitlines():
        on, verbs, why = (cell.strip() for cell in line.strip("|").split(" | "))
        plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", on).replace("`", "")
        named = re.split(r", with (?!shards)|, such as ", plain)[0]
        for resource in PHRASES.get(named) or named.split(", "):
            for verb in verbs.split(", "):
                found.setdefault((resource, verb), []).append(why)
    return found


class TestTheTableOfRights:
    """What the operator needs each right for is told for each that there is, and for no other."""

    def test_it_has_each_right_that_is_printed(self):
        lacking = {(right.resource, right.verb) for right in of_the_account()} - needed().keys()

        assert lacking == set()

    def test_it_has_no_other(self):
        surplus = needed().keys() - {(right.resource, right.verb) for right in of_the_account()}

        assert surplus == set()
        assert all(all(reasons) for reasons in needed().values())


class TestTheGuide:
    """What somebody can do with a stolen token is told for each right that there is."""

    def test_every_right_that_is_printed_has_a_row(self):
        rights = of_the_account()

        assert len(rights) > 60
        assert [right for right in rights if not any(row.is_about(right) for row in rows())] == []

    def test_every_row_is_about_rights_that_are_printed(self):
        rights = of_the_account()
        idle = [
            (row.resources, resource, verb)
            for row in rows()
            for resource in row.resources
            for verb in row.verbs
            if not any(
                (right.resource, right.verb) == (resource, verb) and row.is_about(right)
                for right in rights
            )
        ]

        assert len(rows()) > 15
        assert idle == []

    def test_what_bounds_a_right_to_write_is_a_policy_that_is_printed_or_rbac(self):
        policies = {
            obj["metadata"]["name"] for obj in objects("cluster", ("ValidatingAdmissionPolicy",))
        }
        bounds = {row: set(re.findall("`(hedgerow-[a-z-]+)`", row.bounds)) for row in rows()}
        unnamed = [
            row for row in rows() if not row.worst or not (bounds[row] or "RBAC" in row.bounds)
        ]

        assert [found - policies for found in bounds.values() if found - policies] == []
        assert unnamed == []
        assert {"hedgerow-children", "hedgerow-webhook"} <= set[str]().union(*bounds.values())
