"""Does a question find the turns of a long chat that answer it? LoCoMo: conversation, questions, evidence.

The data is not part of the project; its folder is given by ``--data``, a folder a conversation in it. As a command of
its own (``python -m benchmarks.locomo``) this writes the conversations as JSON Lines for ``teffmem import``.

``frac@k`` is the share of a question's evidence among the first k, averaged; ``any@k`` the share of questions with
some of their evidence there. Each conversation is a namespace, each of its sessions a thread; everything else is
the default of `MemoryStore`.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, Report
from teffmem import MemoryStore

__all__ = ["Question", "conversations", "item", "read_items", "read_questions", "recall", "write_items"]

CUTS = (5, 10, 20)
_ADVERSARIAL = 5
_LIMITS = {"default": (0.765, 0.83), "words": (0.725, 0.80)}  # frac@10, any@10 of categories 1-4


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation.

    Attributes:
        text: What is asked.
        category: 1 multi-hop, 2 temporal, 3 open domain, 4 single hop, 5 adversarial.
        evidence: Keys of the turns that answer it.
    """

    text: str
    category: int
    evidence: frozenset[str]


def conversations(data: Path) -> list[Path]:
    """Return the folders of the conversations, by name."""
    folders = sorted(path.parent for path in data.glob("*/corpus.jsonl"))
    if not folders:
        raise SystemExit(f"{data}: no conversations there; --data takes the folder that holds one folder each")
    return folders


def item(conversation: str, turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn as one item for `MemoryStore.put_many` or, as a line, for ``teffmem import``."""
    caption = f" [{turn['caption']}]" if turn.get("caption") else ""
    text = f"{turn['speaker']}: {turn['text']}{caption}"
    value = {"text": text, "speaker": turn["speaker"], "date": turn["date"]}
    return {"namespace": [conversation], "key": turn["id"], "value": value, "thread": str(turn["session"])}


def read_items(folder: Path) -> list[dict[str, Any]]:
    """Return the turns of one conversation as items, in order."""
    return [item(folder.name, turn) for turn in _lines(folder / "corpus.jsonl")]


def read_questions(folder: Path) -> list[Question]:
    """Return the questions about one conversation."""
    lines = _lines(folder / "queries.jsonl")
    return [Question(line["query"], line["category"], frozenset(line["relevant"])) for line in lines]


def write_items(data: Path, out: Path) -> list[Path]:
    """Write each conversation as JSON Lines of items to a file of its own; return the files."""
    out.mkdir(parents=True, exist_ok=True)
    return [_write(out / f"{folder.name}.jsonl", read_items(folder)) for folder in conversations(data)]


async def recall(report: Report, data: Path) -> None:
    """Measure the default store and the one without an embedder."""
    await _measure(report, data, "default", {})
    await _measure(report, data, "words", {"embedder": None})


async def _measure(report: Report, data: Path, name: str, options: dict[str, Any]) -> None:
    ranked: list[tuple[Question, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with MemoryStore.open(Path(folder) / "locomo.db", **options) as memory:
            for conversation in conversations(data):
                await memory.put_many(read_items(conversation))
                ranked += [(q, await _search(memory, conversation.name, q)) for q in read_questions(conversation)]
    answerable = [pair for pair in ranked if pair[0].category != _ADVERSARIAL]
    _report(report, f"LoCoMo, {name}, categories 1-4", answerable, _LIMITS[name])
    _report(report, f"LoCoMo, {name}, all", ranked, (None, None))


async def _search(memory: MemoryStore, conversation: str, question: Question) -> list[str]:
    found = await memory.search((conversation,), query=question.text, k=max(CUTS))
    return [match.key for match in found]


def _report(
    report: Report, name: str, ranked: Sequence[tuple[Question, list[str]]], limits: tuple[float | None, float | None]
) -> None:
    for k in CUTS:
        shares = [len(q.evidence.intersection(keys[:k])) / len(q.evidence) for q, keys in ranked]
        frac, any_ = sum(shares) / len(shares), sum(map(bool, shares)) / len(shares)
        least = limits if k == 10 else (None, None)
        note = f"{len(ranked)} questions"
        report.add(Figure(f"{name}: frac@{k}", frac, "share", at_least=least[0], note=note))
        report.add(Figure(f"{name}: any@{k}", any_, "share", at_least=least[1], note=note))


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description="Write LoCoMo as items.")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds one folder a conversation")
    parser.add_argument("--out", type=Path, required=True, help="where one .jsonl a conversation goes")
    arguments = parser.parse_args()
    for written in write_items(arguments.data, arguments.out):
        print(written)
