"""How matches are ordered: words and meaning fused, credit for context, then recency, importance and diversity.

Everything here is a pure function of arrays that describe one *scope*: the live, indexed records under the
namespace that is searched, n of them. The fused score of a record i is

    own(i)   = .45 lexical(i) + .65 vector(i) + .4 window(i)
    score(i) = own(i) + .25 (own(i-1) + own(i+1)) + .2 (own(i-2) + own(i+2)) + .3 thread(i)

where i-1, i+1, ... are its neighbours in its thread, a missing one replaced by i itself, and

    lexical  BM25 of the record, divided by the best of the scope or by .4 of the highest that the query allows,
             whichever is more: the best match of a query that nothing answers stays weak
    window   the same of the record and its two neighbours as one text
    thread   BM25 of the record's whole thread as one text among threads, divided by the best thread's, times the
             square of how near the best lexical match comes to half of the highest possible (at most 1)
    vector   the cosine on a fixed scale: 0 at the low end of the embedder's `similarity_range`, 1 at its high end,
             clipped to 0..1.3

Adding normalised scores keeps what either leg alone finds; fixed scales keep the best of many bad matches from
counting as much as a good one; and a turn whose neighbours match is likelier right. The weights were chosen on
five conversations of LoCoMo (Maharana et al., 2024) together with 100 paraphrases, other than those that the
benchmarks measure, and are flat around these values. BM25: Robertson and Zaragoza, 2009, with k1 = 1.2 and b = .4;
the highest that a query allows is (k1 + 1) times the sum of its terms' idf.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from teffmem.items import Vector

__all__ = ["Evidence", "Mode", "Postings", "Query", "Ranking", "Threads", "diversify", "rank", "restrict", "weigh"]

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
Mode = Literal["hybrid", "semantic", "lexical"]

_K1, _B = 1.2, 0.4
_LEXICAL, _VECTOR, _WINDOW, _NEAR, _FAR, _THREAD = 0.45, 0.65, 0.4, 0.25, 0.2, 0.3
_DAMPING, _CONFIDENT = 0.4, 0.5  # shares of the highest score that a query allows
_VECTOR_CEILING = 1.3


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What is asked of a scope.

    Attributes:
        mode: "semantic" orders by cosine, "lexical" by words and their context, "hybrid" by both.
        terms: uint64, distinct term hashes (`text.query_terms`); ignored when semantic.
        vector: float32, unit length (or zeros), ``dim`` long; None leaves meaning out.
        similarity_range: (lo, hi): the cosines of unrelated and of matching texts; None has them estimated.
        min_similarity: Least cosine, or None.
        min_coverage: Least share of the query's idf that a text must hold, or None; of both, one is enough.
        recency: Weight of 0.5 ** (age / recency_half_life).
        recency_half_life: Seconds.
        importance: Weight of the number in ``importance_field``, clipped to 0..1, .5 if missing.
        importance_field: Name of a field of the value.
        diversity: 0..1: how much a match loses for resembling those before it.
        explain: Whether all parts of the score are wanted.
    """

    mode: Mode
    terms: NDArray[np.uint64]
    vector: Vector | None = None
    similarity_range: tuple[float, float] | None = None
    min_similarity: float | None = None
    min_coverage: float | None = None
    recency: float = 0.0
    recency_half_life: float = 30 * 86_400.0
    importance: float = 0.0
    importance_field: str = "importance"
    diversity: float = 0.0
    explain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """Who stands beside whom among n records in c threads.

    Attributes:
        of: int32 (n,): number of each record's thread, 0 to c - 1; a record without one has a thread of its own.
        near: int32 (2, n): the record before and the record after; the record itself where there is none.
        far: int32 (2, n): those two away, likewise.
        window_lengths: float32 (n,): words in each record and its near neighbours.
        lengths: float32 (c,): words in each thread.
        linked: Whether any record has a neighbour.
    """

    of: Integers
    near: Integers
    far: Integers
    window_lengths: Floats
    lengths: Floats
    linked: bool


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Which of n texts hold which of t terms: p pairs, each once.

    Attributes:
        terms: int64 (p,): numbers of terms, 0 to t - 1.
        rows: int64 (p,): numbers of texts, 0 to n - 1.
        counts: float32 (p,): how often the text holds the term.
    """

    terms: NDArray[np.int64]
    rows: NDArray[np.int64]
    counts: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a scope of n records has to say about a query.

    Attributes:
        found: int64 (t,): how many records hold each term of the query.
        postings: The terms of the query in the records.
        lengths: float32 (n,): words a record.
        threads: Who stands beside whom.
        cosines: float32 (n,) in [-1, 1]; None if meaning is left out.
        tolerance: How far a cosine may be from its exact value.
    """

    found: NDArray[np.int64]
    postings: Postings
    lengths: Floats
    threads: Threads
    cosines: Floats | None
    tolerance: float = 0.0


