"""What the default backend makes of the files and paths it is given."""

import asyncio
import logging
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teffmem import SQLiteVectorStore, StoreError
from teffmem.items import Draft
from teffmem.protocols import Selection
from teffmem.ranking import Query
from teffmem.text import query_terms

NOW = 1_800_000_000.0
HOME = ("users", "u1")
ALL = Selection((), NOW)
TEA = np.array([1, 0], np.float32)


def draft(key: str, text: str = "green tea", **fields: Any) -> Draft:
    usual: dict[str, Any] = {"value": {"text": text}, "now": NOW, "vector": TEA}
    return Draft(HOME, key, **usual | fields)


async def put_and_close(path: str | Path, *keys: str) -> None:
    store = SQLiteVectorStore(path)
    await store.upsert([draft(key) for key in keys], NOW)
    await store.aclose()


async def keys_in(path: str | Path) -> list[str]:
    store = SQLiteVectorStore(path)
    records = await store.newest(ALL, 100)
    await store.aclose()
    return [record.key for record in records]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteVectorStore]:
    store = SQLiteVectorStore(tmp_path / "memory.db")
    yield store
    await store.aclose()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def touching() -> dict[str, Callable[[SQLiteVectorStore], Awaitable[object]]]:
    """Return a reading and a writing first call."""
    return {"read": lambda store: store.count(ALL), "write": lambda store: store.upsert([draft("k")], NOW)}


async def refusal(path: str | Path) -> str:
    """Return what a store says of a file that it refuses, whatever is asked first."""
    said = set()
    for call in touching().values():
        store = SQLiteVectorStore(path)
        with pytest.raises(StoreError) as error:
            await call(store)
        said.add(str(error.value))
        await store.aclose()
    (message,) = said
    return message


