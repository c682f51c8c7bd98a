"""The command line: ``python -m benchmarks <name>``; ``all`` runs each in a process of its own, ``plot`` draws."""

import argparse
import asyncio
import importlib
import subprocess
import sys
from pathlib import Path

__all__ = ["main"]

_ROOT = Path(__file__).parents[1]
_NAMES = ("latency", "ingest", "growth", "loop_lag", "recall")


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=(*_NAMES, "all", "plot"))
    parser.add_argument("--data", type=Path, help="folder of the LoCoMo conversations; recall needs it")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000], help="items in a file")
    parser.add_argument("--runs", type=int, default=5, help="runs that the medians are over")
    parser.add_argument(
        "--cache", type=Path, default=_ROOT / ".cache" / "benchmarks", help="where large files are kept"
    )
    options = parser.parse_args()
    if options.name in ("recall", "all") and options.data is None:
        parser.error("recall needs --data, the folder of the LoCoMo conversations; see benchmarks/README.md")
    if options.name == "all":
        _run_all(sys.argv[2:])
    elif options.name == "plot":
        importlib.import_module("benchmarks.plot").draw()
    else:
        report = asyncio.run(importlib.import_module(f"benchmarks.{options.name}").run(options))
        print(f"written: {report.write().relative_to(_ROOT)}")


def _run_all(arguments: list[str]) -> None:
    """Run each in a process of its own, so that none inherits another's memory or caches."""
    for name in _NAMES:
        subprocess.run([sys.executable, "-m", "benchmarks", name, *arguments], cwd=_ROOT, check=True)


if __name__ == "__main__":
    main()
