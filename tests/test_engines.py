"""An absent engine is skipped aloud on a developer's machine, and a failure in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

SKIPS = """
import pytest
from tests.engines import absent, needs

def test_module(): needs("no_such_engine", "nothing")
def test_server(): absent("a server that nobody runs")
@pytest.mark.skipif(True, reason="needs a mark")
def test_mark(): pass
def test_other(): pytest.skip("not on this system")
"""
SKIPPED_MODULE = 'from tests.engines import needs\nneeds("no_such_engine", "nothing")\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A test suite of another project with our conftest, in which everything is skipped."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("__init__.py", "conftest.py", "engines.py", "memories.py"):
        (tests / name).write_text((ROOT / "tests" / name).read_text())
    (tests / "test_skips.py").write_text(SKIPS)
    (tests / "test_module.py").write_text(SKIPPED_MODULE)
    return tmp_path


def run(suite: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | variables
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "--rootdir", str(suite), str(suite)]
    return subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, check=False).stdout


def test_an_absent_engine_is_skipped_and_named(suite: Path) -> None:
    """Without CI every skip stands, with the line that would install what is missing."""
    output = run(suite)
    assert "5 skipped in" in output
    assert "needs no_such_engine: pip install 'teffmem[nothing]'" in output


def test_ci_lets_no_engine_be_absent(suite: Path) -> None:
    """With CI set, a skip for want of something is a failure, of a test and of a module; another skip is not."""
    output = run(suite, CI="true")
    assert "1 error in" in output
    assert "needs no_such_engine: pip install 'teffmem[nothing]'; in CI nothing may be absent" in output
    output = run(suite, CI="true", PYTEST_ADDOPTS="--ignore=tests/test_module.py")
    assert "2 failed, 1 skipped, 1 error in" in output
