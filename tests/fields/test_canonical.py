from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.canonical import (
    builtin,
    canonical_value,
    identical,
    is_completed,
    quantity,
    same,
    time,
)

RESOURCES = ("f:spec", "f:containers", 'k:{"name":"c"}', "f:resources")


class TestIdentical:
    @pytest.mark.parametrize(
        ("left", "right"),
        [("8", 8), (1, True), (True, 1), (0, False), (None, 0), ([], {}), ({}, []), ([1], [1, 1]),
         ({"a": 1}, {"a": 1, "b": 1}), ({"a": 1}, {"a": True}), ([None], [0]), ("a", ["a"])],
    )  # fmt: skip
    def test_other_types_and_other_contents_differ(self, left: Any, right: Any) -> None:
        assert not identical(left, right)

    @pytest.mark.parametrize("value", [1, "1", True, None, [], {}, {"a": [1, {"b": None}]}, 1.5])
    def test_equal_json_is_identical(self, value: Any) -> None:
        assert identical(value, value)

    def test_a_whole_float_is_the_integer(self) -> None:
        assert identical(1.0, 1)


class TestQuantity:
    """The right-hand sides are what a real API server answered for an emptyDir's sizeLimit."""

    @pytest.mark.parametrize(
        ("sent", "answered"),
        [
            ("0", "0"), ("0.0", "0"), ("00", "0"), ("-0", "0"), ("0Gi", "0"), ("1", "1"),
            ("1000m", "1"), ("0.5", "500m"), (".5", "500m"), ("1.5", "1500m"), ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"), ("0.0005Gi", "536870912m"), ("100Ki", "100Ki"),
            ("0.1Ki", "102400m"), ("1.1Ki", "1126400m"), ("1024", "1024"), ("1e3", "1e3"),
            ("1e-3", "1e-3"), ("1000e0", "1e3"), ("12e6", "12e6"), ("1e10", "10e9"),
            ("5e2", "500"), ("1.5e3", "1500"), ("1000k", "1M"), ("1000000", "1M"),
            ("1000Mi", "1000Mi"), ("2048Ki", "2Mi"), ("0.1m", "100u"), ("0.1n", "1n"),
            ("1500u", "1500u"), ("3.0", "3"), ("1048576", "1048576"), ("1Ei", "1Ei"), ("9E", "9E"),
            ("1.0000000001", "1000000001n"), ("10000000", "10M"), ("-1.5", "-1500m"),
            ("8Ei", "9223372036854775807"), ("7Ei", "7Ei"), ("-9Ei", "-9223372036854775807"),
            ("1e19", "10e18"), ("1.000000000001", "1000000001n"),
            ("+1234567890123456789", "1234567890123456789"), ("1e2", "100"), ("008Ki", "8Ki"),
            (1, "1"), (0.5, "500m"), (1000, "1k"),
        ],
    )  # fmt: skip
    def test_it_is_respelled_as_the_server_does(self, sent: Any, answered: str) -> None:
        assert answered == quantity(sent)

    @pytest.mark.parametrize(
        "text",
        ["1.234", "1.", "1E3", "+5", "1e03", "1023Ki", "009Ki", "+1023Gi", "1025Mi", "10E", "1e30"],
    )
    def test_what_the_server_takes_for_canonical_stays(self, text: str) -> None:
        assert text == quantity(text)

    @pytest.mark.parametrize(
        "value",
        ["", "x", "1000E", "1 Gi", "Gi", ".", "1gi", True, None, ["1000m"]],
    )
    def test_what_is_no_quantity_stays(self, value: Any) -> None:
        assert value is quantity(value)


class TestTime:
    @pytest.mark.parametrize(
        ("sent", "precision", "answered"),
        [
            ("2026-01-01T00:00:00+02:00", "seconds", "2025-12-31T22:00:00Z"),
            ("2026-01-01T00:00:00.9Z", "seconds", "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00Z", "microseconds", "2026-01-01T00:00:00.000000Z"),
            ("2026-01-01T00:00:00", "seconds", "2026-01-01T00:00:00"),
            ("soon", "seconds", "soon"),
            (7, "seconds", 7),
        ],
    )
    def test_it_is_respelled_in_utc(self, sent: Any, precision: str, answered: Any) -> None:
        assert answered == time(sent, precision)


