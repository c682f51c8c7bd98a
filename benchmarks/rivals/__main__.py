"""Runs every memory through the same work and prints one table: ``python -m benchmarks.rivals``.

The rivals get an environment of their own under the cache folder, made on the first run from ``requirements.txt``;
teffmem runs in the environment that this is started from. Each memory has a process to itself, one after another.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment

__all__ = ["main"]

_ROOT = Path(__file__).parents[2]
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_OURS = "teffmem_sqlite"
_RIVALS = ("langgraph_memory", "chroma", "lance", "teff_sqlite")
_SIZES = (100, 1_000, 10_000)
_HEAD = ("memory", "items", "put_many/s", "search p50/p95 ms", "right", "put p50/p95 ms", "durable", "reopen ms", "MB")
_ROW = "{:<17} {:>7} {:>11} {:>18} {:>6} {:>17} {:>8} {:>10} {:>8}  {}"


def main() -> None:
    """Measure what the command line names, print the table, write ``results/rivals.json``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[_OURS, *_RIVALS], choices=[_OURS, *_RIVALS])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(_SIZES), help="items stored; multiples of 100")
    parser.add_argument("--cache", type=Path, default=_ROOT / ".cache", help="where the rivals' environment goes")
    options = parser.parse_args()
    python = _environment(options.cache) if set(options.only) & set(_RIVALS) else Path(sys.executable)
    print(_ROW.format(*_HEAD, "remark"))
    rows = []
    for count in options.sizes:
        for name in options.only:
            rows.append(_measure(name, count, Path(sys.executable) if name == _OURS else python))
            print(_line(rows[-1]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    content = {"benchmark": "rivals", "environment": environment(), "rows": rows}
    (RESULTS / "rivals.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _environment(cache: Path) -> Path:
    """Return the Python of the rivals' environment; make it if it is not there for these requirements."""
    mark = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = cache / f"rivals-{mark}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "complete"
    if not done.exists():
        print(f"making the rivals' environment from {_REQUIREMENTS.name}; this takes a few minutes", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", _REQUIREMENTS], check=True)
        done.touch()
    return python


def _measure(name: str, count: int, python: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        row = {"memory": name, "items": count, **_run(python, name, count, folder)}
        if row["durable"] != "nothing":
            row |= _run(python, name, count, folder, "--reopen")
    return row


def _run(python: Path, name: str, count: int, *arguments: str) -> dict[str, Any]:
    command = [str(python), "-m", "benchmarks.rivals.work", name, str(count), *arguments]
    done = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _line(row: dict[str, Any]) -> str:
    search, put = (f"{row[part]['p50']:.2f}/{row[part]['p95']:.2f}" for part in ("search", "put"))
    reopened = f"{row['reopen_ms']:.0f}" if "reopen_ms" in row else "-"
    rate, right, size = f"{row['put_many_per_second']:,.0f}", f"{row['right']:.3f}", f"{row['megabytes']:.1f}"
    cells = (row["memory"], f"{row['items']:,}", rate, search, right, put, row["durable"], reopened, size)
    return _ROW.format(*cells, row["remark"])


if __name__ == "__main__":
    main()
