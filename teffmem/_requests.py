"""What a caller asks of a memory, checked at once and independent of the caller's objects from then on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from teffmem._arguments import check_share, check_thread, check_value, duration, lifetime
from teffmem.items import DEFAULT, KEEP, Draft, Keep, Vector
from teffmem.namespace import Namespace, check, check_key
from teffmem.ranking import Mode, Query

__all__ = ["Filter", "NamespaceLike", "PutLike", "PutRequest", "Question", "named"]

Filter = Mapping[str, Any]
NamespaceLike = str | Sequence[str]
PutLike = tuple[NamespaceLike, str, Mapping[str, Any]] | Mapping[str, Any]

_MODES = ("auto", *get_args(Mode))


def named(item: PutLike, top: Namespace) -> tuple[tuple[Namespace, str], dict[str, Any]]:
    """Return the name of an item of ``put_many``, its namespace under ``top``, and the rest of put's arguments.

    Raises:
        TypeError, ValueError: It is no such item, or cannot be so called.
    """
    options: dict[str, Any] = {"ttl": DEFAULT, "text": None, "index": True, "thread": KEEP}
    if isinstance(item, tuple) and len(item) == 3:
        namespace, key, options["value"] = item
    elif isinstance(item, Mapping):
        known = {"namespace", "key", "value", *options}
        if not {"namespace", "key", "value"} <= set(item) <= known:
            raise ValueError(f"an item of put_many needs namespace, key, value, of {sorted(known)}; got {list(item)}")
        options |= item
        namespace, key = options.pop("namespace"), options.pop("key")
    else:
        raise TypeError(f"an item of put_many is (namespace, key, value) or a dict, not {type(item).__name__}")
    return (top + check(namespace), check_key(key)), options


class PutRequest:
    """One memory that is to be stored."""

    def __init__(
        self,
        namespace: Namespace,
        key: str,
        value: object,
        *,
        ttl: object,
        text: object,
        index: object,
        thread: object,
    ) -> None:
        if not isinstance(index, bool):
            raise TypeError(f"index is True or False, not {index!r}")
        self._namespace = namespace
        self._key = key
        self._value, self._text = check_value(value, text, index=index)
        self._is_indexed = index
        self._thread = thread if thread is None or isinstance(thread, Keep) else check_thread(thread)
        lifetime(ttl, None)
        self._ttl = ttl

    @property
    def name(self) -> tuple[Namespace, str]:
        """The namespace and key."""
        return self._namespace, self._key

    @property
    def indexed_text(self) -> str | None:
        """The text that is to be embedded; None if unindexed."""
        if not self._is_indexed:
            return None
        own: str = self._value["text"] if self._text is None else self._text
        return own

    def draft(self, vector: Vector | None, now: float, default_ttl: float | None) -> Draft:
        """Return the draft for the backend."""
        return Draft(
            namespace=self._namespace,
            key=self._key,
            value=self._value,
            now=now,
            text=self._text,
            indexed=self._is_indexed,
            vector=vector,
            thread=self._thread,
            ttl=lifetime(self._ttl, default_ttl),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The options of a search; see `MemoryStore.search`."""

    mode: str
    min_similarity: float | None
    min_coverage: float | None
    recency: float
    recency_half_life: float
    importance: float
    importance_field: str
    diversity: float
    explain: bool

    @classmethod
    def of(
        cls,
        *,
        mode: object,
        min_similarity: object,
        min_coverage: object,
        recency: object,
        recency_half_life: object,
        importance: object,
        importance_field: object,
        diversity: object,
        explain: object,
    ) -> "Question":
        """Check the options.

        Raises:
            TypeError, ValueError: One is of the wrong type, out of its range, or a threshold that the mode has no
                part for.
        """
        if mode not in _MODES:
            raise ValueError(f"mode is one of {', '.join(_MODES)}; not {mode!r}")
        if not isinstance(importance_field, str):
            raise TypeError(f"importance_field is the name of a field, not {type(importance_field).__name__}")
        if min_similarity is not None and mode == "lexical":
            raise ValueError("min_similarity is a cosine, which mode='lexical' does not compute")
        if min_coverage is not None and mode == "semantic":
            raise ValueError("min_coverage is a share of words, which mode='semantic' does not compute")
        return cls(
            mode=str(mode),
            min_similarity=None if min_similarity is None else check_share("min_similarity", min_similarity, -1, 1),
            min_coverage=None if min_coverage is None else check_share("min_coverage", min_coverage, 0, 1),
            recency=check_share("recency", recency, 0, 1e6),
            recency_half_life=duration("recency_half_life", recency_half_life),
            importance=check_share("importance", importance, 0, 1e6),
            importance_field=importance_field,
            diversity=check_share("diversity", diversity, 0, 1),
            explain=bool(explain),
        )

    def needs_embedder(self) -> str | None:
        """Return the option that cannot be had from words alone, or None."""
        if self.mode == "semantic":
            return "mode='semantic'"
        if self.min_similarity is not None:
            return "min_similarity"
        return "diversity" if self.diversity else None

    def needs_ranked(self) -> str | None:
        """Return the option that only a backend with a lexical leg has, or None."""
        options = {
            f"mode={self.mode!r}": self.mode in ("hybrid", "lexical"),
            "min_coverage": self.min_coverage is not None,
            "recency": bool(self.recency),
            "importance": bool(self.importance),
            "diversity": bool(self.diversity),
        }
        return next((name for name, is_asked in options.items() if is_asked), None)

    def query(
        self,
        mode: Mode,
        terms: NDArray[np.uint64],
        vector: Vector | None,
        similarity_range: tuple[float, float] | None,
    ) -> Query:
        """Return what the backend is asked."""
        return Query(
            mode=mode,
            terms=terms,
            vector=vector,
            similarity_range=similarity_range,
            min_similarity=self.min_similarity,
            min_coverage=self.min_coverage,
            recency=self.recency,
            recency_half_life=self.recency_half_life,
            importance=self.importance,
            importance_field=self.importance_field,
            diversity=self.diversity if vector is not None else 0.0,
            explain=self.explain,
        )
