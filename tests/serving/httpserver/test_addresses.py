"""Addresses: what is read, what is refused, and how it is written."""

from __future__ import annotations

import pytest

from hedgerow.serving.httpserver.addresses import Address

READ = {
    ":8080": Address("", 8080),
    "127.0.0.1:8080": Address("127.0.0.1", 8080),
    "localhost:0": Address("localhost", 0),
    "[::]:8080": Address("::", 8080),
    "[::1]:65535": Address("::1", 65535),
    ":0": Address("", 0),
}
REFUSED = {
    "": "names no port",
    "8080": "names no port",
    "localhost": "names no port",
    "::1:8080": "brackets",
    "[::1:8080": "brackets",
    "[127.0.0.1]:8080": "brackets",
    "http://x:80": "brackets",
    "a b:80": "brackets",
    "[::1]": "no port",
    ":": "no port",
    ":65536": "no port",
    ":-1": "no port",
    ":http": "no port",
    ":٨": "no port",
}


class TestAddress:
    @pytest.mark.parametrize("text", READ)
    def test_it_is_read_and_written_alike(self, text: str) -> None:
        found = Address.parse(text)

        assert found == READ[text]
        assert str(found) == text

    def test_a_lone_zero_turns_the_server_off(self) -> None:
        assert Address.parse("0") is None

    @pytest.mark.parametrize("text", REFUSED)
    def test_what_is_no_address_is_refused_with_its_reason(self, text: str) -> None:
        with pytest.raises(ValueError, match=REFUSED[text]):
            Address.parse(text)
