"""The ranking once more, from the text of `teffmem.ranking`: slow, in plain Python, one record after another."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from teffmem.items import Record, Vector
from teffmem.ranking import Query
from teffmem.text import analyse, unpack

__all__ = ["Document", "reference_scores"]

_K1, _B = 1.2, 0.4
_DAMPING = 0.4  # of the highest BM25: from there on a match counts in full
_CONFIDENT = 0.5  # of the highest BM25: from there on a thread counts in full


@dataclass(frozen=True, eq=False)
class Document:
    """A live, indexed record with the vector that it was written with."""

    record: Record
    vector: Vector | None

    @property
    def thread(self) -> tuple[Any, ...]:
        """What it shares with the records of its thread, and no other."""
        if self.record.thread is None:
            return (self.record.namespace, None, self.record.key)
        return (self.record.namespace, self.record.thread)


class _Text:
    """Counts of terms, and how many words."""

    def __init__(self, counts: Counter[int], length: float) -> None:
        self.counts = counts
        self.length = length

    def __add__(self, other: "_Text") -> "_Text":
        return _Text(self.counts + other.counts, self.length + other.length)


def reference_scores(documents: Sequence[Document], query: Query, now: float) -> list[dict[str, float] | None]:
    """Return the parts of each document's score, and their sum as "score"; None for one that is no match.

    Args:
        documents: All live, indexed records of the scope.
        query: With a ``similarity_range``; diversity is left aside.
        now: Unix seconds.
    """
    words = [_text(document) for document in documents]
    parts = [dict[str, float]() for _ in documents]
    if query.vector is not None:
        for part, document in zip(parts, documents, strict=True):
            part["semantic"] = _cosine(document.vector, query.vector)
    by_cosine = query.mode == "semantic"
    fused = [part["semantic"] for part in parts] if by_cosine else _fused(documents, words, query, parts)
    return [
        _finished(document.record, part, score, query, now)
        for document, part, score in zip(documents, parts, fused, strict=True)
    ]


def _fused(
    documents: Sequence[Document], words: list[_Text], query: Query, parts: list[dict[str, float]]
) -> list[float]:
    beside = [_beside(documents, i) for i in range(len(documents))]
    own = []
    for part, legs in zip(parts, _lexical_legs(documents, words, beside, query), strict=True):
        part |= legs
        vector = _on_scale(part["semantic"], query) if "semantic" in part else 0.0
        own.append(0.45 * part["lexical"] + 0.65 * vector + 0.4 * part["window"])
    for i, part in enumerate(parts):
        before2, before, after, after2 = (own[i if j is None else j] for j in beside[i])
        part["own"] = own[i]
        part["neighbours"] = 0.25 * (before + after) + 0.2 * (before2 + after2)
        part["context"] = part["neighbours"] + 0.3 * part["thread"]
    return [part["own"] + part["context"] for part in parts]


def _lexical_legs(
    documents: Sequence[Document], words: list[_Text], beside: list[list[int | None]], query: Query
) -> list[dict[str, float]]:
    terms = query.terms.tolist()
    idf = _idfs(terms, words)
    total_idf = max(sum(idf.values()), 1e-9)
    highest = (_K1 + 1) * total_idf
    enough = _DAMPING * highest

    windows = [sum((words[j] for j in beside[i][1:3] if j is not None), text) for i, text in enumerate(words)]
    threads: dict[tuple[Any, ...], _Text] = {}
    for document, text in zip(documents, words, strict=True):
        threads[document.thread] = threads.get(document.thread, _Text(Counter(), 0)) + text

    record = _bm25(words, idf)
    window = _bm25(windows, idf)
    whole = list(threads.values())
    thread = dict(zip(threads, _bm25(whole, _idfs(terms, whole)), strict=True))
    confidence = min(1.0, max(record, default=0.0) / (_CONFIDENT * highest)) ** 2 / max(*thread.values(), 1e-9)
    return [
        {
            "coverage": sum(idf[term] for term in terms if term in text.counts) / total_idf,
            "lexical": record[i] / max(*record, enough),
            "window": window[i] / max(*window, enough),
            "thread": thread[documents[i].thread] * confidence,
        }
        for i, text in enumerate(words)
    ]


def _bm25(texts: list[_Text], idf: dict[int, float]) -> list[float]:
    average = max(sum(text.length for text in texts) / len(texts), 1.0)
    return [
        sum(
            weight * text.counts[term] * (_K1 + 1) / (text.counts[term] + _K1 * (1 - _B + _B * text.length / average))
            for term, weight in idf.items()
        )
        for text in texts
    ]


def _idfs(terms: list[int], texts: list[_Text]) -> dict[int, float]:
    return {term: _idf(len(texts), sum(term in text.counts for text in texts)) for term in terms}


def _idf(total: int, found: int) -> float:
    return math.log(1 + (total - found + 0.5) / (found + 0.5))


def _beside(documents: Sequence[Document], i: int) -> list[int | None]:
    """Return the numbers of the documents two before, one before, one after and two after in the same thread."""
    thread = documents[i].thread
    turns = sorted((d.record.place, j) for j, d in enumerate(documents) if d.thread == thread)
    at = turns.index((documents[i].record.place, i))
    return [turns[at + step][1] if 0 <= at + step < len(turns) else None for step in (-2, -1, 1, 2)]


def _finished(
    record: Record, part: dict[str, float], score: float, query: Query, now: float
) -> dict[str, float] | None:
    asked = (("semantic", query.min_similarity), ("coverage", query.min_coverage))
    thresholds = [part.get(name, -math.inf) >= least for name, least in asked if least is not None]
    if (query.mode == "lexical" and score <= 0) or (thresholds and not any(thresholds)):
        return None
    if query.recency:
        part["recency"] = 0.5 ** (max(now - record.updated_at, 0.0) / query.recency_half_life)
        score += query.recency * part["recency"]
    if query.importance:
        part["importance"] = _importance(record.value.get(query.importance_field))
        score += query.importance * part["importance"]
    return part | {"score": score}


def _importance(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return 0.5
    return float(min(max(given, 0), 1))


def _on_scale(cosine: float, query: Query) -> float:
    low, high = query.similarity_range or (0.0, 1.0)
    return min(max((cosine - low) / (high - low), 0.0), 1.3)


def _cosine(vector: Vector | None, query: Vector) -> float:
    return 0.0 if vector is None else float(np.dot(vector.astype(np.float64), query.astype(np.float64)))


def _text(document: Document) -> _Text:
    terms = analyse(document.record.indexed_text or "")
    hashes, counts = unpack(terms.packed)
    return _Text(Counter(dict(zip(hashes.tolist(), counts.tolist(), strict=True))), terms.length)
