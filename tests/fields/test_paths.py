from __future__ import annotations

import pytest

from hedgerow.fields.paths import Positions, assign, coin, parse, path_of, show
from support.objects.foreign import UNMEANT

HTTP = 'k:{"containerPort":80,"protocol":"TCP"}'
DNS = 'k:{"containerPort":53,"protocol":"UDP"}'
TWICE = 'k:{"containerPort":80,"protocol":"UDP"}'


class TestPrinting:
    """As the server prints the fields of a 409's causes."""

    @pytest.mark.parametrize(
        ("field_path", "path"),
        [
            (("f:spec", "f:replicas"), ".spec.replicas"),
            (("f:metadata", "f:labels", "f:app.kubernetes.io/name"),
             ".metadata.labels.app.kubernetes.io/name"),
            (("f:containers", 'k:{"name":"blue"}', "f:image"), '.containers[name="blue"].image'),
            (("f:ports", 'k:{"protocol":"TCP","containerPort":80}'),
             '.ports[containerPort=80,protocol="TCP"]'),
            (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
            (("f:x", "v:true"), ".x[=true]"),
            (("f:x", "i:3"), ".x[3]"),
            ((), ""),
        ],
    )  # fmt: skip
    def test_a_path_reads_like_a_conflict(self, field_path: tuple[str, ...], path: str) -> None:
        assert path == path_of(field_path)

    @pytest.mark.parametrize(
        ("char", "quoted"),
        [
            ('"', r"\""), ("\\", r"\\"), ("\n", r"\n"), ("\t", r"\t"), ("\a", r"\a"),
            ("\b", r"\b"), ("\f", r"\f"), ("\r", r"\r"), ("\v", r"\v"), ("\x00", r"\x00"),
            ("\x7f", r"\x7f"), ("\x80", r"\u0080"), ("\u200b", r"\u200b"),
            ("\U000e0001", r"\U000e0001"), ("é", "é"), ("\u00a0", r"\u00a0"), (" ", " "),
            ("🌳", "🌳"),
        ],
    )  # fmt: skip
    def test_a_string_is_quoted_as_go_quotes_it(self, char: str, quoted: str) -> None:
        item = {"name": f"a{char}b"}
        element = coin(item, ['k:{"name":"c"}'])

        assert element is not None
        assert f'[name="a{quoted}b"]' == show(element)

    @pytest.mark.parametrize("element", ["f:{}", 'k:{{"{}":1}}', "v:{}", "x:{}", "{}"])
    def test_no_name_in_it_is_obeyed_by_a_terminal(self, element: str) -> None:
        shown = [show(element.format(char)) for char in UNMEANT]

        assert all(map(str.isprintable, shown))


class TestParsing:
    @pytest.mark.parametrize(
        "element", ["k:{", "k:[1]", "x:1", "i:0", "nonsense", "v:", "v:" + "[" * 5000]
    )
    def test_what_cannot_be_read_matches_nothing(self, element: str) -> None:
        assert "?" == parse(element).kind
        assert not Positions([{"name": "c"}, None, "c", 0]).indices(element)


class TestPositions:
    def test_items_are_found_by_all_their_keys(self) -> None:
        live = [
            {"containerPort": 53, "protocol": "UDP"},
            {"containerPort": 80, "protocol": "TCP", "name": "http"},
        ]

        where = Positions(live)

        assert (where.indices(HTTP), where.indices(DNS), where.indices(TWICE)) == ([1], [0], ())

    def test_duplicates_are_all_found(self) -> None:
        live = [{"name": "a"}, {"name": "b"}, {"name": "a"}]

        assert [0, 2] == Positions(live).indices('k:{"name":"a"}')

    @pytest.mark.parametrize(
        ("live", "element", "found"),
        [
            (["a", "b"], 'v:"b"', [1]),
            ([1, True], "v:true", [1]),
            ([1, True], "v:1", [0]),
            ([1.0], "v:1", [0]),
            (["1"], "v:1", []),
            ([{"name": True}], 'k:{"name":1}', []),
            ([{"other": 1}], 'k:{"name":1}', []),
            (["no map"], 'k:{"name":1}', []),
            ([None, ["x"]], 'v:["x"]', [1]),
        ],
    )
    def test_values_are_compared_strictly(
        self, live: list[object], element: str, found: list[int]
    ) -> None:
        assert found == list(Positions(live).indices(element))


class TestAssigning:
    def test_exact_keys_win(self) -> None:
        items = [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP"}]

        assert [TWICE, HTTP] == assign(items, [HTTP, TWICE])

    def test_an_item_without_a_key_gets_what_is_left_over(self) -> None:
        items = [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]

        assert [TWICE, HTTP] == assign(items, [HTTP, TWICE])

    def test_two_items_without_a_key_get_different_ones(self) -> None:
        assert [HTTP, TWICE] == assign([{"containerPort": 80}] * 2, [HTTP, TWICE])

    def test_what_disagrees_or_has_all_keys_is_not_guessed(self) -> None:
        items = [{"containerPort": 81}, {"containerPort": 80, "protocol": "SCTP"}, "x"]

        assert [None, None, None] == assign(items, [HTTP, DNS])

    def test_a_set_item_is_its_own_key(self) -> None:
        assert ['v:"b"', None] == assign(["b", "c"], ['v:"a"', 'v:"b"'])


class TestCoining:
    def test_an_element_is_made_as_the_known_ones_are(self) -> None:
        item = {"name": "web", "protocol": "TCP", "containerPort": 81}

        assert '[containerPort=81,protocol="TCP"]' == show(coin(item, [HTTP]) or "")
        assert '[="x"]' == show(coin("x", ['v:"a"']) or "")

    @pytest.mark.parametrize("known", [(), ("f:x",), ("k:{",)])
    def test_without_an_example_there_is_none(self, known: tuple[str, ...]) -> None:
        assert coin({"name": "a"}, known) is None

    def test_an_item_without_its_keys_has_none(self) -> None:
        assert coin({"containerPort": 81}, [HTTP]) is None


class TestLeftovers:
    def test_of_several_shapes_the_first_element_that_fits_is_taken_and_each_once(self):
        short, port = 'k:{"name":"a"}', 'k:{"port":80,"protocol":"TCP"}'
        other = 'k:{"port":81,"protocol":"TCP"}'
        items = [{"port": 81}, {"port": 80}, {"port": 80}, {"port": 7, "name": "b"}]

        assert assign(items, [port, short, other]) == [short, port, None, None]


class TestRemembering:
    def test_a_short_element_is_parsed_once(self):
        assert parse('v:"short"') is parse('v:"short"')

    def test_long_ones_are_kept_as_many_as_one_object_has(self):
        element = f'v:"{"x" * 1000}"'
        first = parse(element)

        assert parse(element) is first
        for char in "abc":
            parse(f'v:"{char * 2**20}"')
        assert parse(element) is not first
        assert parse(element) == first


class TestShowing:
    def test_a_long_one_is_cut_and_still_differs_from_others(self):
        shown = {show(f'k:{{"name":"{"x" * 2000}{end}"}}') for end in "ab"}

        assert len(shown) == 2
        assert {len(one) for one in shown} == {1024 + 1 + 16}


class TestEmptyKeys:
    """A key that the server stores as nothing at all: `imagePullSecrets: [{name: ""}]`."""

    NAMED, UNNAMED = 'k:{"name":"a"}', 'k:{"name":""}'

    def test_the_item_that_lacks_it_is_found(self) -> None:
        where = Positions([{"name": "a"}, {}])

        assert (list(where.indices(self.NAMED)), list(where.indices(self.UNNAMED))) == ([0], [1])

    def test_the_item_that_leaves_it_out_has_it_empty_rather_than_another(self) -> None:
        assert assign([{}], [self.NAMED, self.UNNAMED]) == [self.UNNAMED]
        assert assign([{"name": ""}], [self.NAMED, self.UNNAMED]) == [self.UNNAMED]

    def test_a_key_with_another_default_is_guessed_as_before(self) -> None:
        assert assign([{"containerPort": 80}], [DNS, HTTP]) == [HTTP]