@dataclass(slots=True, eq=False)
class Ranking:
    """The scores of a scope's n records.

    Attributes:
        total: float32 (n,): what orders the records; -inf for one that is no match.
        parts: float32 (n,) each: the parts of the total by name.
        by_cosine: Whether the total is the cosine, so that correcting one corrects the other.
        tolerance: How far the cosines may be from their exact values.
    """

    total: Floats
    parts: dict[str, Floats]
    by_cosine: bool = False
    tolerance: float = 0.0

    def correct(self, rows: NDArray[np.intp], cosines: Floats) -> None:
        """Put exact cosines in the place of approximate ones."""
        semantic = self.parts["semantic"]
        if self.by_cosine:
            self.total[rows] += cosines - semantic[rows]
        semantic[rows] = cosines

    def candidates(self, count: int) -> NDArray[np.intp]:
        """Return rows, in no order, among which the ``count`` best matches are, whatever the tolerance hides."""
        if count >= len(self.total):
            return np.flatnonzero(self.total > -np.inf)
        least = np.partition(self.total, len(self.total) - count)[len(self.total) - count]
        slack = 2 * self.tolerance if self.by_cosine else 0.0
        return np.flatnonzero(self.total >= max(least - np.float32(slack), np.finfo(np.float32).min))

    def ordered(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the rows best first. The later row wins a tie: rows stand in the order of their stamps."""
        return rows[np.lexsort((-rows, -self.total[rows]))]

    def scores(self, rows: NDArray[np.intp]) -> list[dict[str, float]]:
        """Return the parts of some records' scores."""
        columns = [part[rows].tolist() for part in self.parts.values()]
        return [dict(zip(self.parts, row, strict=True)) for row in zip(*columns, strict=True)]


def rank(evidence: Evidence, query: Query) -> Ranking:
    """Score every record of a scope by meaning, or by words, meaning and context; the module's text has the formula."""
    cosines = evidence.cosines
    if query.mode == "semantic":
        if cosines is None:
            raise ValueError("a semantic ranking needs cosines")
        return Ranking(cosines.copy(), {"semantic": cosines}, by_cosine=True, tolerance=evidence.tolerance)
    lexical = _lexical(evidence)
    own = _LEXICAL * lexical.record + _WINDOW * lexical.window
    parts = {"coverage": lexical.coverage, "lexical": lexical.record}
    if cosines is not None:
        parts["semantic"] = cosines
        own += _VECTOR * _on_scale(cosines, query.similarity_range or (0.0, 1.0))
    neighbours = _neighbours(own, evidence.threads)
    context = neighbours + _THREAD * lexical.thread
    parts["context"] = context
    if query.explain:
        parts |= {"own": own, "window": lexical.window, "neighbours": neighbours, "thread": lexical.thread}
    total = own + context
    if cosines is None:
        total[total <= 0] = -np.inf
    return Ranking(total, parts, tolerance=evidence.tolerance)


def _on_scale(cosines: Floats, similarity_range: tuple[float, float]) -> Floats:
    low, high = similarity_range
    scaled: Floats = np.clip((cosines - np.float32(low)) / np.float32(high - low), 0, _VECTOR_CEILING)
    return scaled


def _neighbours(own: Floats, threads: Threads) -> Floats:
    if not threads.linked:
        alone: Floats = own * np.float32(2 * (_NEAR + _FAR))
        return alone
    credit: Floats = _NEAR * own[threads.near].sum(axis=0) + _FAR * own[threads.far].sum(axis=0)
    return credit


@dataclass(frozen=True, slots=True, eq=False)
class _Lexical:
    """The lexical scores of n records, each float32 (n,)."""

    record: Floats
    window: Floats
    thread: Floats
    coverage: Floats


def _lexical(evidence: Evidence) -> _Lexical:
    postings, lengths, threads = evidence.postings, evidence.lengths, evidence.threads
    idf = _idf(evidence.found, len(lengths))
    ideal = max(float(idf.sum()), 1e-9)
    highest = (_K1 + 1) * ideal

    record = window = thread = _bm25(postings, lengths, idf)
    if threads.linked:
        window = _bm25(_in_windows(postings, threads), threads.window_lengths, idf)
        by_thread = _in_threads(postings, threads)
        holding = np.bincount(by_thread.terms, minlength=len(idf))
        thread = _bm25(by_thread, threads.lengths, _idf(holding, len(threads.lengths)))[threads.of]
    best = _best(record)
    confidence = min(1.0, best / (_CONFIDENT * highest)) ** 2
    return _Lexical(
        record=record * np.float32(1 / max(best, _DAMPING * highest)),
        window=window * np.float32(1 / max(_best(window), _DAMPING * highest)),
        thread=thread * np.float32(confidence / max(_best(thread), 1e-9)),
        coverage=_sums(postings.rows, idf[postings.terms], len(lengths)) * np.float32(1 / ideal),
    )


def _idf(found: NDArray[np.int64], n: int) -> Floats:
    """Return the weight of terms of which ``found`` of n texts hold each."""
    idf: Floats = np.log1p((n - found + 0.5) / (found + 0.5)).astype(np.float32)
    return idf


def _bm25(postings: Postings, lengths: Floats, idf: Floats) -> Floats:
    """Return the BM25 scores of n texts with these lengths, float32 (n,)."""
    if not len(lengths):
        return lengths
    average = max(float(np.add.reduce(lengths)) / len(lengths), 1.0)
    norm = np.float32(_K1 * (1 - _B)) + np.float32(_K1 * _B / average) * lengths
    counts = postings.counts
    weights = idf[postings.terms] * counts * np.float32(_K1 + 1) / (counts + norm[postings.rows])
    return _sums(postings.rows, weights, len(lengths))


def _sums(rows: NDArray[np.int64], weights: NDArray[np.floating], n: int) -> Floats:
    return np.bincount(rows, weights, n).astype(np.float32)


def _best(scores: Floats) -> float:
    return float(scores.max(initial=0.0))


def _in_windows(postings: Postings, threads: Threads) -> Postings:
    """Return the postings of each record with its near neighbours as one text."""
    before, after = threads.near[:, postings.rows]
    has_before, has_after = before != postings.rows, after != postings.rows
    return _merged(
        Postings(
            np.concatenate((postings.terms, postings.terms[has_before], postings.terms[has_after])),
            np.concatenate((postings.rows, before[has_before], after[has_after])),
            np.concatenate((postings.counts, postings.counts[has_before], postings.counts[has_after])),
        ),
        len(threads.of),
    )


def _in_threads(postings: Postings, threads: Threads) -> Postings:
    """Return the postings of each thread as one text."""
    of = threads.of[postings.rows].astype(np.int64)
    return _merged(Postings(postings.terms, of, postings.counts), len(threads.lengths))


def _merged(postings: Postings, n: int) -> Postings:
    """Return postings in which each pair of term and text, of n texts, comes once, its counts summed."""
    totals = np.bincount(postings.terms * n + postings.rows, postings.counts)
    pairs = np.flatnonzero(totals)
    terms = pairs // max(n, 1)
    return Postings(terms, pairs - terms * n, totals[pairs].astype(np.float32))


def weigh(ranking: Ranking, query: Query, ages: NDArray[np.float64], importances: Floats | None) -> None:
    """Add to the total what the query gives for recency and importance.

    Args:
        ages: float64 (n,): seconds since each record's last put.
        importances: float32 (n,), clipped to 0..1; None if importance has no weight.
    """
    if query.recency:
        halvings = np.maximum(ages, 0.0) / query.recency_half_life
        ranking.parts["recency"] = np.exp2(-halvings).astype(np.float32)
        ranking.total += np.float32(query.recency) * ranking.parts["recency"]
    if importances is not None:
        ranking.parts["importance"] = importances
        ranking.total += np.float32(query.importance) * importances


def restrict(ranking: Ranking, query: Query) -> None:
    """Take out what meets none of the query's thresholds; without thresholds everything stays."""
    thresholds = {"semantic": query.min_similarity, "coverage": query.min_coverage}
    asked = {part: least for part, least in thresholds.items() if least is not None}
    if asked:
        passes = np.zeros(len(ranking.total), np.bool_)
        for part in asked.keys() & ranking.parts.keys():  # a question without a vector has no cosines
            passes |= ranking.parts[part] >= np.float32(asked[part])
        ranking.total[~passes] = -np.inf


def diversify(totals: Floats, vectors: Floats, diversity: float) -> list[int]:
    """Return the order in which matches follow each other if each loses for resembling those before it.

    Maximal marginal relevance (Carbonell and Goldstein, 1998): next comes the match with the highest
    (1 - diversity) total / best total - diversity x its greatest cosine with one already taken.

    Args:
        totals: float32 (m,), best first.
        vectors: float32 (m, dim), of unit length.
        diversity: 0..1.
    """
    if not len(totals):
        return []
    relevance = (1 - diversity) * totals / max(abs(float(totals[0])), 1e-9)
    resemblance = np.full(len(totals), -1.0, np.float32)
    order = [0]
    left = np.ones(len(totals), np.bool_)
    left[0] = False
    while left.any():
        resemblance = np.maximum(resemblance, vectors @ vectors[order[-1]])
        order.append(int(np.argmax(np.where(left, relevance - diversity * resemblance, -np.inf))))
        left[order[-1]] = False
    return order
