"""`CachingEmbedder`: the same text costs once."""

import asyncio
import logging
import multiprocessing
import os
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teffmem.embedders._lifted import FunctionEmbedder
from teffmem.embedders.caching import CachingEmbedder
from teffmem.embedders.openai_compatible import OpenAICompatibleEmbedder
from teffmem.errors import ProviderError, StoreError
from tests.embedding_server import good_vector, serving

PRIVATE = "the launch code is 4711"


class Counting:
    """An embedder that remembers what it was asked."""

    dim = 2
    similarity_range = (0.1, 0.9)

    def __init__(self, fingerprint: str | None = "counting:2", factor: float = 1.0) -> None:
        self.fingerprint = fingerprint
        self.factor = factor
        self.calls: list[list[str]] = []
        self.closed = 0
        self.wrong: Any = None

    async def embed(self, text: str) -> Any:
        """Return a vector of the text's length."""
        return (await self.embed_many([text]))[0]

    async def embed_many(self, texts: Sequence[str]) -> Any:
        """Return a vector a text."""
        self.calls.append(list(texts))
        right = [[self.factor * len(text), 1.0] for text in texts]
        return right if self.wrong is None else self.wrong

    async def embed_query(self, text: str) -> list[float] | None:
        """Return another vector than embed; None for ""."""
        self.calls.append([f"query {text}"])
        return [-float(len(text)), 1.0] if text else None

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


