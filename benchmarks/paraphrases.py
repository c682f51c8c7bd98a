"""Does meaning alone find a fact? 100 facts, one question each that shares no stem with its fact.

The pairs (``paraphrases.jsonl``) were written before anything was measured. They are stored without threads, among
360 turns of LoCoMo chats with theirs, in one namespace, under the defaults of `MemoryStore`. ``any@k`` is the
share of questions whose fact is among the first k.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import locomo
from benchmarks.measure import Figure, Report
from teffmem import MemoryStore
from teffmem.text import stems

__all__ = ["PAIRS", "Pair", "read", "recall"]

PAIRS = Path(__file__).with_name("paraphrases.jsonl")

_CUTS = (1, 3, 10)
_TURNS = 360
_AT_LEAST = {3: 0.75}
_NAMESPACE = ("paraphrases",)


@dataclass(frozen=True, slots=True)
class Pair:
    """A fact, and a question that asks for it in other words."""

    fact: str
    question: str


def read(path: Path = PAIRS) -> list[Pair]:
    """Return the pairs of a file.

    Raises:
        ValueError: A question shares a stem with its fact, so that words could find it; or a fact is there twice.
    """
    with path.open(encoding="utf-8") as file:
        pairs = [Pair(**json.loads(line)) for line in file]
    for number, pair in enumerate(pairs, 1):
        if shared := stems(pair.fact) & stems(pair.question):
            raise ValueError(f"{path.name}, line {number}: fact and question share {sorted(shared)}")
    if len({pair.fact for pair in pairs}) < len(pairs):
        raise ValueError(f"{path.name}: a fact is there twice, and only one of them could be found")
    return pairs


async def recall(report: Report, data: Path) -> None:
    """Measure how many questions find their fact, with LoCoMo's turns from ``data`` around them."""
    pairs = read()
    facts = [{"namespace": _NAMESPACE, "key": f"fact {n}", "value": {"text": p.fact}} for n, p in enumerate(pairs)]
    with tempfile.TemporaryDirectory() as folder:
        async with MemoryStore.open(Path(folder) / "paraphrases.db") as memory:
            await memory.put_many([*_turns(data), *facts])
            ranks = [await _rank(memory, f"fact {n}", pair) for n, pair in enumerate(pairs)]
    for k in _CUTS:
        share = sum(rank < k for rank in ranks) / len(ranks)
        report.add(
            Figure(f"paraphrases: any@{k}", share, "share", at_least=_AT_LEAST.get(k), note=f"{len(ranks)} facts")
        )


async def _rank(memory: MemoryStore, key: str, pair: Pair) -> int:
    found = await memory.search(_NAMESPACE, query=pair.question, k=max(_CUTS))
    return next((rank for rank, match in enumerate(found) if match.key == key), max(_CUTS))


def _turns(data: Path) -> list[dict[str, Any]]:
    """Return the first turns of each conversation, equally many of each, as items of the one namespace."""
    folders = locomo.conversations(data)
    each = -(-_TURNS // len(folders))
    turns = [(folder.name, turn) for folder in folders for turn in locomo.read_items(folder)[:each]]
    return [
        turn | {"namespace": _NAMESPACE, "key": f"{name} {turn['key']}", "thread": f"{name} {turn['thread']}"}
        for name, turn in turns[:_TURNS]
    ]
