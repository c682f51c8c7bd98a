"""MemoryStore: where text, vector, backend and ranking meet.

A put checks its arguments, takes its turn, has its text embedded, and hands a draft to the backend. A search has its
question embedded and analysed, lets the backend rank the scope, and turns matches into items.
"""

import builtins
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from teffmem import _transfer as transfer
from teffmem import filters, ranking
from teffmem._arguments import check_count, check_keys, check_value, duration
from teffmem._engine import Engine
from teffmem._opening import Opening
from teffmem._ordering import Turn
from teffmem._pieces import in_pieces
from teffmem._requests import Filter, NamespaceLike, PutLike, PutRequest, Question, named
from teffmem.config import default_embedder, embedder_from_config, store_from_config
from teffmem.errors import UnsupportedError
from teffmem.items import DEFAULT, KEEP, Default, Draft, Keep, Match, MemoryItem, Record, Value
from teffmem.namespace import Namespace, check, check_key, matches
from teffmem.protocols import Selection, VectorStore
from teffmem.text import is_blank, query_terms

__all__ = ["MemoryStore", "ScopedMemory", "memory_from_config"]

SearchMode = Literal["auto", "hybrid", "semantic", "lexical"]

_PAGE = 500
_NO_TERMS = np.empty(0, np.uint64)


