"""The project's files agree with each other: README, CI, extras, groups, changelog."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]


def test_ci_runs_the_line_of_readme() -> None:
    """The tests of CI are the one line that README gives a newcomer."""
    readme = (ROOT / "README.md").read_text().splitlines()
    [line] = [line for line in readme if line.endswith("-m pytest")]
    assert (
        f"run_tests() {{ # the line of README, and nothing else\n    {line}\n}}" in (ROOT / ".ci" / "run").read_text()
    )


def test_readme_has_two_lines_for_a_newcomer() -> None:
    """Each command stands alone in its block, so that it can be pasted."""
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)\n```$", readme, flags=re.MULTILINE | re.DOTALL)
    assert [block.splitlines()[0].rpartition(" ")[2] for block in blocks] == ["demo", "pytest"]
    assert [len(block.splitlines()) for block in blocks] == [1, 1]


def test_all_holds_every_extra() -> None:
    """`teffmem[all]` brings each other extra."""
    [names] = [re.findall(r"teffmem\[(.*)\]", line) for line in EXTRAS["all"]]
    assert names[0].split(",") == sorted(EXTRAS.keys() - {"all"})


def test_ci_installs_extras_that_exist() -> None:
    """The extras that .ci/run asks for are among those of pyproject.toml."""
    [names] = re.findall(r"^extras=(\S+)", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
    assert {*names.split(",")} <= EXTRAS.keys()


def test_dev_holds_every_group() -> None:
    """The group `dev` includes each other group but `bench`, which only measuring needs."""
    groups = PYPROJECT["dependency-groups"]
    assert {entry["include-group"] for entry in groups["dev"]} == groups.keys() - {"dev", "bench"}


def test_the_changelog_knows_this_version() -> None:
    """Changes stand under the version they came with, or under "Unreleased" before a release."""
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "docs" / "changelog.md").read_text(), flags=re.MULTILINE)
    assert headings[0] in ("Unreleased", PYPROJECT["project"]["version"])
