"""How things are timed and reported: in turn, by percentiles, as ratios, with the versions they were measured with."""

import asyncio
import json
import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

__all__ = [
    "RESULTS",
    "Figure",
    "Operation",
    "Report",
    "Runs",
    "Timing",
    "cores_available",
    "environment",
    "interleave",
    "timing_of",
]

Operation = Callable[[int], Awaitable[object]]
"""One operation; it is given the number of the round, by which it chooses its query or scope."""

RESULTS = Path(__file__).parent / "results"

_PACKAGES = ("numpy", "simsimd", "aiosqlite", "teffmem")


@dataclass(frozen=True, slots=True)
class Timing:
    """Percentiles of one operation's durations, in milliseconds."""

    p50: float
    p95: float
    p99: float

    def __str__(self) -> str:
        return f"{self.p50:.3f}/{self.p95:.3f}/{self.p99:.3f} ms"


@dataclass(frozen=True, slots=True)
class Runs:
    """The timings of operations that were measured together: by name, one a run."""

    timings: Mapping[str, Sequence[Timing]]

    def timing(self, name: str) -> Timing:
        """Return the median over the runs of each percentile."""
        runs = self.timings[name]
        return Timing(*(statistics.median(getattr(run, part) for run in runs) for part in ("p50", "p95", "p99")))

    def ratio(self, name: str, floor: str) -> float:
        """Return the median over the runs of the ratio of two operations' p50."""
        pairs = zip(self.timings[name], self.timings[floor], strict=True)
        return statistics.median(ours.p50 / raw.p50 for ours, raw in pairs)

    def best(self, names: Sequence[str]) -> str:
        """Return which of the named operations has the smallest p50."""
        return min(names, key=lambda name: self.timing(name).p50)


def timing_of(seconds: Sequence[float]) -> Timing:
    """Return the percentiles of durations that are given in seconds."""
    return Timing(*(float(part) for part in np.percentile(np.array(seconds) * 1e3, (50, 95, 99))))


async def interleave(
    operations: Mapping[str, Operation], *, rounds: int, runs: int, warm_up: int = 3, rest: float = 0.0
) -> Runs:
    """Time operations in turn (the first, the second, ..., the first again), so that a slow moment hits all of them.

    Args:
        operations: By name; each is awaited once a round.
        rounds: How often each is timed in one run.
        runs: How many runs there are; what is reported is the median over them.
        warm_up: Rounds before the first run that do not count.
        rest: Seconds before each operation, for threads of the one before that wait for work by spinning.
    """
    for number in range(warm_up):
        for operation in operations.values():
            await operation(number)
    collected: dict[str, list[Timing]] = {name: [] for name in operations}
    for _ in range(runs):
        seconds: dict[str, list[float]] = {name: [] for name in operations}
        for number in range(rounds):
            for name, operation in operations.items():
                if rest:
                    await asyncio.sleep(rest)
                begun = time.perf_counter()
                await operation(number)
                seconds[name].append(time.perf_counter() - begun)
        for name, durations in seconds.items():
            collected[name].append(timing_of(durations))
    return Runs(collected)


@dataclass(frozen=True, slots=True)
class Figure:
    """One result.

    Attributes:
        name: What was measured.
        value: The result.
        unit: Of ``value``: "x" (a ratio), "ms", "MB", "share", ...
        at_most: The limit it is to keep, if there is one.
        at_least: The same from below.
        timings: The timings that it comes from, by operation.
        note: What a reader must know to understand it.
    """

    name: str
    value: float
    unit: str = "x"
    at_most: float | None = None
    at_least: float | None = None
    timings: Mapping[str, Timing] = field(default_factory=dict)
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether it keeps its limit, in words; "" without a limit."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}: {'holds' if self.value <= self.at_most else 'MISSED'}"
        if self.at_least is not None:
            return f">= {self.at_least:g}: {'holds' if self.value >= self.at_least else 'MISSED'}"
        return ""

    def __str__(self) -> str:
        timings = "  ".join(f"{name} {timing}" for name, timing in self.timings.items())
        return f"{self.name:<52} {self.value:>9.3f} {self.unit:<6} {self.verdict:<16} {timings}  {self.note}".rstrip()


class Report:
    """The figures of one benchmark; each is printed as soon as it is there."""

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.figures: list[Figure] = []
        self._begun = time.monotonic()
        print(f"{benchmark}: {', '.join(f'{name} {value}' for name, value in environment().items())}", flush=True)

    def add(self, figure: Figure) -> None:
        """Keep a figure and print it."""
        self.figures.append(figure)
        print(figure, flush=True)

    def write(self, folder: Path = RESULTS) -> Path:
        """Write the figures and what they were measured with as JSON; return where."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.benchmark}.json"
        content = {
            "benchmark": self.benchmark,
            "environment": environment(),
            "seconds": round(time.monotonic() - self._begun, 1),
            "figures": [asdict(figure) | {"verdict": figure.verdict} for figure in self.figures],
        }
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return path


def environment() -> dict[str, str]:
    """Return the versions and the machine that a figure depends on."""
    versions = {package: _version(package) for package in _PACKAGES}
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{package: number for package, number in versions.items() if number},
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.release()}",
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return "source tree" if package == "teffmem" else None


def _cpu() -> str:
    cores = cores_available()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.processor() or platform.machine()}, {cores} cores"
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {cores} cores"


def cores_available() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
