"""How a test asks for something that a machine may not have."""

import importlib
import importlib.util
from types import ModuleType
from typing import NoReturn

import pytest

NEEDS = "needs"
"""First word of every such skip's reason; with CI set, the skip is a failure (see conftest.py)."""


def needs(module: str, extra: str) -> ModuleType:
    """Return an optional dependency; where it is not installed, skip the test or module that asks, and say why.

    A dependency that is installed but broken raises what it raises.
    """
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{NEEDS} {module}: pip install 'teffmem[{extra}]'", allow_module_level=True)
    return importlib.import_module(module)


def absent(what: str) -> NoReturn:
    """Skip the test or module that needs ``what``: a server or program that this machine does not have."""
    pytest.skip(f"{NEEDS} {what}", allow_module_level=True)
