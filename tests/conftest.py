"""What holds for every test: reproducible examples in CI, and no engine that is silently absent there."""

import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from teffmem import MemoryStore
from tests.engines import NEEDS
from tests.memories import BACKENDS, Opener, OpenMemory

AnyReport = TypeVar("AnyReport", pytest.TestReport, pytest.CollectReport)

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail, in CI, a test that was skipped because what it needs is not there."""
    return _none_absent((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail, in CI, a module that was skipped because what it needs is not there."""
    return _none_absent((yield))


def _none_absent(report: AnyReport) -> AnyReport:
    if os.environ.get("CI") and report.skipped and isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        if reason.startswith(f"Skipped: {NEEDS} "):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: {reason.removeprefix('Skipped: ')}; in CI nothing may be absent"
    return report


@pytest.fixture(params=BACKENDS)
async def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenMemory]:
    """Open memories over each core backend in turn."""
    opener = Opener(request.param, tmp_path)
    yield opener
    await opener.aclose()


@pytest.fixture
def memory(open_memory: OpenMemory) -> MemoryStore:
    """Return an empty memory with a `FakeEmbedder`."""
    return open_memory()
