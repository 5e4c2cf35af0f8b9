"""`hedgerow new`, as typed: what is made, and what is told of names that will not do."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, cycle
from pathlib import Path

import pytest
import yaml

from hedgerow.objects import LONGEST_PROGRAM, digest
from hedgerow_tools.new import names, scaffold

Typed = Callable[..., tuple[int, str, str]]
SUBSETS = [
    chosen
    for count in range(1, len(names.CHILDREN) + 1)
    for chosen in combinations(names.CHILDREN, count)
]
LETTERS = sorted(set(string.ascii_uppercase) - {"I", "N", "O", "Y"})


def of_every_length() -> Iterator[scaffold.NewOperator]:
    """Yield operators with a name, a group or a kind of each length, with one child or with all."""
    label = "a" * 59 + "."
    longest = "n" * LONGEST_PROGRAM
    words = [
        *(("n" * size, "a.b", "K") for size in range(1, LONGEST_PROGRAM + 1)),
        *((longest, "a.b", "K" * size) for size in range(1, names.LONGEST_KIND + 1)),
        *(("n", "a.b", "K" * size) for size in range(1, names.LONGEST_KIND + 1)),
        *(("n", (label * 3)[: size - 2] + ".b", "K") for size in range(4, names.LONGEST_GROUP, 8)),
    ]
    for children in (names.CHILDREN[:1], names.CHILDREN):
        for name, group, kind in words:
            yield scaffold.NewOperator(name, group, kind, children)


@pytest.fixture
def typed(typing, tmp_path, monkeypatch) -> Typed:
    """Type a command in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    return partial(typing, "new")


def shop(*more: str) -> tuple[str, ...]:
    return ("shop", "--group", "shop.example.com", "--kind", "Shop", *more)


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


def write(folder: Path, operator: scaffold.NewOperator) -> None:
    """Write all but the manifests, which take a process of their own."""
    for path, text in scaffold.files(operator).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")


