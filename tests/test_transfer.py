"""Export and import: memories as lines of JSON, there and back."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from teffmem import MemoryStore
from teffmem._transfer import Imported
from teffmem.testing import FakeClock
from tests.fakes import embedded
from tests.memories import BACKENDS, Opener, OpenMemory

NS = ("users", "u1")


def line(key: str, **fields: Any) -> dict[str, Any]:
    return {"namespace": list(NS), "key": key, "value": {"text": f"fact {key}"}, **fields}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
    return path


async def test_o1_a_round_trip_keeps_everything(open_memory: OpenMemory, tmp_path: Path) -> None:
    """Export and import into the other backend keep namespace, key, value, times, expiry, thread, index and order."""
    clock = FakeClock(1000.0)
    memory = open_memory(clock=clock)
    await memory.put(NS, "plain", {"text": "likes tea", "deep": {"a": [1, None, {"b": "☕️"}]}}, thread="chat")
    clock.advance(10)
    await memory.put((*NS, "work"), "line\nbreak", {"text": "plays chess"}, ttl=50, thread="chat")
    await memory.put(("other/ns", "*"), "own", {"n": 1}, text="eats rice")
    await memory.put((), "unindexed", {"n": 2}, index=False)
    await memory.put(NS, "dead", {"text": "gone"}, ttl=1)
    clock.advance(10)
    await memory.put(NS, "plain", {"text": "likes tea", "again": True})
    before = await memory.items(())
    path = tmp_path / "new" / "memories.jsonl"
    assert await memory.export(path) == len(before) == 4
    assert path.stat().st_mode & 0o777 == 0o600

    for backend in BACKENDS:
        opener = Opener(backend, tmp_path / backend)
        other = opener(clock=clock)
        assert await other.import_(path) == Imported(written=4)
        assert await other.items(()) == before
        assert [item.key for item in await other.search((), query="rice", mode="lexical")] == ["own"]
        assert await other.search((), query="likes tea", explain=True) == await memory.search(
            (), query="likes tea", explain=True
        )
        again = tmp_path / f"{backend}.jsonl"
        await other.export(again)
        assert _without_places(again) == _without_places(path)
        clock.advance(40)
        assert await other.get((*NS, "work"), "line\nbreak") is None
        clock.advance(-40)
        await opener.aclose()


def _without_places(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


async def test_an_export_can_be_iterated(memory: MemoryStore) -> None:
    """Without a path the lines come one by one, oldest write first, each a JSON object with the documented names."""
    await memory.put_many([(NS, f"k{i}", {"text": f"fact {i}"}) for i in range(3)])
    lines = [json.loads(text) async for text in memory.export(namespace="users")]
    assert [(found["namespace"], found["key"]) for found in lines] == [(["u1"], f"k{i}") for i in range(3)]
    assert {"namespace", "key", "value", "created_at", "updated_at", "expires_at", "thread"} <= set(lines[0])
    with pytest.raises(TypeError, match="async for"):
        await memory.export()


async def test_an_export_replaces_its_file_whole_or_not_at_all(open_memory: OpenMemory, tmp_path: Path) -> None:
    """A cancelled export leaves the old file and nothing beside it; a finished one keeps the file's mode."""
    memory = open_memory(None)
    await memory.put_many([(NS, f"k{i}", {"text": f"fact {i}"}) for i in range(1200)])
    path = tmp_path / "out" / "old.jsonl"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o640)
    export = asyncio.ensure_future(_awaited(memory.export(path)))
    await asyncio.sleep(0.001)
    export.cancel()
    with pytest.raises(asyncio.CancelledError):
        await export
    assert [(child.name, child.read_text()) for child in path.parent.iterdir()] == [("old.jsonl", "old")]
    assert await memory.export(path) == len(path.read_text().splitlines()) == 1200
    assert path.stat().st_mode & 0o777 == 0o640


async def _awaited(export: Any) -> int:
    count: int = await export
    return count


async def test_import_keeps_what_is_newer(open_memory: OpenMemory, tmp_path: Path) -> None:
    """Where a key is there already the newer updated_at wins, line or item; equal counts as there already."""
    clock = FakeClock(1000.0)
    memory = open_memory(clock=clock)
    for key in ("older", "same", "newer"):
        await memory.put(NS, key, {"text": "here"})
    times = {"older": 999.0, "same": 1000.0, "newer": 1001.0}
    path = write(tmp_path / "lines", *(line(key, updated_at=time, created_at=5.0) for key, time in times.items()))
    assert await memory.import_(path) == Imported(written=1, older=2)
    found = {item.key: (item.value["text"], item.created_at, item.updated_at) for item in await memory.items(NS)}
    assert found == {
        "older": ("here", 1000.0, 1000.0),
        "same": ("here", 1000.0, 1000.0),
        "newer": ("fact newer", 5, 1001),
    }


async def test_import_keeps_the_newest_of_a_key_that_comes_twice(memory: MemoryStore, tmp_path: Path) -> None:
    """Of two lines of one key the newer wins in whatever order they stand; of equals the first stays."""
    lines = [
        line("a", updated_at=2.0, created_at=1.0) | {"value": {"text": "new"}},
        line("a", updated_at=1.0, created_at=1.0) | {"value": {"text": "old"}},
        line("b", updated_at=1.0) | {"value": {"text": "old"}},
        line("b", updated_at=2.0) | {"value": {"text": "new"}},
    ]
    assert await memory.import_(write(tmp_path / "lines", *lines)) == Imported(written=2, older=2)
    assert [item.value["text"] for item in await memory.items(NS)] == ["new", "new"]