class TestSame:
    @pytest.mark.parametrize(
        ("field_path", "want", "live"),
        [
            ((*RESOURCES, "f:limits", "f:cpu"), "1000m", "1"),
            ((*RESOURCES, "f:requests", "f:memory"), "1024Mi", "1Gi"),
            (RESOURCES, {"limits": {"cpu": "0.5"}}, {"limits": {"cpu": "500m"}}),
            (("f:volumes", 'k:{"name":"v"}', "f:emptyDir", "f:sizeLimit"), "1024Mi", "1Gi"),
            (("f:valueFrom", "f:resourceFieldRef"), {"divisor": "1000m"}, {"divisor": "1"}),
            (("f:overhead", "f:cpu"), "0.1", "100m"),
            (("f:template", "f:spec", "f:overhead", "f:cpu"), "0.1", "100m"),
            (("f:eventTime",), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"),
            (("f:spec", "f:renewTime"), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"),
            (("f:deprecatedFirstTimestamp",), "2026-01-01T00:00:00+01:00", "2025-12-31T23:00:00Z"),
            (("f:selector",), {"matchLabels": {"a": "b"}, "x": []}, {"matchLabels": {"a": "b"}}),
            (("f:from",), [{"podSelector": {"matchLabels": {}}}], [{"podSelector": {}}]),
        ],
    )  # fmt: skip
    def test_spelling_does_not_count_where_quantities_and_times_stand(
        self, field_path: tuple[str, ...], want: Any, live: Any
    ) -> None:
        assert same(want, live, field_path)

    @pytest.mark.parametrize(
        ("field_path", "want", "live"),
        [
            (("f:env", 'k:{"name":"limits"}', "f:value"), "1000m", "1"),
            (("f:data", "f:cpu"), "1000m", "1"),
            (("f:data", "f:renewTime"), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"),
            (("f:metadata", "f:annotations", "f:limits"), "1000m", "1"),
            (("f:spec", "f:limits", "f:cpu"), "1000m", "1"),
            (("f:sizeLimit",), "1024Mi", "1Gi"),
            ((*RESOURCES, "f:limits", "f:cpu"), "1", "2"),
            ((*RESOURCES, "f:limits", "f:memory"), "1Gi", "1073741824"),
            ((), "1000m", "1"),
            (("f:selector",), {"matchLabels": {"a": "b"}}, {}),
            (("f:selector",), {}, {"matchLabels": {"a": "b"}}),
            (("f:from",), [{"podSelector": {}}], []),
        ],
    )
    def test_everywhere_else_and_in_substance_it_does(
        self, field_path: tuple[str, ...], want: Any, live: Any
    ) -> None:
        assert not same(want, live, field_path)


class TestCompleted:
    """What an empty value leaves unsaid, and what is none of the server's."""

    @pytest.mark.parametrize("empty", ["", [], {}], ids=repr)
    @pytest.mark.parametrize(
        ("name", "filled"),
        [
            ("schedulerName", "default-scheduler"), ("clusterIP", "10.0.0.1"),
            ("imagePullPolicy", "Always"), ("protocol", "TCP"), ("targetPort", 80),
            ("ipFamilies", ["IPv4"]), ("policyTypes", ["Ingress"]), ("resources", {"a": "b"}),
        ],
    )  # fmt: skip
    def test_what_is_empty_is_filled_in(self, name: str, filled: Any, empty: Any) -> None:
        assert is_completed(empty, filled, ("f:spec", f"f:{name}"))
        assert not is_completed("other", filled, ("f:spec", f"f:{name}"))

    @pytest.mark.parametrize(
        ("name", "filled"),
        [("failureThreshold", 3), ("periodSeconds", 10), ("successThreshold", 1),
         ("timeoutSeconds", 1), ("nodePort", 30000), ("healthCheckNodePort", 30001),
         ("hostPort", 80), ("targetPort", 80)],
    )  # fmt: skip
    def test_a_number_that_may_not_be_0_is_filled_in(self, name: str, filled: int) -> None:
        assert is_completed(0, filled, ("f:spec", f"f:{name}"))
        assert not is_completed(5, filled, ("f:spec", f"f:{name}"))

    @pytest.mark.parametrize("empty", ["", 0, False, [], {}, None])
    def test_what_is_empty_is_left_out(self, empty: Any) -> None:
        assert is_completed(empty, None, ("f:spec", "f:any"))
        assert is_completed({"a": 1, "any": empty}, {"a": 1}, ("f:spec",))
        assert is_completed([{"a": 1, "any": empty}], [{"a": 1}], ("f:spec",))

    @pytest.mark.parametrize(
        ("want", "live", "name"),
        [
            (0, 2, "replicas"),
            (False, True, "automountServiceAccountToken"),
            (False, True, "periodSeconds"),
            ("", "gold", "storageClassName"),
            ("a:1", "mirror/a:1", "image"),
            ("a", None, "image"),
            ([1], [1, 2], "args"),
            ([1], [2], "args"),
            ({"a": 1}, None, "any"),
            ({"a": 1}, {"b": 1}, "any"),
        ],
    )
    def test_everything_else_is_somebody_elses_change(
        self, want: Any, live: Any, name: str
    ) -> None:
        assert not is_completed(want, live, ("f:spec", f"f:{name}"))

    @pytest.mark.parametrize("element", ['k:{"name":""}', 'k:{"containerPort":80,"protocol":""}'])
    def test_an_item_with_an_empty_key_becomes_another(self, element: str) -> None:
        assert is_completed(80, None, ("f:ports", element, "f:containerPort"))

    def test_a_default_within_an_atomic_field_is_known_as_well(self) -> None:
        want = {"fieldRef": {"fieldPath": "a", "apiVersion": ""}}
        live = {"fieldRef": {"fieldPath": "a", "apiVersion": "v1"}}

        assert is_completed([want], [live], ("f:spec", "f:items"))

    def test_a_quantity_keeps_its_spelling(self) -> None:
        want, live = ({"resourceFieldRef": {"divisor": one}} for one in ("1000m", "1"))

        assert is_completed([want], [live], ("f:spec", "f:items"))


class TestCanonical:
    def test_only_known_places_are_respelled(self) -> None:
        container = {"resources": {"limits": {"cpu": "1000m"}}, "args": ["1000m"]}

        assert {"resources": {"limits": {"cpu": "1"}}, "args": ["1000m"]} == canonical_value(
            container
        )

    def test_what_the_server_adds_inside_atomic_fields_is_added(self) -> None:
        field, token = {"fieldPath": "metadata.name"}, {"path": "token"}
        sources = [{"downwardAPI": {"items": [{"path": "a", "fieldRef": field}]}}]
        declared = {"sources": [*sources, {"serviceAccountToken": token}]}

        spelled = canonical_value(declared)

        assert spelled["sources"][0]["downwardAPI"]["items"][0]["fieldRef"] == {
            **field,
            "apiVersion": "v1",
        }
        assert spelled["sources"][1]["serviceAccountToken"]["expirationSeconds"] == 3600

    @pytest.mark.parametrize(
        ("field_path", "want", "live", "is_same"),
        [
            (("f:fieldRef",), {"fieldPath": "a"}, {"fieldPath": "a", "apiVersion": "v1"}, True),
            (("f:fieldRef",), {"fieldPath": "a"}, {"fieldPath": "a", "apiVersion": "v2"}, False),
            (("f:fieldRef",), {"fieldPath": "a"}, {"fieldPath": "b", "apiVersion": "v1"}, False),
            (("f:resourceFieldRef",), {"resource": "a"}, {"resource": "a", "divisor": "0"}, True),
            (("f:resourceFieldRef",), {"resource": "a"}, {"resource": "a", "divisor": "1"}, False),
            (("f:selector",), {"app": "a"}, {"app": "a", "apiVersion": "v1"}, False),
        ],
    )
    def test_nothing_else_may_be_added(
        self, field_path: tuple[str, ...], want: Any, live: Any, is_same: bool
    ) -> None:
        assert same(want, live, field_path) is is_same

    @pytest.mark.parametrize(
        ("api_version", "is_builtin"),
        [("v1", True), ("apps/v1", True), ("networking.k8s.io/v1", True), ("example.com/v1", False),
         ("app.demo.kakao.com/v1", False)],
    )  # fmt: skip
    def test_only_built_in_kinds_are_respelled(self, api_version: str, is_builtin: bool) -> None:
        assert is_builtin is builtin(api_version)
