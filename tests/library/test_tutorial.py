"""How the tutorial's blocks are read and done: what is not as the page says fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.programs.tutorial import Block, Terminal, blocks, matches

PAGE = """
Text with `code`.

<!-- write a.txt -->
```text
one
```

<!-- append a.txt -->
```text
two
```

```console
$ cat a.txt
one
…
$ true
```

<!-- needs a node -->
```sh
export NAME=value
echo "$NAME" \\
  and more
```
"""


@pytest.fixture
def found(tmp_path: Path) -> list[Block]:
    page = tmp_path / "page.md"
    page.write_text(PAGE, "utf-8")
    return blocks(page)


class TestBlocks:
    def test_each_has_what_the_comment_before_it_says(self, found):
        assert [(block.file, block.needs, block.language) for block in found] == [
            ("a.txt", "", "text"),
            ("a.txt", "", "text"),
            ("", "", "console"),
            ("", "a node", "sh"),
        ]

    def test_a_file_is_written_once_and_then_appended_to(self, found, tmp_path):
        for block in found[:2]:
            block.write(tmp_path)

        assert (tmp_path / "a.txt").read_text("utf-8") == "one\ntwo\n"
        with pytest.raises(FileExistsError):
            found[0].write(tmp_path)

    def test_commands_have_what_they_show(self, found):
        assert found[2].commands() == [("cat a.txt", "one\n…\n"), ("true", "")]
        assert found[3].commands() == [
            ("export NAME=value", None),
            ('echo "$NAME"   and more', None),
        ]

    @pytest.mark.parametrize(
        ("shown", "output", "same"),
        [
            ("one\n", "one  \n\n", True),
            ("one …\n", "one 2 s\n", True),
            ("…\ntwo", "zero\none\ntwo", True),
            ("one\n", "one\ntwo\n", False),
            ("", "one\n", False),
            ("a.c", "abc", False),
        ],
    )
    def test_an_output_is_compared_but_for_what_is_left_open(self, shown, output, same):
        assert matches(shown, output) is same


class TestTerminal:
    def test_what_is_exported_stays_and_a_failure_fails(self, tmp_path):
        with Terminal(tmp_path, os.environ) as terminal:
            terminal.run("NAME=value")

            assert terminal.run('echo "$NAME"').strip() == "value"
            with pytest.raises(AssertionError, match="false"):
                terminal.run("false")
            assert terminal.run("cat").strip() == "", "no command reads ours"

    def test_a_shell_that_ends_fails(self, tmp_path):
        with (
            Terminal(tmp_path, os.environ) as terminal,
            pytest.raises(AssertionError, match="has ended"),
        ):
            terminal.run("exit 0")
