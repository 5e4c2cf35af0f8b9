from __future__ import annotations

import pytest
from pydantic import ValidationError

from hedgerow_schemas.bluegreen import BlueGreen, BlueGreenSpec, BlueGreenStatus, Port

PODS = {
    "containers": [{"name": "blue", "image": "ealen/echo-server", "command": None, "args": []}],
    "volumes": [{"name": "scratch", "emptyDir": {}}],
    "nodeSelector": {},
    "terminationGracePeriodSeconds": 0,
}


def bluegreen(**spec):
    return BlueGreen.model_validate(
        {
            "apiVersion": "app.demo.kakao.com/v1",
            "kind": "BlueGreen",
            "metadata": {"name": "demo", "namespace": "shop"},
            "spec": {"routeTo": "Blue", **spec},
        }
    )


class TestBlueGreen:
    def test_a_new_resource_has_an_empty_status(self):
        assert bluegreen().status == BlueGreenStatus()

    def test_a_status_may_name_any_colour_since_anybody_may_change_the_selector(self):
        assert BlueGreenStatus.model_validate({"routeTo": "Purple"}).route_to == "Purple"


class TestBlueGreenSpec:
    def test_the_default_is_what_the_original_did(self):
        spec = bluegreen().spec

        assert spec.promotion == "Immediate"
        assert spec.ports == (Port(name="http", port=80, protocol="TCP"),)

    @pytest.mark.parametrize(
        "given",
        [{"routeTo": "Purple"}, {"promotion": "Never"}, {"ports": []}, {"ports": [{"port": 0}]}],
    )
    def test_what_the_schema_refuses_the_model_refuses_too(self, given):
        with pytest.raises(ValidationError):
            bluegreen(**given)

    def test_ports_given_replace_the_default(self):
        spec = bluegreen(ports=[{"port": 8080, "targetPort": "web"}]).spec

        assert [(p.port, p.protocol, p.target_port) for p in spec.ports] == [(8080, "TCP", "web")]

    @pytest.mark.parametrize("target", [8080, "8080"])
    def test_a_target_port_stays_the_number_or_text_that_it_is(self, target):
        port = Port.model_validate({"port": 80, "targetPort": target})

        assert port.wire()["targetPort"] == target
        assert type(port.target_port) is type(target)

    def test_a_pod_specification_passes_through_unaltered(self):
        spec = bluegreen(blueSpec=PODS).spec

        assert spec.blue_spec == PODS
        assert spec.wire()["blueSpec"] == PODS

    def test_phases_are_the_colours_that_have_a_specification_blue_first(self):
        green = {"containers": []}

        assert bluegreen(greenSpec=green, blueSpec=PODS).spec.phases() == (
            ("Blue", PODS),
            ("Green", green),
        )
        assert bluegreen(greenSpec=green).spec.phases() == (("Green", green),)
        assert BlueGreenSpec(route_to="Blue").phases() == ()

    def test_an_empty_pod_specification_is_present(self):
        assert bluegreen(blueSpec={}).spec.phases() == (("Blue", {}),)