async def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    """A file carries the schema's version and an application id."""
    await put_and_close(tmp_path / "memory.db", "k")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("PRAGMA application_id").fetchone() != (0,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_o5_a_later_schema_is_refused_and_left(tmp_path: Path) -> None:
    """A file of a later version is refused with both versions, and not a byte of it changes."""
    path = tmp_path / "memory.db"
    await put_and_close(path, "k")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    assert "schema version 99" in await refusal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_another_applications_database_is_refused_and_left(tmp_path: Path, journal: str) -> None:
    """A SQLite file that is somebody else's is not taken over."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE items (name TEXT)")
    before = path.read_bytes()
    assert "not one of teffmem's" in await refusal(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize(
    "content", [b"no database at all\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 4000]
)
async def test_g3_a_file_that_is_no_database_is_refused_and_left(tmp_path: Path, content: bytes) -> None:
    """Garbage is a `StoreError` that names the file, and stays as it is."""
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    assert "memory.db" in await refusal(path)
    assert path.read_bytes() == content


async def test_g3_half_a_file_is_an_error(tmp_path: Path) -> None:
    """A file that was cut off gives a `StoreError`, no crash and no empty answer."""
    path = tmp_path / "memory.db"
    await put_and_close(path, *(f"k{i}" for i in range(300)))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StoreError):
        await keys_in(path)


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """A file of no bytes is taken as new."""
    (tmp_path / "memory.db").touch()
    await put_and_close(tmp_path / "memory.db", "k")
    assert await keys_in(tmp_path / "memory.db") == ["k"]


@pytest.mark.parametrize(
    "name",
    [
        "new dir/ünï/memory.db",
        "what?.db",
        "a#b.db",
        "a%20b.db",
        "a?mode=memory",
        "file:x.db",
        "it's.db",
        "日本語.db",
        "\u200b.db",
    ],
)
async def test_g7_odd_paths(tmp_path: Path, name: str) -> None:
    """G7: folders are made, and no character of a path means anything to SQLite."""
    path = tmp_path / name
    await put_and_close(str(path), "k")
    assert path.is_file()
    assert await keys_in(path) == ["k"]


async def test_g7_a_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``~`` is the user's home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    await put_and_close("~/deep/x.db", "k")
    assert (tmp_path / "deep" / "x.db").is_file()
    assert await keys_in(Path("~/deep/x.db")) == ["k"]


async def test_g7_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder in the file's place is an error that says so; so is a file in a folder's place."""
    assert "folder" in await refusal(tmp_path)
    (tmp_path / "file").touch()
    await refusal(tmp_path / "file" / "memory.db")


async def test_g7_memory_stores_are_independent() -> None:
    """Two ":memory:" stores share nothing, and leave no file."""
    one, other = SQLiteVectorStore(":memory:"), SQLiteVectorStore(":memory:")
    await one.upsert([draft("k")], NOW)
    assert (await one.count(ALL), await other.count(ALL)) == (1, 0)
    assert not Path(":memory:").exists()
    await one.aclose()
    await other.aclose()


async def test_the_constructor_touches_nothing(tmp_path: Path) -> None:
    """The file is made by the first call, not by the constructor."""
    store = SQLiteVectorStore(tmp_path / "a" / "memory.db")
    assert list(tmp_path.iterdir()) == []
    await asyncio.gather(*(store.count(ALL) for _ in range(20)))
    assert (tmp_path / "a" / "memory.db").is_file()
    await store.aclose()


async def test_files_are_for_their_owner_alone(tmp_path: Path, store: SQLiteVectorStore) -> None:
    """Folders made here are 0700 and files 0600, the log beside them too; what was there keeps its mode."""
    tmp_path.chmod(0o755)
    nested = SQLiteVectorStore(tmp_path / "a" / "b" / "memory.db")
    await nested.upsert([draft("k")], NOW)
    assert [mode(folder) for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")] == [0o755, 0o700, 0o700]
    assert {found.name: mode(found) for found in (tmp_path / "a" / "b").iterdir()} == dict.fromkeys(
        ("memory.db", "memory.db-wal", "memory.db-shm"), 0o600
    )
    await nested.aclose()
    (tmp_path / "memory.db").touch(mode=0o640)
    (tmp_path / "memory.db").chmod(0o640)
    await store.upsert([draft("k")], NOW)
    assert mode(tmp_path / "memory.db") == 0o640


@contextmanager
def somebody_else(folder: Path) -> Iterator[None]:
    """Leave the rights of root, which may write anything, for a while."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach."""
    path = Path(tempfile.mkdtemp())
    yield path
    path.chmod(0o700)
    shutil.rmtree(path)


@pytest.mark.parametrize("folder_mode", [0o700, 0o500])
async def test_a_file_that_cannot_be_written_is_read(folder: Path, folder_mode: int) -> None:
    """Reads and searches work, in a folder that cannot be written too; every write raises `StoreError`."""
    path = folder / "what? #1.db"
    store = SQLiteVectorStore(path)
    await store.upsert([draft("a", ttl=60.0), draft("b", ttl=60.0)], NOW)
    await store.aclose()
    path.chmod(0o400)
    with somebody_else(folder):
        folder.chmod(folder_mode)
        store = SQLiteVectorStore(path)
        assert await store.count(ALL) == 2
        assert [match.record.key for match in await store.similar(ALL, TEA, 5)] == ["b", "a"]
        assert (await store.get(HOME, ["a"], NOW))[0] is not None
        for write in (
            lambda: store.upsert([draft("k")], NOW),
            lambda: store.delete(HOME, ["a"], NOW),
            lambda: store.delete_all(ALL),
            lambda: store.cleanup((), NOW + 100),
            lambda: store.claim("model"),
        ):
            with pytest.raises(StoreError, match=r"cannot be written|readonly"):
                await write()
        await store.aclose()


async def test_a_place_that_cannot_be_written_is_an_error(folder: Path) -> None:
    """Where no file can be made, the first call says so."""
    with somebody_else(folder):
        folder.chmod(0o500)
        await refusal(folder / "a" / "memory.db")


async def test_g3_a_damaged_row_harms_no_other(
    tmp_path: Path, store: SQLiteVectorStore, caplog: pytest.LogCaptureFixture
) -> None:
    """G3: a row that is no JSON is left out and logged by its id, without its text; asked for, it is a named error."""
    await store.upsert([draft(f"k{i}", ttl=60.0) for i in range(5)], NOW)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("UPDATE items SET value = '{secret' WHERE key = 'k3'")
        connection.commit()
        (id_,) = connection.execute("SELECT id FROM items WHERE key = 'k3'").fetchone()
    rest = ["k0", "k1", "k2", "k4"]
    query = Query("hybrid", query_terms("green tea"), TEA, importance=0.5, recency=0.5)
    with caplog.at_level(logging.WARNING, "teffmem"):
        assert sorted(record.key for record in await store.newest(ALL, 10)) == rest
        assert sorted(record.key for record in await store.oldest(ALL, 10)) == rest
        assert sorted(match.record.key for match in await store.similar(ALL, TEA, 10)) == rest
        assert len(await store.similar(ALL, TEA, 4)) == 4
        assert sorted(match.record.key for match in await store.rank(ALL, query, 10)) == rest
    assert f"item {id_} " in caplog.text
    assert "secret" not in caplog.text
    assert [record and record.key for record in await store.get(HOME, rest, NOW)] == rest
    with pytest.raises(StoreError, match=f"item {id_} .*damaged") as error:
        await store.get(HOME, ["k3"], NOW)
    assert "secret" not in str(error.value)
    assert await store.upsert([draft("k3")], NOW) != [None]
    assert len(await store.newest(ALL, 10)) == 5


async def test_d11_a_vector_of_another_length_is_refused(tmp_path: Path) -> None:
    """A store of dim=2 refuses three numbers, naming both, and writes nothing of the batch."""
    store = SQLiteVectorStore(tmp_path / "memory.db", dim=2)
    with pytest.raises(ValueError, match=r"3 .*dim=2"):
        await store.upsert([draft("a"), draft("b", vector=np.ones(3, np.float32))], NOW)
    assert await store.count(ALL) == 0
    await store.aclose()


async def test_f7_a_failed_write_leaves_no_lock(tmp_path: Path, store: SQLiteVectorStore) -> None:
    """F7, F15: of writes that share a commit one that fails raises; the rest are done, nothing stays locked."""
    drafts = [draft(f"k{i}") for i in range(20)]
    drafts[7] = draft("bad", value={"text": "t", "x": {1}})
    results = await asyncio.gather(*(store.upsert([one], NOW) for one in drafts), return_exceptions=True)
    assert [i for i, result in enumerate(results) if isinstance(result, BaseException)] == [7]
    assert isinstance(results[7], TypeError)
    with closing(sqlite3.connect(tmp_path / "memory.db", timeout=0)) as connection:
        connection.execute("UPDATE items SET thread = 'x' WHERE key = 'k1'")
        connection.commit()
    assert await store.count(ALL) == 19


async def test_two_stores_over_one_file_see_each_other(tmp_path: Path, store: SQLiteVectorStore) -> None:
    """What one writes, rewrites or deletes, the other finds from then on, its index in memory notwithstanding."""
    other = SQLiteVectorStore(tmp_path / "memory.db")
    for turn in range(10):
        writer, reader = (store, other) if turn % 2 else (other, store)
        await writer.upsert([draft(f"k{turn}"), draft("same", f"tea {turn}")], NOW)
        matches = await reader.similar(Selection(HOME, NOW), TEA, 100)
        assert [match.record.key for match in matches] == ["same", *(f"k{i}" for i in range(turn, turn // 3 - 1, -1))]
        assert matches[0].record.value == {"text": f"tea {turn}"}
        if turn % 3 == 2:
            assert await reader.delete(HOME, [f"k{turn // 3}"], NOW) == 1
            assert len(await writer.similar(Selection(HOME, NOW), TEA, 100)) == len(matches) - 1
    await other.aclose()
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