async def test_import_skips_what_has_expired(open_memory: OpenMemory, tmp_path: Path) -> None:
    """An expired line is counted, neither embedded nor stored, and takes no place of what is there."""
    memory = open_memory(clock=FakeClock(1000.0))
    await memory.put(NS, "k", {"text": "here"})
    path = write(tmp_path / "lines", line("k", updated_at=2000.0, expires_at=1000.0), line("k2", expires_at=1000.5))
    assert await memory.import_(path) == Imported(written=1, expired=1)
    assert embedded(memory.embedder) == ["here", "fact k2"]
    items = {item.key: (item.value["text"], item.expires_at) for item in await memory.items(NS)}
    assert items == {"k": ("here", None), "k2": ("fact k2", 1000.5)}


async def test_import_puts_under_a_namespace(memory: MemoryStore, tmp_path: Path) -> None:
    """Lines go under the given namespace, in a view under its top; blank lines and a byte order mark are skipped."""
    path = tmp_path / "lines"
    path.write_text("\ufeff\n" + json.dumps(line("k")) + "\n  \n" + json.dumps(line("k2")), encoding="utf-8")
    assert await memory.scoped("a").import_(path, namespace="b") == Imported(written=2)
    assert await memory.list_namespaces() == [("a", "b", *NS)]


async def test_import_tells_its_progress(memory: MemoryStore, tmp_path: Path) -> None:
    """Progress is called after each batch with the lines done and in all; an empty file needs none."""
    told: list[tuple[int, int]] = []
    path = write(tmp_path / "lines", *(line(f"k{i}") for i in range(1100)))
    await memory.import_(path, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (1100, 1100)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 1
    assert await memory.import_(write(tmp_path / "none")) == Imported()
    assert await memory.count() == 1100


BAD = {
    "broken": '{"namespace": ["users"], "key": "k", "value": {"text": "secret',
    "array": "[1, 2]",
    "null": "null",
    "NaN": '{"namespace": [], "key": "k", "value": {"text": "t", "n": NaN}}',
    "infinite": '{"namespace": [], "key": "k", "value": {"text": "t", "n": 1e999}}',
    "missing": line("k") | {"value": {}},
    "no key": {"namespace": [], "value": {"text": "t"}},
    "unknown": line("k", tll=5),
    "text": line("k") | {"value": {"text": 5}},
    "namespace": line("k") | {"namespace": ["a", 5]},
    "empty segment": line("k") | {"namespace": [""]},
    "surrogate": '{"namespace": ["\\ud800"], "key": "k", "value": {"text": "t"}}',
    "ttl": line("k", ttl=-5),
    "ttl too large": line("k", ttl=10**400),
    "time": line("k", updated_at="yesterday"),
    "infinite time": '{"namespace": [], "key": "k", "value": {"text": "t"}, "created_at": 1e999}',
    "huge time": line("k", created_at=10**400),
    "place": line("k", place="secret"),
    "infinite place": '{"namespace": [], "key": "k", "value": {"text": "t"}, "place": 1e999}',
    "huge place": line("k", place=2**80),
    "fraction of a place": line("k", place=1.5),
    "indexed": line("k", indexed="no"),
    "own text": line("k", text=" "),
    "thread": line("k", thread=""),
    "deep": '{"namespace": [], "key": "k", "value": ' + '{"a":' * 3000 + "1" + "}" * 3000 + "}",
}


@pytest.mark.parametrize("bad", list(BAD))
async def test_o3_a_bad_line_changes_nothing_and_is_named(memory: MemoryStore, tmp_path: Path, bad: str) -> None:
    """One line of a hundred that is wrong: ValueError with its number, none of its text, and nothing changed."""
    await memory.put(NS, "k1", {"text": "here"})
    lines: list[Any] = [line(f"k{i}", updated_at=9e9) for i in range(1, 101)]
    lines[59] = BAD[bad]
    with pytest.raises(ValueError, match=r"line 60 of lines\.jsonl") as failure:
        await memory.import_(write(tmp_path / "lines.jsonl", *lines))
    assert "secret" not in str(failure.value)
    assert [item.value["text"] for item in await memory.items(())] == ["here"]
    assert embedded(memory.embedder) == ["here"]


async def test_o3_bytes_that_are_no_text_are_named_by_line(memory: MemoryStore, tmp_path: Path) -> None:
    """A line that is not UTF-8 is an error with its number like any other bad line."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(json.dumps(line("k")).encode() + b'\n{"namespace": [], "key": "k2", "value": {"text": "\xff"}}\n')
    with pytest.raises(ValueError, match="line 2 of"):
        await memory.import_(path)
    assert await memory.count() == 0


async def test_o3_an_import_that_broke_off_is_repeated(open_memory: OpenMemory, tmp_path: Path) -> None:
    """Cancelled half way, it has removed nothing; repeated, it ends with every line in place, once."""
    memory = open_memory()
    memory.embedder.delay = 0.02
    await memory.put(NS, "k0", {"text": "here"})
    await memory.put(NS, "own", {"text": "here"})
    path = write(tmp_path / "lines", *(line(f"k{i}", updated_at=9e9) for i in range(1500)))
    seen = asyncio.Event()
    broken = asyncio.ensure_future(memory.import_(path, progress=lambda *_: seen.set()))
    await seen.wait()
    broken.cancel()
    with pytest.raises(asyncio.CancelledError):
        await broken
    there = await memory.count()
    assert 2 <= there < 1501
    counts = await memory.import_(path)
    assert (counts.total, await memory.count()) == (1500, 1501)
    item = await memory.get(NS, "own")
    assert item is not None
    assert item.value == {"text": "here"}


async def test_a_missing_file_is_named(memory: MemoryStore, tmp_path: Path) -> None:
    """Importing what is not there raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        await memory.import_(tmp_path / "nothing")
