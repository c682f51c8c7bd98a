"""What holds for every test: reproducible examples in CI, and no engine that is silently absent there."""

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import settings

from tests.engines import NEEDS

pytest.register_assert_rewrite("teffmem.testing")

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