def must_pass(folder: Path, *words: str) -> None:
    done = called(folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr


class TestMade:
    def test_it_fills_in_every_placeholder_and_says_what_to_do_next_in_one_line(self, typed: Typed):
        code, out, err = typed(*shop())

        assert (code, err, out.count("\n")) == (0, "", 1)
        assert "cd shop && pip install --editable '.[dev]' && task" in out
        files = [path for path in Path("shop").rglob("*") if path.is_file()]
        texts = {path: path.read_text("utf-8") for path in files}
        assert len(texts) > 10
        assert [path for path, text in texts.items() if "#@" in text or "$kind" in text] == []

    def test_it_is_formatted_and_linted_whatever_the_children_and_the_names(self, tmp_path):
        domain = (("d" * 59 + ".") * 3)[: names.LONGEST_GROUP - 1] + "e"
        longest = ("n" * LONGEST_PROGRAM, domain, "K" * names.LONGEST_KIND, names.CHILDREN)
        write(tmp_path / "longest", scaffold.NewOperator(*longest))
        for children in SUBSETS:
            folder = tmp_path / "-".join(children)
            write(folder, scaffold.NewOperator("shop", "shop.example.com", "Shop", children))
            controller = (folder / "shop/controller.py").read_text("utf-8")
            assert {kind for kind in names.CHILDREN if f"    {kind},\n" in controller} == {
                *children
            }

        must_pass(tmp_path, "ruff", "format", "--check", ".")
        must_pass(tmp_path, "ruff", "check", ".")

    def test_the_examples_of_its_help_and_kinds_that_kubernetes_has_too_pass_their_own_tests(
        self, typed: Typed, monkeypatch
    ):
        """All in one process, which takes as long as one of them to begin."""
        _, shown, _ = typed("--help")
        operators = [words.split() for words in re.findall(r"hedgerow new (\w+ --group .*)", shown)]
        assert len(operators) == 2
        for n, kind in enumerate(("Event", "Lease", "Ingress")):
            operators.append([f"shop{n}", "--group", "shop.example.com", "--kind", kind])
        assert [typed(*words)[0] for words in operators] == [0] * 5
        folders: list[str] = []
        for name, group, kind in (words[:5:2] for words in operators):
            # Else pytest would take the folder for the package.
            folders.append(str(folder := Path(name).rename(f"of-{name}")))
            readme = (folder / "README.md").read_text("utf-8")
            assert f"{names.plural(kind)}.{group}/sample" in readme
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(Path(f).resolve()) for f in folders))

        tests = [f"{folder}/tests/test_controller.py" for folder in folders]
        kit = ("-p", "hedgerow_testing.plugin", "--import-mode=importlib", "--rootdir=.")
        done = called(Path(), "pytest", "-v", *kit, *tests)

        assert done.returncode == 0, done.stdout + done.stderr
        assert {test for test in tests if f"{test}::" not in done.stdout} == set()

    def test_it_is_formatted_whatever_the_lengths_of_its_names(self, tmp_path):
        for operator in of_every_length():
            for path, text in scaffold.files(operator).items():
                if path.endswith(".py"):
                    (tmp_path / f"{digest(text)}.py").write_text(text, "utf-8")

        must_pass(tmp_path, "ruff", "format", "--line-length=100", "--check", ".")

    def test_it_is_linted_whatever_its_names_look_like(self, tmp_path):
        kinds = (*LETTERS, *(f"{letter}1" for letter in LETTERS), "AB", "ABC", "ABc")
        for kind, name in zip(kinds, cycle(("a", "z9", "model", "sample", "status")), strict=False):
            operator = scaffold.NewOperator(name, "a.b", kind, names.CHILDREN)
            write(tmp_path / f"{name}-{kind}", operator)

        must_pass(tmp_path, "ruff", "check", "--output-format=concise", ".")

    def test_in_an_empty_folder_its_manifests_have_its_definition_and_its_rights(
        self, typed: Typed
    ):
        Path("shop").mkdir()
        typed(*shop("--children", "ConfigMap"))
        made = list(yaml.safe_load_all(Path("shop/manifests/install.yaml").read_text("utf-8")))
        (role,) = (
            o for o in made if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "shop"
        )

        assert made[0]["metadata"]["name"] == "shops.shop.example.com"
        assert {r for rule in role["rules"] for r in rule["resources"]} >= {"configmaps", "shops"}
        assert "deployments" not in str(role)

    @pytest.mark.parametrize(
        ("kind", "plural"),
        [
            ("Shop", "shops"),
            ("Box", "boxes"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Boxes", "boxes"),
            ("Foos", "foos"),
            ("Policies", "policies"),
            ("Quotas", "quotas"),
            ("Class", "classes"),
            ("Status", "statuses"),
            ("Redis", "redises"),
            ("Alias", "aliases"),
        ],
    )
    def test_the_plural_is_what_english_mostly_has(self, kind, plural):
        assert names.plural(kind) == plural

    @pytest.mark.parametrize(
        ("version", "asked"),
        [("0.1.0", ">=0.1.0,<0.2"), ("1.4.2", ">=1.4.2,<2"), ("0.9.0rc1", ">=0.9.0rc1,<0.10")],
    )
    def test_it_asks_for_versions_that_have_what_this_one_has(self, version, asked):
        assert scaffold.compatible(version) == asked


class TestRefused:
    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("my-shop",), "NAME: 'my-shop' is no program's name"),
            (("Shop",), "NAME: 'Shop' is no program's name"),
            (("../shop",), "NAME: '../shop' is no program's name"),
            (("json",), "NAME: 'json' is a reserved word of Python"),
            (("class",), "NAME: 'class' is a reserved word of Python"),
            (("hedgerow",), "NAME: 'hedgerow' is a reserved word of Python"),
            (("tests",), "NAME: 'tests' is"),
            (("anyio",), "NAME: 'anyio' is a reserved word of Python"),
            (("kubernetes",), "NAME: 'kubernetes' is a reserved word of Python"),
            (("conftest",), "NAME: 'conftest' is a reserved word of Python, or an existing"),
            (("kube",), "names that begin with kube- are Kubernetes's own"),
            (("lease",), "NAME: 'lease' is"),
            (("shop", "--group", "shop"), "--group: 'shop' is no API group"),
            (
                ("shop", "--group", "Shop.example.com"),
                "--group: 'Shop.example.com' is no API group",
            ),
            (("shop", "--group", "a..b"), "--group: 'a..b' is no API group"),
            (("shop", "--group", f"{'a.' * 100}b"), "at most 180 characters"),
            (("shop", "--group", "apps.k8s.io"), "a group of the Kubernetes project"),
            (("shop", "--kind", "shop"), "--kind: 'shop' is no kind"),
            (("shop", "--kind", "My-Shop"), "--kind: 'My-Shop' is no kind"),
            (("shop", "--kind", "K" * 36), "at most 35 characters"),
            (("shop", "--kind", "Deployment"), "a name of the library or of Python"),
            *(
                (("shop", "--kind", kind), f"{kind!r} is misread, by YAML or as a digit")
                for kind in ("I", "N", "No", "Null", "O", "Off", "On", "Y", "Yes")
            ),
            (("shop", "--kind", "None"), "a name of the library or of Python"),
            (
                ("shop", "--children", "Ingress"),
                "'Ingress' is no kind of child; there are: ConfigMap",
            ),
            (("shop", "--children", ","), "name at least one kind of child"),
        ],
        ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
    )
    def test_it_is_told_in_one_line_and_nothing_is_written(self, typed: Typed, words, told):
        name, *rest = words
        given = {"--group": "shop.example.com", "--kind": "Shop"}
        given |= dict(zip(rest[::2], rest[1::2], strict=True))
        code, out, err = typed(name, *(word for pair in given.items() for word in pair))

        assert (code, out, err.count("\n")) == (2, "", 1)
        assert told in err
        assert list(Path().iterdir()) == []

    def test_a_folder_that_is_not_empty_is_left_as_it_is(self, typed: Typed):
        Path("shop").mkdir()
        Path("shop/mine").write_text("mine", "utf-8")

        code, _, err = typed(*shop())

        assert (code, err.count("\n")) == (2, 1)
        assert "shop is there already, and it is not an empty folder" in err
        assert [path.name for path in Path("shop").iterdir()] == ["mine"]

    @pytest.mark.parametrize("missing", ["--group", "--kind"])
    def test_what_is_missing_is_named(self, typed: Typed, missing):
        given = {"--group": "shop.example.com", "--kind": "Shop"}
        del given[missing]
        code, _, err = typed("shop", *(word for pair in given.items() for word in pair))

        assert (code, err.count("\n")) == (2, 1)
        assert missing in err