class _Memory:
    """The methods of a memory, with namespaces relative to a top."""

    def __init__(self, engine: Engine, top: Namespace) -> None:
        self._engine = engine
        self._top = top

    async def put(
        self,
        namespace: NamespaceLike,
        key: str,
        value: Mapping[str, Any],
        *,
        ttl: float | timedelta | Default | None = DEFAULT,
        text: str | None = None,
        index: bool = True,
        thread: str | Keep | None = KEEP,
    ) -> MemoryItem:
        """Store a value under a key, over whatever is there.

        Args:
            namespace: Where it lives: a tuple or list of strings; a bare string is one segment.
            key: Its name there.
            value: A JSON object with a ``"text"``, which is what searches look at.
            ttl: Seconds (or timedelta) until it expires; None for never; left out: the store's own.
            text: Text to index instead of the value's.
            index: False stores it without a vector and words: get, filters and newest-first still find it.
            thread: The conversation or document it is one turn of; left out: as before; None: of none.

        Returns:
            The item as it is stored; ``created_at`` stays that of the first put.

        Raises:
            TypeError, ValueError: An argument cannot be stored; nothing has changed.
            EmbedderMismatchError: The store's vectors come from another embedder.
            ProviderError: Embedding failed; nothing has changed.
            StoreError: The backend failed.
        """
        at, key = self._at(namespace), check_key(key)
        request = PutRequest(at, key, value, ttl=ttl, text=text, index=index, thread=thread)
        with self._engine.call(), self._engine.order.names([request.name]) as turn:
            vectors = await self._engine.embed([request.indexed_text])
            await turn.arrive()
            now = self._engine.now()
            records = await self._engine.store.upsert([request.draft(vectors[0], now, self._engine.ttl)], now)
        return next(self._item(record) for record in records if record is not None)

    async def put_many(self, items: Iterable[PutLike]) -> builtins.list[MemoryItem]:
        """Store many values at once: all of them, or none.

        Args:
            items: ``(namespace, key, value)`` tuples, or dicts with `put`'s argument names. Of a key that comes twice
                the last wins.

        Returns:
            The items in the order given.

        Raises:
            PartialWriteError: A backend without transactions failed on the way. Otherwise as `put`.
        """
        asked = [named(item, self._top) for item in items]  # all their names at once: they take their turn now
        with self._engine.call(), self._engine.order.names(name for name, _ in asked) as turn:
            requests = await in_pieces(lambda one: PutRequest(*one[0], **one[1]), asked)
            return await self._put(requests, turn) if requests else []

    async def update(self, namespace: NamespaceLike, key: str, changes: Mapping[str, Any]) -> MemoryItem | None:
        """Merge fields into a value, leaving its times of creation and expiry, its thread and its index state.

        The text is embedded again only if it changed. An item that was put with ``text=`` keeps that text.

        Returns:
            The new item; None where there is none.
        """
        at, key = self._at(namespace), check_key(key)
        changed, _ = check_value(changes, None, index=False)
        with self._engine.call(), self._engine.order.names([(at, key)]) as turn:
            await turn.arrive()
            return await self._update(at, key, changed)

    async def get(self, namespace: NamespaceLike, key: str) -> MemoryItem | None:
        """Return the item with this key in exactly this namespace; None where there is none."""
        return (await self.get_many(namespace, [key]))[0]

    async def get_many(self, namespace: NamespaceLike, keys: Sequence[str]) -> builtins.list[MemoryItem | None]:
        """Return the item of each key, in the order of the keys; None for one that is not there."""
        at, names = self._at(namespace), check_keys(keys)
        with self._engine.call():
            now = self._engine.now()
            records = await self._engine.store.get(at, names, now) if names else []
            touched = await self._engine.touch(records, now)
            return [None if record is None else self._item(record) for record in touched]

    async def search(
        self,
        namespace: NamespaceLike,
        *,
        query: str | None = None,
        k: int = 10,
        filter: Filter | None = None,  # noqa: A002 - the field's word
        mode: SearchMode = "auto",
        min_similarity: float | None = None,
        min_coverage: float | None = None,
        offset: int = 0,
        recency: float = 0.0,
        recency_half_life: float | timedelta = timedelta(days=30),
        importance: float = 0.0,
        importance_field: str = "importance",
        diversity: float = 0.0,
        explain: bool = False,
    ) -> builtins.list[MemoryItem]:
        """Find what a question is about, in a namespace and everything below it.

        Args:
            namespace: The scope; ``()`` is everything.
            query: The question. None or blank: newest first.
            k: How many at most.
            filter: Conditions on fields of the value, see `teffmem.filters`.
            mode: "hybrid" by words and meaning, "semantic" by meaning, "lexical" by words; "auto" is hybrid where the
                backend has words, else semantic. Without an embedder, words answer.
            min_similarity: Least cosine, -1..1.
            min_coverage: Least share of the question's weight of words that a text holds, 0..1. Of both
                thresholds, meeting one is enough.
            offset: How many of the best to leave out.
            recency: Weight of ``0.5 ** (age / recency_half_life)``, added to the score.
            recency_half_life: Seconds or timedelta since the last put after which that halves.
            importance: Weight of the number in ``importance_field`` (clipped to 0..1, .5 if missing).
            importance_field: Name of that field of the value.
            diversity: 0..1: how much an item loses for resembling those before it.
            explain: True adds all parts of the score to ``scores``: "own", "window", "neighbours", "thread".

        Returns:
            Items, best first. ``score`` orders them; ``scores`` has its parts: "semantic" (cosine), "coverage" (0..1),
            "lexical", "context", "recency", "importance", those that the mode computes.

        Raises:
            FilterError: The filter has no meaning.
            UnsupportedError: The mode, or a weight, is not to be had with this backend or without an embedder.
            EmbedderMismatchError: The store's vectors come from another embedder.
        """
        selection = self._selection(namespace, filter)
        k, offset = check_count("k", k), check_count("offset", offset)
        if query is not None and not isinstance(query, str):
            raise TypeError(f"query is a string or None, not {type(query).__name__}")
        asked = Question.of(
            mode=mode,
            min_similarity=min_similarity,
            min_coverage=min_coverage,
            recency=recency,
            recency_half_life=recency_half_life,
            importance=importance,
            importance_field=importance_field,
            diversity=diversity,
            explain=explain,
        )
        self._admit(asked)
        with self._engine.call():
            if not k:
                return []
            if query is None or is_blank(query):
                found = await self._engine.ordered().newest(selection, k, offset=offset)
                return await in_pieces(self._item, await self._engine.touch(found, selection.now))
            matched = await self._find(selection, query, asked, k, offset)
            records = await self._engine.touch([match.record for match in matched], selection.now)
            return await in_pieces(lambda both: self._item(*both), builtins.list(zip(records, matched, strict=True)))

    async def items(
        self,
        namespace: NamespaceLike,
        *,
        limit: int = 100,
        offset: int = 0,
        filter: Filter | None = None,  # noqa: A002
    ) -> builtins.list[MemoryItem]:
        """Return the items in a namespace and below it, newest first."""
        return await self.search(namespace, k=limit, offset=offset, filter=filter)

    async def iter_items(
        self,
        namespace: NamespaceLike = (),
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[MemoryItem]:
        """Yield every item in a namespace and below it, oldest write first.

        Whatever is there from beginning to end comes; what is written meanwhile comes at the end.
        """
        selection = self._selection(namespace, filter)
        async for record in self._walk(selection):
            yield self._item(record)

    async def list(
        self, namespace: NamespaceLike, limit: int = 100, offset: int = 0, *, recursive: bool = True
    ) -> builtins.list[str]:
        """Return the keys in a namespace, newest first.

        A key can come more than once: once for each namespace below that has it. ``recursive=False`` leaves out
        what is below.
        """
        selection = self._selection(namespace, None, recursive=recursive)
        limit, offset = check_count("limit", limit), check_count("offset", offset)
        with self._engine.call():
            found = await self._engine.ordered().newest(selection, limit, offset=offset)
            return [record.key for record in found]

    async def list_namespaces(
        self,
        prefix: NamespaceLike = (),
        *,
        suffix: NamespaceLike | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> builtins.list[Namespace]:
        """Return the namespaces that hold live items, in code point order.

        Args:
            prefix: What they begin with; ``"*"`` stands for exactly one segment.
            suffix: What they end with, likewise.
            max_depth: Cut longer ones to this many segments; each then comes once.
            limit: How many at most.
            offset: How many of the first to leave out.
        """
        begin, end = check(prefix), () if suffix is None else check(suffix)
        limit, offset = check_count("limit", limit), check_count("offset", offset)
        depth = None if max_depth is None else check_count("max_depth", max_depth)
        literal = begin[: begin.index("*")] if "*" in begin else begin
        with self._engine.call():
            found = await self._engine.store.namespaces(self._top + literal, self._engine.now())
        relative = (namespace[len(self._top) :] for namespace in found)
        fitting = (namespace[:depth] for namespace in relative if matches(namespace, prefix=begin, suffix=end))
        return builtins.list(dict.fromkeys(fitting))[offset : offset + limit]

    async def count(self, namespace: NamespaceLike = (), filter: Filter | None = None) -> int:  # noqa: A002
        """Return how many live items are in a namespace and below it."""
        selection = self._selection(namespace, filter)
        with self._engine.call():
            return await self._engine.store.count(selection)

    async def delete(self, namespace: NamespaceLike, key: str) -> bool:
        """Remove one item; return False where there was none."""
        return await self.delete_many(namespace, [key]) == 1

    async def delete_many(self, namespace: NamespaceLike, keys: Sequence[str]) -> int:
        """Remove items of exactly this namespace; return how many there were. [] removes nothing."""
        at, names = self._at(namespace), check_keys(keys)
        with self._engine.call(), self._engine.order.names((at, name) for name in names) as turn:
            await turn.arrive()
            return await self._engine.store.delete(at, names, self._engine.now()) if names else 0

    async def delete_namespace(
        self, namespace: NamespaceLike, *, dry_run: bool = False, everything: bool = False
    ) -> int:
        """Remove a namespace and everything below it.

        Args:
            namespace: What goes.
            dry_run: True removes nothing, and only counts.
            everything: Must be True where the namespace is ``()``.

        Returns:
            How many live items went, or would go.
        """
        at = self._at(namespace)
        if at == self._top and not everything and not dry_run:
            raise ValueError("delete_namespace(()) removes everything; if that is meant, pass everything=True")
        if dry_run:
            return await self.count(namespace)
        return await self._clear(at, lambda now: self._engine.store.delete_all(Selection(at, now)))

    async def cleanup(self, *, max_age: float | timedelta | None = None, namespace: NamespaceLike = ()) -> int:
        """Remove for good what has expired, and with ``max_age`` what was last put longer ago.

        Args:
            max_age: Seconds or timedelta, above 0; an item exactly that old stays.
            namespace: Where, with everything below.

        Returns:
            How many items went.
        """
        at = self._at(namespace)
        age = None if max_age is None else duration("max_age", max_age)
        store = self._engine.store
        return await self._clear(at, lambda now: store.cleanup(at, now, older_than=None if age is None else now - age))

    def export(self, path: str | Path | None = None, *, namespace: NamespaceLike = ()) -> "transfer.Export":
        """Write every item as a line of JSON: ``await`` it with a path, or ``async for`` over it without.

        Args:
            path: A file, replaced whole once all is written; None for the lines themselves.
            namespace: What to export; lines have namespaces relative to it.

        Returns:
            What to await, for the number of lines, or to iterate over. Vectors are not exported.
        """
        selection = self._selection(namespace, None)
        return transfer.Export(self._walk(selection), len(selection.namespace), path)

    async def import_(
        self,
        path: str | Path,
        *,
        namespace: NamespaceLike = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> transfer.Imported:
        """Read lines of JSON as `export` writes them, and put them under a namespace, keeping their times.

        Every line is checked before the first is written. Where a key is there already, the newer ``updated_at``
        wins, so that an import which broke off can simply be repeated.

        Args:
            path: The file. A line needs "namespace", "key" and "value".
            namespace: Where to put them.
            progress: Called with lines done and lines in all, after each batch.

        Returns:
            Counts: written, older (what was there was as new), expired (skipped).

        Raises:
            ValueError: A line is wrong; the message has its number. Nothing has changed.
        """
        at = self._at(namespace)
        with self._engine.call():
            total = await transfer.check_file(path)
            with self._engine.order.tree(at) as turn:
                await turn.arrive()
                counts = transfer.Imported()
                async for batch in transfer.batches(path):
                    counts += await self._import(batch, at)
                    if progress is not None:
                        progress(counts.total, total)
                return counts

    def scoped(self, namespace: NamespaceLike) -> "ScopedMemory":
        """Return a view of a namespace: its ``()`` is this namespace, and nothing outside can be addressed."""
        return ScopedMemory(self._engine, self._at(namespace))

    async def aclose(self) -> None:
        """Do nothing: what is open is its owner's to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _at(self, namespace: NamespaceLike) -> Namespace:
        return self._top + check(namespace)

    def _selection(self, namespace: NamespaceLike, condition: object, *, recursive: bool = True) -> Selection:
        at = self._at(namespace)
        return Selection(at, self._engine.now(), filters.parse(condition), recursive)

    async def _put(self, requests: builtins.list[PutRequest], turn: Turn) -> builtins.list[MemoryItem]:
        """Embed, then write when the turn has come; of a name that comes twice the last."""
        last = requests if len(requests) == 1 else builtins.list({one.name: one for one in requests}.values())
        vectors = await self._engine.embed([request.indexed_text for request in last])
        await turn.arrive()
        now, ttl = self._engine.now(), self._engine.ttl
        drafts = await in_pieces(lambda pair: pair[0].draft(pair[1], now, ttl), [*zip(last, vectors, strict=True)])
        records = await self._engine.store.upsert(drafts, now)
        if len(last) < len(requests):
            by_name = {request.name: record for request, record in zip(last, records, strict=True)}
            records = [by_name[request.name] for request in requests]
        return await in_pieces(self._item, [record for record in records if record is not None])

    async def _update(self, at: Namespace, key: str, changes: Value) -> MemoryItem | None:
        while True:  # until no other process writes between the read and the write
            now = self._engine.now()
            (record,) = await self._engine.store.get(at, [key], now)
            if record is None:
                return None
            value, _ = check_value(record.value | changes, None, index=record.indexed and record.text is None)
            draft = Draft(
                at,
                key,
                value,
                now,
                text=record.text,
                indexed=record.indexed,
                ttl=record.ttl,
                expires_at=record.expires_at,
                only_over=record.stamp,
                same_text=True,
            )
            (written,) = await self._engine.store.upsert([await self._reindexed(draft, record)], now)
            if written is not None:
                return self._item(written)

    async def _reindexed(self, draft: Draft, record: Record) -> Draft:
        """Return the draft with a new vector if its text is another than the record's."""
        if not record.indexed or record.text is not None or draft.value["text"] == record.value["text"]:
            return draft
        (vector,) = await self._engine.embed([draft.value["text"]])
        return replace(draft, vector=vector, same_text=False)

    def _admit(self, asked: Question) -> None:
        """Refuse what this backend, or a memory without an embedder, cannot compute."""
        if self._engine.ranked is None and (lacking := asked.needs_ranked()):
            backend = type(self._engine.store).__name__
            raise UnsupportedError(f"{lacking} needs a lexical leg, which {backend} does not have")
        if self._engine.given_embedder is None and (lacking := asked.needs_embedder()):
            raise UnsupportedError(f"{lacking} needs vectors, and this memory was opened without an embedder")

    async def _find(
        self, selection: Selection, query: str, asked: Question, k: int, offset: int
    ) -> builtins.list[Match]:
        engine = self._engine
        vector = None if asked.mode == "lexical" else await engine.embed_query(query)
        if engine.ranked is not None:
            mode: ranking.Mode = "lexical" if vector is None else "semantic" if asked.mode == "semantic" else "hybrid"
            terms = query_terms(query) if mode != "semantic" else _NO_TERMS
            given = asked.query(mode, terms, vector, engine.similarity_range)
            return await engine.ranked.rank(selection, given, k, offset=offset)
        if vector is None:
            return []
        found = await engine.store.similar(selection, vector, k, offset=offset)
        return [match for match in found if asked.min_similarity is None or match.score >= asked.min_similarity]

    async def _clear(self, at: Namespace, clear: Callable[[float], Any]) -> int:
        """Run a deletion of a subtree in its turn."""
        with self._engine.call(), self._engine.order.tree(at) as turn:
            await turn.arrive()
            gone: int = await clear(self._engine.now())
            return gone

    async def _walk(self, selection: Selection) -> AsyncIterator[Record]:
        after = 0
        while True:
            with self._engine.call():
                page = await self._engine.ordered().oldest(selection, _PAGE, after=after)
            for record in page:
                yield record
            if not page:
                return
            after = page[-1].stamp

    async def _import(self, lines: builtins.list[transfer.Line], at: Namespace) -> transfer.Imported:
        now = self._engine.now()
        chosen = transfer.newest_of(lines, now)
        vectors = await self._engine.embed([line.indexed_text for line in chosen]) if chosen else []
        pairs = [*zip(chosen, vectors, strict=True)]
        drafts = await in_pieces(lambda pair: pair[0].draft(at, pair[1], now), pairs)
        written = await self._engine.store.upsert(drafts, now) if drafts else []
        done = sum(record is not None for record in written)
        expired = sum(not line.is_live(now) for line in lines)
        return transfer.Imported(written=done, older=len(lines) - expired - done, expired=expired)

    def _item(self, record: Record, match: Match | None = None) -> MemoryItem:
        return MemoryItem(
            key=record.key,
            value=record.value,
            namespace=record.namespace[len(self._top) :],
            created_at=record.created_at,
            updated_at=record.updated_at,
            expires_at=record.expires_at,
            score=None if match is None else match.score,
            scores={} if match is None else match.scores,
            thread=record.thread,
        )


class ScopedMemory(_Memory):
    """A view of one namespace of a memory; see `MemoryStore.scoped`."""

    def __repr__(self) -> str:
        return f"ScopedMemory({self._top!r})"


class MemoryStore(_Memory):
    """Long-term memory over a vector store and an embedder.

    Args:
        store: The backend; this memory closes it.
        embedder: What turns texts into vectors: anything with ``embed``, or a plain function; None for words alone.
        ttl: Seconds (or timedelta) that a memory lives if its put does not say; None for ever.
        refresh_on_read: Whether get, search and items let what they return live for another ttl.
        clock: Returns Unix seconds.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Any,
        *,
        ttl: float | timedelta | None = None,
        refresh_on_read: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        seconds = None if ttl is None else duration("ttl", ttl)
        super().__init__(Engine(store, embedder, ttl=seconds, refresh_on_read=refresh_on_read, clock=clock), ())

    def __repr__(self) -> str:
        return f"MemoryStore({self.store!r}, {self.embedder!r})"

    @staticmethod
    def open(
        location: str | Path | Mapping[str, Any] = "./memory.db",
        *,
        embedder: Any = DEFAULT,
        ttl: float | timedelta | None = None,
        refresh_on_read: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> "Opening[MemoryStore]":
        """Open a memory: ``async with MemoryStore.open() as memory`` or ``memory = await MemoryStore.open()``.

        Args:
            location: A SQLite file; or a dict or URL that picks another backend, see `config.store_from_config`.
            embedder: As in `MemoryStore`; or a dict, see `config.embedder_from_config`; left out: MiniLM, offline.
            ttl: As in `MemoryStore`.
            refresh_on_read: As in `MemoryStore`.
            clock: As in `MemoryStore`.

        Raises:
            MissingExtraError: The default embedder's weights are not installed.
            StoreError: The file cannot be opened.
        """
        made_here = isinstance(embedder, Default | Mapping)
        chosen = default_embedder() if isinstance(embedder, Default) else embedder
        chosen = embedder_from_config(chosen) if isinstance(chosen, Mapping) else chosen
        store = store_from_config(location)
        memory = MemoryStore(store, chosen, ttl=ttl, refresh_on_read=refresh_on_read, clock=clock)
        memory._engine.owns_embedder = made_here
        return Opening(memory, lambda: store.get((), [], 0.0))

    @property
    def store(self) -> VectorStore:
        """The backend."""
        return self._engine.store

    @property
    def embedder(self) -> Any:
        """The embedder, as it was given; None for words alone."""
        return self._engine.given_embedder

    async def aclose(self) -> None:
        """Wait for calls in flight, then close the backend. May be called again."""
        await self._engine.aclose()


def memory_from_config(config: Mapping[str, Any], *, default_ttl: float | timedelta | None = None) -> MemoryStore:
    """Build a memory from a dict: ``{"store": {...}, "embedder": {...} or None, "ttl": seconds}``.

    Args:
        config: "store" as in `config.store_from_config`; "embedder" as in `config.embedder_from_config`, None for words
            alone, left out for the default; "ttl" in seconds.
        default_ttl: Seconds or timedelta, where the dict has no "ttl".

    Raises:
        ValueError: A name is unknown; the message lists those that are known.
    """
    unknown = sorted(set(config) - {"store", "embedder", "ttl"})
    if unknown:
        raise ValueError(f"unknown in a memory's config: {unknown}; known are 'store', 'embedder', 'ttl'")
    if "store" not in config:
        raise ValueError("a memory's config needs 'store', such as {'type': 'sqlite', 'path': './memory.db'}")
    opening = MemoryStore.open(
        config["store"], embedder=config.get("embedder", DEFAULT), ttl=config.get("ttl", default_ttl)
    )
    return opening.memory
