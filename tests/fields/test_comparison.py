from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.ownership import judge, residual
from support.objects.judged import NAME, OTHER, OURS, item, live, only, told, want


class TestSurplus:
    def test_what_we_hold_and_no_longer_declare_is_told_leaf_by_leaf(self) -> None:
        declared = want(spec={"replicas": 2})
        tree = {
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:list": {'k:{"name":"c"}': {".": {}, "f:name": {}}, 'v:"x"': {}},
            },
        }
        found = live(declared, (OURS, tree))
        found["metadata"]["labels"] = {"a": "1"}
        found["spec"] = {"replicas": 2, "list": [{"name": "c", "more": 1}]}
        verdict = judge(declared, found, OURS)

        assert [
            ('.spec.list[name="c"]', {"name": "c", "more": 1}),
            ('.spec.list[name="c"].name', "c"),
            ('.spec.list[="x"]', None),
            (".metadata.labels.a", "1"),
        ] == [(leaf.path, leaf.live) for leaf in verdict.leaves]
        assert {"surplus"} == {leaf.why for leaf in verdict.leaves}
        assert () == verdict.contested

    def test_so_is_what_became_a_scalar_or_an_empty_map(self) -> None:
        declared = want(spec={"a": 1, "b": {}})
        tree = {"f:spec": {"f:a": {".": {}, "f:x": {}}, "f:b": {"f:y": {}}}}
        found = live(declared, (OURS, tree), spec={"a": 1, "b": {"y": 1}})

        assert [("surplus", ".spec.a.x"), ("surplus", ".spec.b.y")] == told(
            judge(declared, found, OURS)
        )

    def test_a_list_item_that_is_no_longer_declared(self) -> None:
        declared = want(spec={"list": [{"name": "a"}]})
        item = {".": {}, "f:name": {}}
        tree = {"f:spec": {"f:list": {'k:{"name":"a"}': item, 'k:{"name":"b"}': item}}}
        found = live(declared, (OURS, tree), spec={"list": [{"name": "a"}, {"name": "b"}]})

        assert [
            ("surplus", '.spec.list[name="b"]'),
            ("surplus", '.spec.list[name="b"].name'),
        ] == told(judge(declared, found, OURS))


