"""Free ports on the loopback address."""

import socket
from pathlib import Path

import pytest

from hedgerow_testing.sandbox import ports


@pytest.fixture
def ephemeral(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def to(text: str) -> None:
        file = tmp_path / "range"
        file.write_text(text)
        monkeypatch.setattr(ports, "RANGE", file)

    return to


class TestChoose:
    def test_each_name_has_a_port_of_its_own_that_is_free(self) -> None:
        chosen = ports.choose([f"server-{number}" for number in range(20)])

        assert len(set(chosen.values())) == 20
        for port in chosen.values():
            with socket.socket() as listener:
                listener.bind((ports.LOOPBACK, port))

    def test_no_port_lies_where_outgoing_connections_get_theirs(self, ephemeral) -> None:
        ephemeral("12000\t60999\n")

        chosen = ports.choose(map(str, range(20)))

        assert all(10_000 <= port < 12_000 for port in chosen.values())

    @pytest.mark.parametrize("text", ["1024 65535", "", "many"])
    def test_where_no_room_is_left_below_them_the_system_chooses(self, ephemeral, text) -> None:
        ephemeral(text)

        assert ports.choose(["one"])["one"] > 0

    def test_a_port_that_somebody_listens_on_is_passed_over(self, monkeypatch) -> None:
        with socket.socket() as taken, socket.socket() as probe:
            taken.bind((ports.LOOPBACK, 0))
            taken.listen()
            probe.bind((ports.LOOPBACK, 0))
            free = probe.getsockname()[1]
            probe.close()
            offers = iter([taken.getsockname()[1], free])
            monkeypatch.setattr(ports, "ephemeral", lambda: 65_536)
            monkeypatch.setattr(ports.secrets, "randbelow", lambda _: next(offers) - 10_000)

            assert ports.choose(["one"]) == {"one": free}

    def test_when_every_offer_is_taken_the_system_chooses(self, monkeypatch) -> None:
        with socket.socket() as taken:
            taken.bind((ports.LOOPBACK, 0))
            taken.listen()
            port = taken.getsockname()[1]
            monkeypatch.setattr(ports, "ephemeral", lambda: 65_536)
            monkeypatch.setattr(ports.secrets, "randbelow", lambda _: port - 10_000)

            assert ports.choose(["one"])["one"] != port