@pytest.fixture(params=["memory", "file"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """None, or where the cache file goes."""
    return tmp_path / "cache.db" if request.param == "file" else None


async def test_a_text_is_embedded_once(path: Path | None) -> None:
    """What is known is not asked again, duplicates are asked once, and the order is that of the texts."""
    inner = Counting()
    async with CachingEmbedder(inner, path) as embedder:
        await embedder.embed("abc")
        vectors = await embedder.embed_many(["ab", "abc", "ab", "a"])
        assert [v.tolist() for v in vectors] == [[2.0, 1.0], [3.0, 1.0], [2.0, 1.0], [1.0, 1.0]]
        assert {v.dtype for v in vectors} == {np.dtype(np.float32)}
        assert (await embedder.embed("a")).tolist() == [1.0, 1.0]
        assert await embedder.embed_many([]) == []
    assert inner.calls == [["abc"], ["ab", "a"]]


async def test_questions_are_kept_apart_from_texts(path: Path | None) -> None:
    """A question has its own vector; that nothing can be made of one is not kept."""
    inner = Counting()
    async with CachingEmbedder(inner, path) as embedder:
        await embedder.embed("abc")
        for _ in range(2):
            question = await embedder.embed_query("abc")
            assert question is not None
            assert question.tolist() == [-3.0, 1.0]
            assert await embedder.embed_query("") is None
    assert inner.calls == [["abc"], ["query abc"], ["query "], ["query "]]


async def test_vectors_are_the_callers_own(path: Path | None) -> None:
    """Changing an answer changes no later one."""
    async with CachingEmbedder(Counting(), path) as embedder:
        for _ in range(3):
            for vector in (await embedder.embed("abc"), (await embedder.embed_many(["abc"]))[0]):
                assert vector.tolist() == [3.0, 1.0]
                vector[:] = 0.0


async def test_a_file_outlives_its_process(tmp_path: Path) -> None:
    """A second embedder with the same fingerprint finds everything; one with another finds nothing."""
    path = tmp_path / "deep" / "er" / "cache.db"
    async with CachingEmbedder(Counting(), path) as embedder:
        await embedder.embed_many(["ab", "abc"])
        await embedder.embed_query("ab")
    second, other = Counting(), Counting("other:2", factor=10.0)
    async with CachingEmbedder(second, path) as embedder:
        assert [v.tolist() for v in await embedder.embed_many(["abc", "ab"])] == [[3.0, 1.0], [2.0, 1.0]]
        question = await embedder.embed_query("ab")
        assert question is not None
        assert question.tolist() == [-2.0, 1.0]
    async with CachingEmbedder(other, path) as embedder:
        assert (await embedder.embed("ab")).tolist() == [20.0, 1.0]
    assert (second.calls, other.calls) == ([], [["ab"]])


async def test_the_file_is_private_and_holds_no_text(tmp_path: Path) -> None:
    """Made 0600 in folders of 0700, and neither text nor question is in its bytes."""
    path = tmp_path / "new" / "folder" / "cache.db"
    async with CachingEmbedder(Counting(), path) as embedder:
        await embedder.embed(PRIVATE)
        await embedder.embed_query(PRIVATE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)] == [0o700] * 2
    assert list(path.parent.iterdir()) == [path]
    assert b"4711" not in path.read_bytes()


async def test_memory_keeps_what_was_used_last() -> None:
    """Over max_items, what was used longest ago goes."""
    inner = Counting()
    async with CachingEmbedder(inner, max_items=3) as embedder:
        await embedder.embed_many(["a", "bb", "ccc"])
        await embedder.embed("a")
        await embedder.embed("dddd")
        await embedder.embed_many(["a", "ccc", "dddd"])
        assert inner.calls == [["a", "bb", "ccc"], ["dddd"]]
        await embedder.embed("bb")
    assert inner.calls[2:] == [["bb"]]


async def test_the_file_keeps_what_was_used_last(tmp_path: Path) -> None:
    """The file is bounded too, across processes: reading counts as use."""
    path = tmp_path / "cache.db"
    for texts in (["a", "bb", "ccc"], ["a"], ["dddd"], ["eeeee"]):
        async with CachingEmbedder(Counting(), path, max_items=3) as embedder:
            await embedder.embed_many(texts)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (3,)
    connection.close()
    inner = Counting()
    async with CachingEmbedder(inner, path, max_items=3) as embedder:
        await embedder.embed_many(["a", "dddd", "eeeee"])
    assert inner.calls == []


async def test_more_than_fits_is_answered_all_the_same(path: Path | None) -> None:
    """2,000 texts through a cache of 5: every text gets its own vector."""
    async with CachingEmbedder(Counting(), path, max_items=5) as embedder:
        for _ in range(2):
            vectors = await embedder.embed_many(["x" * n for n in range(2000)])
            assert [v[0] for v in vectors] == [float(n) for n in range(2000)]


@pytest.mark.parametrize("damage", ["garbage", "truncated", "text"])
async def test_a_broken_file_is_put_aside(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is renamed and begun anew with one warning that holds no text; answers are right throughout."""
    path = tmp_path / "cache.db"
    async with CachingEmbedder(Counting(), path) as embedder:
        await embedder.embed_many([PRIVATE, *("x" * n for n in range(300))])
    whole = path.read_bytes()
    broken = {
        "garbage": whole[:100] + b"\xff" * (len(whole) - 100),
        "truncated": whole[:5000],
        "text": b"my notes" * 99,
    }
    path.write_bytes(broken[damage])
    async with CachingEmbedder(Counting(), path) as embedder:
        for _ in range(2):
            assert (await embedder.embed(PRIVATE)).tolist() == [float(len(PRIVATE)), 1.0]
    assert (tmp_path / "cache.db.broken1").read_bytes() == broken[damage]
    assert [r.levelno for r in caplog.records if r.name == "teffmem"] == [logging.WARNING]
    assert "put aside" in caplog.text
    assert "4711" not in caplog.text
    inner = Counting()
    async with CachingEmbedder(inner, path) as embedder:
        await embedder.embed(PRIVATE)
    assert inner.calls == []


async def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    """A database that is no cache, or a later version's, is a StoreError and stays as it is."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    before = path.read_bytes()
    async with CachingEmbedder(Counting(), path) as embedder:
        with pytest.raises(StoreError, match="something else than an embedding cache; use another path"):
            await embedder.embed("abc")
    assert path.read_bytes() == before
    connection.close()
    later = tmp_path / "later.db"
    async with CachingEmbedder(Counting(), later) as embedder:
        await embedder.embed("abc")
    connection = sqlite3.connect(later)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    async with CachingEmbedder(Counting(), later) as embedder:
        with pytest.raises(StoreError, match="later version"):
            await embedder.embed("abc")


async def test_a_locked_file_costs_time_not_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While another process holds the file, embedding goes on without it, with one warning."""
    path = tmp_path / "cache.db"
    async with CachingEmbedder(Counting(), path) as embedder:
        await embedder.embed("abc")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    async with CachingEmbedder(Counting(), path) as embedder:
        assert (await embedder.embed("abc")).tolist() == [3.0, 1.0]
    connection.execute("COMMIT")
    connection.close()
    assert [r.getMessage() for r in caplog.records if r.name == "teffmem"] == [
        f"the embedding cache {path} failed (SQLITE_BUSY): embedding goes on without it"
    ]


async def test_a_place_that_cannot_be_written_costs_time_not_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A path below a file, or a folder itself: a warning, and answers."""
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "cache.db", tmp_path):
        async with CachingEmbedder(Counting(), path) as embedder:
            assert (await embedder.embed("abc")).tolist() == [3.0, 1.0]
    kinds = [r.getMessage().split("(")[1].split(")")[0] for r in caplog.records if r.name == "teffmem"]
    assert kinds == ["NotADirectoryError", "IsADirectoryError"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
async def test_a_read_only_file_is_read(tmp_path: Path) -> None:
    """What a file holds is used even if it cannot be written."""
    path = tmp_path / "cache.db"
    async with CachingEmbedder(Counting(), path) as embedder:
        await embedder.embed("abc")
    path.chmod(0o400)
    inner = Counting()
    async with CachingEmbedder(inner, path) as embedder:
        await embedder.embed("abc")
    assert inner.calls == []


async def _fill(path: Path, start: int) -> None:
    async with CachingEmbedder(Counting(), path) as embedder:
        for n in range(start, start + 60):
            vector = await embedder.embed("x" * n)
            if vector[0] != float(n):
                raise AssertionError(f"a vector of {vector[0]} for {n}")


def _fill_in_a_process(path: Path, start: int) -> None:
    asyncio.run(_fill(path, start))


def test_processes_share_a_file(tmp_path: Path) -> None:
    """Three processes that begin the same new file at once write it together, and nothing is lost."""
    path = tmp_path / "cache.db"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_fill_in_a_process, args=(path, start)) for start in (0, 30, 60)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    inner = Counting()

    async def read() -> list[float]:
        async with CachingEmbedder(inner, path) as embedder:
            return [float(v[0]) for v in await embedder.embed_many(["x" * n for n in range(120)])]

    assert asyncio.run(read()) == [float(n) for n in range(120)]
    assert inner.calls == []
    assert list(tmp_path.iterdir()) == [path]


async def test_an_embedder_without_fingerprint_is_refused() -> None:
    """Vectors of different embedders could be mixed up: a ValueError at once, or with the first answer."""
    with pytest.raises(ValueError, match="function has no fingerprint"):
        CachingEmbedder(lambda text: [1.0, float(len(text))])
    for nameless in (FunctionEmbedder(lambda _text: [1.0]), Counting(fingerprint=None)):
        with pytest.raises(ValueError, match="has no fingerprint: give it one"):
            await CachingEmbedder(nameless).embed("abc")
    with pytest.raises(ValueError, match="max_items is a whole number from 1, not 0"):
        CachingEmbedder(Counting(), max_items=0)


async def test_a_fingerprint_learned_from_the_first_answer_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder over HTTP that was not told its dimension is cached from its first answer on."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with serving() as server:
        inner = OpenAICompatibleEmbedder("m", base_url=server.url)
        async with CachingEmbedder(inner, close_inner=True) as embedder:
            for _ in range(3):
                assert (await embedder.embed("abc")).tolist() == good_vector("abc")
            assert embedder.fingerprint == "openai-compatible:m:4"
        assert len(server.requests) == 1
        with pytest.raises(ProviderError, match="is closed"):
            await inner.embed("abc")


async def test_h1_nothing_wrong_is_kept(path: Path | None) -> None:
    """A wrong count, length or number is an error, and the next call asks again."""
    inner = Counting()
    async with CachingEmbedder(inner, path) as embedder:
        for wrong, message in (
            ([[1.0, 1.0]], "expected 2 vectors for 2 texts, got 1"),
            ([[1.0]] * 2, "expected vectors of dimension 2, got 1"),
            ([[float("nan"), 1.0]] * 2, "NaN or infinity"),
        ):
            inner.wrong = wrong
            with pytest.raises(ValueError, match=message):
                await embedder.embed_many(["a", "bb"])
        inner.wrong = None
        assert [v.tolist() for v in await embedder.embed_many(["a", "bb"])] == [[1.0, 1.0], [2.0, 1.0]]
    assert len(inner.calls) == 4


async def test_closing_twice_is_fine_and_ends_use(path: Path | None) -> None:
    """Afterwards every call is refused; the embedder is closed only if that was asked for."""
    inner = Counting()
    embedder = CachingEmbedder(inner, path)
    await embedder.embed("abc")
    await embedder.aclose()
    await embedder.aclose()
    assert inner.closed == 0
    for call in (embedder.embed("abc"), embedder.embed_many(["abc"]), embedder.embed_query("abc")):
        with pytest.raises(ProviderError, match="this embedder is closed"):
            await call
    await CachingEmbedder(inner, path, close_inner=True).aclose()
    assert inner.closed == 1


def test_one_embedder_serves_one_event_loop_after_another(path: Path | None) -> None:
    """asyncio.run three times with the same embedder: one call in all."""
    inner = Counting()
    embedder = CachingEmbedder(inner, path)
    assert [asyncio.run(embedder.embed("abc")).tolist() for _ in range(3)] == [[3.0, 1.0]] * 3
    assert inner.calls == [["abc"]]
    asyncio.run(embedder.aclose())
    assert (embedder.dim, embedder.fingerprint, embedder.similarity_range) == (2, "counting:2", (0.1, 0.9))