class TestLists:
    PORTS = [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    TCP, UDP = 'k:{"port":80,"protocol":"TCP"}', 'k:{"port":53,"protocol":"UDP"}'
    TREE = {"f:spec": {"f:ports": {TCP: item("port", "protocol"), UDP: item("port", "protocol")}}}

    def test_our_items_may_stand_among_others_in_our_order(self) -> None:
        declared = want(spec={"ports": self.PORTS})
        between = [self.PORTS[0], {"port": 1, "protocol": "TCP"}, self.PORTS[1]]

        assert judge(
            declared, live(declared, (OURS, self.TREE), spec={"ports": between}), OURS
        ).settled

    @pytest.mark.parametrize("ours", [PORTS, PORTS[::-1]], ids=["tcp first", "udp first"])
    def test_out_of_our_order_is_a_write_and_no_conflict(self, ours: list[Any]) -> None:
        declared = want(spec={"ports": ours})
        found = live(declared, (OURS, self.TREE), (OTHER, self.TREE), spec={"ports": ours[::-1]})
        leaf = only(judge(declared, found, OURS))

        elements = {"TCP": self.TCP, "UDP": self.UDP}
        order = [elements[port["protocol"]] for port in ours]
        assert ("order", ".spec.ports") == (leaf.why, leaf.path)
        assert (order, order[::-1]) == (leaf.want, leaf.live)
        assert () == judge(declared, found, OURS).contested

    def test_an_omitted_key_is_found_by_elimination(self) -> None:
        declared = want(spec={"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]})
        tree = {"f:spec": {"f:ports": {self.TCP: item("port"), self.UDP: item("port", "protocol")}}}

        assert judge(
            declared, live(declared, (OURS, tree), spec={"ports": self.PORTS}), OURS
        ).settled

    def test_a_removed_item_is_lost_without_holder(self) -> None:
        declared = want(spec={"ports": self.PORTS})
        tree = {"f:spec": {"f:ports": {self.TCP: item("port", "protocol")}}}
        found = live(declared, (OURS, tree), spec={"ports": self.PORTS[:1]})
        leaf = only(judge(declared, found, OURS))

        assert ("lost", '.spec.ports[port=53,protocol="UDP"]', ()) == (
            leaf.why,
            leaf.path,
            leaf.holders,
        )

    def test_an_item_without_any_key_is_lost_at_its_index(self) -> None:
        declared = want(spec={"ports": [{"name": "a"}, self.PORTS[0], self.PORTS[1]]})
        found = live(declared, (OURS, self.TREE), spec={"ports": self.PORTS})

        assert [("lost", ".spec.ports[0]")] == told(judge(declared, found, OURS))

    def test_a_field_of_an_item_that_another_took(self) -> None:
        ports = [{"port": 80, "protocol": "TCP", "name": "http"}]
        declared = want(spec={"ports": ports})
        ours = {"f:spec": {"f:ports": {self.TCP: item("port", "protocol")}}}
        theirs = {"f:spec": {"f:ports": {self.TCP: {"f:name": {}}}}}
        found = live(declared, (OURS, ours), (f"{OTHER}/Update", theirs))
        found["spec"] = {"ports": [{**ports[0], "name": "web"}]}

        assert ['.spec.ports[port=80,protocol="TCP"].name'] == [
            leaf.path for leaf in judge(declared, found, OURS).contested
        ]

    def test_a_set_is_known_by_its_values(self) -> None:
        declared = want(metadata={**NAME, "finalizers": ["a/one", "a/two"]})
        tree = {"f:metadata": {"f:finalizers": {'v:"a/one"': {}, 'v:"a/two"': {}}}}
        found = live(declared, (OURS, tree))
        found["metadata"]["finalizers"] = ["a/one", "other"]

        assert [("changed", '.metadata.finalizers[="a/two"]')] == told(judge(declared, found, OURS))

    def test_duplicates_are_one_value(self) -> None:
        env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
        declared = want(spec={"env": env})
        tree = {"f:spec": {"f:env": {'k:{"name":"A"}': {}}}}

        assert judge(declared, live(declared, (OURS, tree)), OURS).settled
        shorter = live(declared, (OURS, tree), spec={"env": env[:1]})
        assert [("changed", '.spec.env[name="A"]')] == told(judge(declared, shorter, OURS))
        gone = live(declared, (OURS, tree), spec={})
        assert only(judge(declared, gone, OURS)).live is None

    def test_a_list_that_is_gone_is_lost_item_by_item(self) -> None:
        declared = want(spec={"ports": self.PORTS})
        found = live(declared, (OURS, self.TREE), spec={})

        assert [".spec.ports[port=53", ".spec.ports[port=80"] == sorted(
            {path.partition(",")[0] for _, path in told(judge(declared, found, OURS))}
        )

    def test_a_list_where_a_map_was_is_no_reason_to_stumble(self) -> None:
        declared = want(spec={"ports": {"a": 1}, "strategy": [1]})
        tree = {"f:spec": {"f:ports": {self.TCP: {}}, "f:strategy": {"f:type": {}}}}
        found = live(declared, (OURS, tree), spec={"ports": [1], "strategy": {"type": "x"}})

        assert not judge(declared, found, OURS).settled


class TestUntracked:
    """All managed fields were wiped: the next apply books everything to `before-first-apply`."""

    @pytest.mark.parametrize("managed", [None, [], [{}]])
    def test_it_is_never_settled(self, managed: Any) -> None:
        declared = want(spec={"replicas": 2})
        found = live(declared)
        found["metadata"]["managedFields"] = managed
        verdict = judge(declared, found, OURS)

        assert not verdict.settled
        assert () == verdict.contested
        assert "" != residual(verdict)

    def test_every_difference_conflicts(self) -> None:
        declared = want(spec={"replicas": 2, "paused": True})
        found = live(declared, spec={"replicas": 1})
        verdict = judge(declared, found, OURS)

        assert [".spec.replicas"] == [leaf.path for leaf in verdict.contested]
        assert ["before-first-apply"] == [h.manager for h in verdict.contested[0].holders]
        assert [("lost", ".spec.replicas"), ("lost", ".spec.paused")] == told(verdict)


class TestNormalForm:
    def test_a_respelled_quantity_of_ours_is_settled(self) -> None:
        resources = {"limits": {"cpu": "1000m"}}
        declared = want(spec={"resources": resources})
        tree = {"f:spec": {"f:resources": {"f:limits": {"f:cpu": {}}}}}
        found = live(declared, (OURS, tree), spec={"resources": {"limits": {"cpu": "1"}}})

        assert judge(declared, found, OURS).settled

    def test_with_a_co_owner_the_server_compares_spellings(self) -> None:
        resources = {"limits": {"cpu": "1000m"}}
        declared = want(spec={"resources": resources})
        tree = {"f:spec": {"f:resources": {"f:limits": {"f:cpu": {}}}}}
        found = live(
            declared, (OURS, tree), (OTHER, tree), spec={"resources": {"limits": {"cpu": "1"}}}
        )

        assert 1 == len(judge(declared, found, OURS).contested)

    def test_a_custom_resource_keeps_its_spelling(self) -> None:
        declared = want("Hedge", "example.com/v1", spec={"resources": {"limits": {"cpu": "1000m"}}})
        tree = {"f:spec": {"f:resources": {"f:limits": {"f:cpu": {}}}}}
        found = live(declared, (OURS, tree), spec={"resources": {"limits": {"cpu": "1"}}})

        assert not judge(declared, found, OURS).settled
