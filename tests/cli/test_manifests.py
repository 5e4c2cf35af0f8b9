"""`hedgerow manifests`, as typed."""

from __future__ import annotations

import pytest
import yaml

from hedgerow import __version__
from hedgerow.deploy.names import RESERVED

COMMAND = ("manifests",)


@pytest.fixture
def printed(typed):
    """Type a line that works; give the objects that it prints."""

    def run(*words: str) -> list[dict]:
        code, out, err = typed(*words)
        assert (code, err) == (0, "")
        return list(yaml.load_all(out, yaml.CSafeLoader))

    return run


def program(objects: list[dict]) -> dict:
    [deployment] = [obj for obj in objects if obj["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]["containers"][0]


class TestManifests:
    def test_the_definitions_come_first_and_may_be_left_out(self, printed):
        whole, rest = printed(), printed("--no-crds")

        assert [obj["kind"] for obj in whole[:4]] == [
            *["CustomResourceDefinition"] * 3,
            "Namespace",
        ]
        assert whole[3:] == rest

    def test_the_image_is_that_of_this_version_unless_another_is_given(self, printed):
        other = "registry.example/hedgerow:2"

        assert program(printed("--no-crds"))["image"] == f"hedgerow:{__version__}"
        assert program(printed("--no-crds", "--image", other))["image"] == other

    def test_namespaces_are_given_to_the_program_and_each_has_a_role(self, printed):
        objects = printed("--no-crds", "--overlay", "namespaced", "-n", "a,b", "-n", "c")
        roles = {obj["metadata"]["namespace"] for obj in objects if obj["kind"] == "Role"}

        assert roles == {"a", "b", "c", "hedgerow-system"}
        given = [arg for arg in program(objects)["args"] if arg.startswith("--namespace")]
        assert given == ["--namespace=a", "--namespace=b", "--namespace=c"]

    def test_an_instance_is_told_its_name(self, printed):
        objects = printed("--no-crds", "--instance", "x")

        assert "--instance=x" in program(objects)["args"]
        leases = [
            rule["resourceNames"]
            for obj in objects
            for rule in obj.get("rules", ())
            if rule.get("resources") == ["leases"] and "resourceNames" in rule
        ]
        assert leases == [["hedgerow-x"]]

    def test_shards_of_an_instance_have_its_name_too(self, printed):
        objects = printed("--no-crds", "--instance", "x", "--shards", "2")
        deployments = [obj for obj in objects if obj["kind"] == "Deployment"]

        assert [one["metadata"]["name"] for one in deployments] == [
            "hedgerow-x-shard-0-of-2", "hedgerow-x-shard-1-of-2",
        ]  # fmt: skip
        assert all(
            "--instance=x" in one["spec"]["template"]["spec"]["containers"][0]["args"]
            for one in deployments
        )

    def test_only_the_controllers_that_are_named_are_installed_and_run(self, printed):
        objects = printed("--controllers", "memcached", "--controllers", "cronjob,memcached")
        definitions = [o for o in objects if o["kind"] == "CustomResourceDefinition"]

        assert [crd["spec"]["names"]["kind"] for crd in definitions] == ["Memcached", "CronJob"]
        given = [arg for arg in program(objects)["args"] if arg.startswith("--controllers")]
        assert given == ["--controllers=memcached", "--controllers=cronjob"]
        assert "bluegreens" not in yaml.dump_all(objects)

    @pytest.mark.parametrize("words", [(), ("--overlay", "namespaced", "-n", "a")])
    def test_each_shard_is_a_deployment_with_a_standby(self, printed, words):
        plain, divided = (
            printed("--no-crds", *words, *more) for more in (("--shards", "1"), ("--shards", "3"))
        )
        changed = [obj for obj in divided if obj not in plain]
        deployments = [obj for obj in divided if obj["kind"] == "Deployment"]

        assert plain == printed("--no-crds", *words)
        assert [obj["kind"] for obj in changed] == ["Role", *["Deployment"] * 3]
        for number, one in enumerate(deployments):
            [container] = one["spec"]["template"]["spec"]["containers"]
            assert one["metadata"]["name"] == f"hedgerow-shard-{number}-of-3"
            assert one["spec"]["replicas"] == 2
            assert f"--shard={number}/3" in container["args"]
            assert "--leader-elect" in container["args"]

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("--overlay", "namespaced"), "need each other"),
            (("--overlay", "namespaced", "-n", "kube-system"), "may write nothing in kube-system"),
            (
                ("--overlay", "namespaced", "-n", "shop,hedgerow-system"),
                "may write nothing in hedgerow-system",
            ),
            (("-n", "a"), "need each other"),
            (("--overlay", "namespaced", "-n", "A"), "--namespace takes"),
            (("--instance", "X"), "--instance takes"),
            (("--shards", "0"), "--shards"),
            (("--shards", "101"), "--shards"),
            (("--shards", "true"), "--shards"),
            (("--overlay", "other"), "'other'"),
            (("--controllers", "nope"), "there are: bluegreen"),
            (("--image", ""), "is no image's name"),
            (("--image", "a b"), "is no image's name"),
            (("--image", "a\nb: c"), "is no image's name"),
            *(
                (("--instance", name), "would have the names of another")
                for name in sorted(RESERVED)
            ),
            (("--instance", "shard-0-of-2"), "would have the names of another"),
            (("--instance", "a-webhook"), "would have the names of another"),
        ],
        ids=lambda value: value if isinstance(value, str) else " ".join(value),
    )
    def test_what_makes_no_sense_is_said_in_a_line_and_nothing_is_printed(self, typed, words, told):
        code, out, err = typed(*words)

        assert (code, out) == (2, "")
        assert told in err
        assert err.count("\n") == 1
