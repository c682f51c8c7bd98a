"""What users may import is what the docs list, and all of it is explained."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import teffmem
from teffmem import errors
from tests.engines import NEEDS
from tests.test_layers import SOURCES

ROOT = Path(__file__).parents[1]
PUBLIC = [module for module in SOURCES if not any(part.startswith("_") for part in module.split("."))]


def listed(page: str) -> list[str]:
    """Return the names in the first column of a page's tables."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    return re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)


def defined(module: str) -> Iterator[tuple[str, object]]:
    """Yield the public classes and functions that a module defines, and the public methods of its classes."""
    for name, found in vars(importlib.import_module(module)).items():
        if name.startswith("_") or getattr(found, "__module__", None) != module:
            continue
        if inspect.isclass(found) or inspect.isroutine(found):
            yield f"{module}.{name}", found
        if inspect.isclass(found):
            yield from (
                (f"{module}.{name}.{method}", of)
                for method, of in vars(found).items()
                if not method.startswith("_")
                and isinstance(of, property | classmethod | staticmethod | type(lambda: None))
            )


def contract() -> set[str]:
    """Return the methods that a protocol explains for all who implement it."""
    return {name.rpartition(".")[2] for name, _ in defined("teffmem.protocols") if name.count(".") > 2}


def test_the_package_offers_what_the_docs_list() -> None:
    """`teffmem.__all__` is the table of docs/reference/api.md: sorted, and every name is there."""
    if not hasattr(teffmem, "__all__"):
        pytest.skip("the package is not whole yet")
    assert sorted(teffmem.__all__) == sorted(listed("api.md"))
    assert [name for name in teffmem.__all__ if not hasattr(teffmem, name)] == []
    assert list(teffmem.__all__) == sorted(
        teffmem.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )


def test_the_docs_list_every_error() -> None:
    """docs/reference/errors.md has each error that a call can raise."""
    assert {*listed("errors.md")} == {*errors.__all__} - {"TeffmemError"}


@pytest.mark.parametrize("module", PUBLIC)
def test_everything_public_is_explained(module: str) -> None:
    """Every public module, class, function and method has a docstring; one that keeps a protocol may lean on its."""
    try:
        names = dict(defined(module))
    except errors.MissingExtraError as error:
        pytest.skip(f"{NEEDS} {module}: {error}")
    assert importlib.import_module(module).__doc__ or SOURCES[module].read_text().strip() == ""
    leaning = contract() if re.search(r"embedders|vectorstores|llm|adapters", module) else set()
    silent = [name for name, found in names.items() if not inspect.getdoc(found)]
    assert [name for name in silent if name.rpartition(".")[2] not in leaning] == []
