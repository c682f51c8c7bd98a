"""What an adapter does for the comparison; one file each, which imports nothing but its own package."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.workload import Item, TableEmbedder

__all__ = ["Rival"]


class Rival(Protocol):
    """A memory under test.

    Attributes:
        packages: Distributions whose versions belong beside its figures.
        durable: What an acknowledged put survives: "nothing", "process" (its data is with the operating system
            when the put returns) or "power" (it was flushed to the disk, seen in its system calls).
        remark: What a reader of the table must know.
    """

    packages: Sequence[str]
    durable: str
    remark: str

    async def open(self, folder: Path, embedder: TableEmbedder) -> None:
        """Open what is in ``folder``, or begin there; texts are known to ``embedder`` before they are used."""
        ...

    async def put_many(self, items: Sequence[Item]) -> None:
        """Store items by the fastest documented way."""
        ...

    async def put(self, item: Item) -> None:
        """Store one item; when it returns, it is as durable as this memory makes it."""
        ...

    async def search(self, question: Item, k: int) -> list[str]:
        """Return the keys of the ``k`` items nearest to a question in its namespace, best first."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...
