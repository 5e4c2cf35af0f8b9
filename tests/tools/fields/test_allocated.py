"""Allocated: a dry run's made-up values are not told as what will be."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from hedgerow.objects import PLACEHOLDER
from hedgerow_tools.fields.allocated import UNKNOWN, foreseen, without_uid
from support.objects.judged import NAME, Object

PORT = 'k:{"port":80,"protocol":"TCP"}'
UID = "7b6c-uid"


def service(spec: Object, *held: str, kind: str = "Service", **port: Any) -> Object:
    """Return a Service with one port, of which a manager holds these fields."""
    whole = {"port": 80, "protocol": "TCP", **port}
    fields = {f"f:{name}": {} for name in held if name in spec}
    of_port = {
        ".": {},
        **{f"f:{name}": {} for name in ("port", "protocol", *held) if name in whole},
    }
    tree = {"f:spec": {**fields, "f:ports": {PORT: of_port}}}
    entry = {"manager": "helm", "operation": "Apply", "apiVersion": "v1", "fieldsV1": tree}
    meta = {**NAME, "uid": UID, "managedFields": [entry]}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": {**spec, "ports": [whole]}}


def told(before: Object | None, after: Object) -> dict[str, Any]:
    return {line.path: line.new for line in foreseen(before, after, "helm") if line.is_change}


PLAIN = {"type": "ClusterIP", "clusterIP": "10.0.0.7"}
OF_PORT = '.spec.ports[port=80,protocol="TCP"].nodePort'


class TestServices:
    def test_what_the_server_allocates_is_known_once_it_is_applied(self) -> None:
        made = {**PLAIN, "clusterIPs": ["10.0.0.7"], "healthCheckNodePort": 3, "x": 1}
        found = told(None, service(made, nodePort=32769))

        assert [path for path, value in found.items() if value == UNKNOWN] == [
            ".spec.clusterIP", ".spec.clusterIPs[0]", ".spec.healthCheckNodePort", OF_PORT,
        ]  # fmt: skip
        assert found[".spec.x"] == 1

    def test_so_is_the_node_port_of_one_that_gets_another_type(self) -> None:
        after = service({**PLAIN, "type": "NodePort"}, "type", nodePort=32769)

        assert told(service(PLAIN, "type"), after) == {".spec.type": "NodePort", OF_PORT: UNKNOWN}

    def test_what_somebody_declares_is_what_it_will_be(self) -> None:
        after = service({**PLAIN, "clusterIP": "None"}, "clusterIP", "nodePort", nodePort=30080)
        found = told(None, after)

        assert (found[".spec.clusterIP"], found[OF_PORT]) == ("None", 30080)

    def test_what_it_has_already_and_what_goes_is_known(self) -> None:
        before, after = service(PLAIN, nodePort=30080), service(PLAIN)

        assert told(before, after) == {OF_PORT: UNSET}
        assert told(after, after) == {}

    def test_other_kinds_have_fields_of_such_names_too(self) -> None:
        assert told(None, service(PLAIN, kind="Gateway"))[".spec.clusterIP"] == "10.0.0.7"


def test_the_uid_of_a_new_object_is_not_known_wherever_it_stands() -> None:
    """Of a Job the server makes its labels."""
    found = without_uid(service({"selector": {"of": [f"job-{UID}"]}}))

    assert found["metadata"]["uid"] == PLACEHOLDER
    assert found["spec"]["selector"] == {"of": [f"job-{PLACEHOLDER}"]}
