"""JSON: read and written by one module, `hedgerow.encoding`."""

from __future__ import annotations

import ast

from support.code.sources import Module, modules, spelled

LIBRARIES = {"json", "msgspec.json", "orjson"}
FUNCTIONS = {"from_json", "encode", "to_jsonable_python", "JSONEncoder", "JSONDecoder"}
METHODS = {"model_validate_json", "model_dump_json", "validate_json", "dump_json"}

ONE = "hedgerow/encoding.py"
EXCEPTIONS = {
    # The schemas are a package of their own, below hedgerow.
    "hedgerow_schemas/openapi.py",
}


def test_json_goes_through_one_module():
    found = {module.name for module in modules() if uses_json(module)}

    assert found - {ONE} == EXCEPTIONS


def uses_json(module: Module) -> bool:
    """Return whether a module reads or writes JSON by a library."""
    return any(map(_uses_json, module.nodes))


def _uses_json(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name in LIBRARIES for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        is_of_ours = (node.module or "").startswith("hedgerow")
        is_library = node.module in LIBRARIES or (node.module == "msgspec" and "json" in names)
        return is_library or (not is_of_ours and bool(names & FUNCTIONS))
    return isinstance(node, ast.Attribute) and (
        node.attr in METHODS or spelled(node) in {"msgspec.json", "pydantic_core.encode"}
    )


def test_one_that_does_is_found(tmp_path):
    text = "def read():\n    from pydantic_core import from_json"

    assert uses_json(Module(tmp_path, text, ast.parse(text)))
