"""Files: what is read of them, and what of one that is no manifest."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from hedgerow.deploy.manifest import LONGEST, ManifestError, objects_in
from hedgerow_tools.objects.files import sources


def standard_input(content: bytes) -> SimpleNamespace:
    return SimpleNamespace(buffer=io.BytesIO(content))


class TestSources:
    def test_files_directories_and_standard_input_are_read(self, tmp_path, monkeypatch):
        (tmp_path / "b.yml").write_text("b", "utf-8")
        (tmp_path / "a.json").write_text("a", "utf-8")
        (tmp_path / "c.txt").write_text("c", "utf-8")
        monkeypatch.setattr(sys, "stdin", standard_input(b"x\ny"))
        found = list(sources([str(tmp_path), "-", str(tmp_path / "c.txt")]))

        assert [text for _, text in found] == ["a", "b", "x\ny", "c"]
        assert found[2][0] == "standard input"

    def test_what_is_no_text_is_told(self, tmp_path, monkeypatch):
        (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\xff")
        monkeypatch.setattr(sys, "stdin", standard_input("é".encode()[:1]))
        for given, name in ((str(tmp_path / "a.yaml"), "a.yaml"), ("-", "standard input")):
            [found] = sources([given])
            with pytest.raises(ManifestError, match=f"{name}: it is no text in UTF-8"):
                list(objects_in(*found))

    def test_of_a_file_without_end_enough_is_read_to_refuse_it(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", standard_input(b"x" + "é".encode() * (3 * LONGEST)))
        [(name, text)] = sources(["-"])

        with pytest.raises(ManifestError, match="standard input: it is larger than 48 MiB"):
            list(objects_in(name, text))

    def test_a_file_that_is_not_there_is_an_error(self):
        with pytest.raises(FileNotFoundError):
            list(sources(["/nowhere/a.yaml"]))
