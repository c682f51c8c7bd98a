"""The command line: arguments, one call, text.

Standard output has results, standard error messages and progress. This is the only module that prints.
"""

import asyncio
import io
import os
import secrets
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from teffmem import _cli_output as output
from teffmem import _transfer as transfer
from teffmem._cli_demo import demo
from teffmem._cli_doctor import examined, file_of
from teffmem._cli_options import UsageError, fields, parse
from teffmem._cli_transcripts import Transcript, is_transcript, read_transcript
from teffmem._opening import Opening
from teffmem.errors import MissingExtraError, TeffmemError
from teffmem.items import DEFAULT, KEEP
from teffmem.memory import MemoryStore
from teffmem.vectorstores._sqlite_health import examine

__all__ = ["main"]

_DONE, _NOTHING, _FAILED, _INTERRUPTED = 0, 1, 2, 130
_BATCH = 250  # turns of a chat that are put together
_KEY_BYTES = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line says.

    Args:
        arguments: What follows the program's name; None takes this process's own.

    Returns:
        0 done; 1 nothing found, or `doctor` found something wrong; 2 a mistake or failure; 130 interrupted.

    Raises:
        SystemExit: ``--help`` or ``--version`` was asked for.
    """
    _use_utf8()
    try:
        options = parse(arguments)
        _ask(options)
        status = asyncio.run(_VERBS[options.verb](options))
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return _DONE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except MissingExtraError as error:
        return _fail(f"{error} (on the command line: --embedder none)")
    except (TeffmemError, TypeError, ValueError, OSError) as error:
        return _fail(str(error) or type(error).__name__)
    return status


async def _demo(options: Namespace) -> int:
    async for line in demo(options.embedder):
        _show([line])
    return _DONE


async def _remember(options: Namespace) -> int:
    value = {"text": options.text, **fields(options.field)}
    async with _open(options, options.embedder, is_made=True) as memory:
        item = await memory.put(
            options.namespace,
            await _unused_key(memory, options.namespace) if options.key is None else options.key,
            value,
            ttl=DEFAULT if options.ttl is None else options.ttl,
            thread=KEEP if options.thread is None else options.thread,
        )
    _show_result(options, output.item_json(item), [output.name(item.key)])
    return _DONE


async def _recall(options: Namespace) -> int:
    async with _open(options, None if options.mode == "lexical" else options.embedder) as memory:
        items = await memory.search(
            options.namespace,
            query=options.query,
            k=options.k,
            filter=options.filter,
            mode=options.mode,
            min_similarity=options.min_similarity,
            min_coverage=options.min_coverage,
            explain=options.explain,
        )
    _show_result(options, [*map(output.item_json, items)], output.found(items, explain=options.explain))
    return _DONE if items else _nothing_found()


async def _get(options: Namespace) -> int:
    async with _open(options) as memory:
        item = await memory.get(options.namespace, options.key)
    if item is None:
        _show_result(options, None, [])
        return _nothing_found()
    _show_result(options, output.item_json(item), output.details(item))
    return _DONE


async def _list(options: Namespace) -> int:
    async with _open(options) as memory:
        items = await memory.items(options.namespace, limit=options.limit, offset=options.offset, filter=options.filter)
        total = await memory.count(options.namespace, options.filter)
    _show_result(options, [*map(output.item_json, items)], output.listed(items))
    _tell_of_rest(options, len(items), total)
    return _DONE


async def _forget(options: Namespace) -> int:
    async with _open(options) as memory:
        if options.key is not None:
            gone = int(await memory.delete(options.namespace, options.key))
        else:
            gone = await memory.delete_namespace(options.namespace, everything=options.everything)
    _show_result(options, {"removed": gone}, [f"removed {gone}"] if gone else [])
    return _DONE if gone else _nothing_found()


async def _namespaces(options: Namespace) -> int:
    async with _open(options) as memory:
        found = await memory.list_namespaces(options.prefix, max_depth=options.max_depth, limit=sys.maxsize)
    shown = found[options.offset : options.offset + options.limit]
    _show_result(options, shown, map(output.path, shown))
    _tell_of_rest(options, len(shown), len(found))
    return _DONE


async def _stats(options: Namespace) -> int:
    async with _open(options) as memory:
        namespaces = await memory.scoped(options.namespace).list_namespaces(limit=sys.maxsize)
        facts: dict[str, Any] = {"items": await memory.count(options.namespace), "namespaces": len(namespaces)}
    facts |= _file_facts(options.store)
    _show_result(options, facts, output.pairs(facts))
    return _DONE


async def _import(options: Namespace) -> int:
    chats = _read_chats(options)
    for file in options.files:
        if file not in chats and len(options.files) > 1:
            await transfer.check_file(file)  # one file alone is checked by import_
    counts = transfer.Imported()
    async with _open(options, options.embedder, is_made=True) as memory:
        for file in options.files:
            chat = chats.get(file)
            if chat is None:
                counts += await _import_lines(memory, file, options.namespace)
            else:
                counts += await _import_chat(memory, chat, options.namespace)
    skipped = sum(chat.skipped for chat in chats.values())
    _show_result(options, {**asdict(counts), "skipped": skipped}, [_imported(counts, skipped, len(options.files))])
    return _DONE


async def _export(options: Namespace) -> int:
    async with _open(options) as memory:
        if options.file is not None:
            count = await memory.export(options.file, namespace=options.namespace)
            _tell(f"exported {count} to {options.file}")
        else:
            async for line in memory.export(namespace=options.namespace):
                print(line)
    return _DONE


async def _cleanup(options: Namespace) -> int:
    async with _open(options) as memory:
        gone = await memory.cleanup(max_age=options.max_age, namespace=options.namespace)
    _show_result(options, {"removed": gone}, [f"removed {gone}"])
    return _DONE


async def _doctor(options: Namespace) -> int:
    report = await examined(options.store, options.embedder)
    _show_result(options, {**report.facts, "problems": report.problems}, output.pairs(report.facts))
    for problem in report.problems:
        _tell(f"problem: {problem}")
    return _NOTHING if report.problems else _DONE


_VERBS: dict[str, Callable[[Namespace], Coroutine[Any, Any, int]]] = {
    "demo": _demo,
    "remember": _remember,
    "recall": _recall,
    "get": _get,
    "list": _list,
    "forget": _forget,
    "namespaces": _namespaces,
    "stats": _stats,
    "import": _import,
    "export": _export,
    "cleanup": _cleanup,
    "doctor": _doctor,
}


def _ask(options: Namespace) -> None:
    """Read what is to come from standard input, before an event loop would keep Ctrl-C from ending the wait."""
    if options.verb == "remember" and options.text == "-":
        options.text = sys.stdin.read().rstrip("\n")
    if options.verb != "forget" or options.key is not None:
        return
    if options.everything == bool(options.namespace):
        raise UsageError("--all-of-namespace goes with -n, and --everything without")
    if not options.yes and not _agrees(f"Remove {output.path(options.namespace)} and everything below it?"):
        raise UsageError("nothing was removed; answer y, or give --yes")


def _agrees(question: str) -> bool:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _open(options: Namespace, embedder: Any = None, *, is_made: bool = False) -> Opening[MemoryStore]:
    """Open the memory; a file that is not there is made only for a verb that stores something."""
    file = file_of(options.store)
    if file is None or is_made or Path(file).exists():
        return MemoryStore.open(options.store, embedder=embedder)
    _tell(f"no memories yet: {file} is not there")
    return MemoryStore.open("memory://", embedder=embedder)


def _file_facts(location: str) -> dict[str, Any]:
    file = file_of(location)
    if file is None or not Path(file).exists():
        return {}
    health = examine(file)
    return {"bytes": health.size, "vectors of": health.fingerprint}


async def _unused_key(memory: MemoryStore, namespace: Sequence[str]) -> str:
    key = secrets.token_hex(_KEY_BYTES)
    while await memory.get(namespace, key) is not None:
        key = secrets.token_hex(_KEY_BYTES)
    return key


def _read_chats(options: Namespace) -> dict[Path, Transcript]:
    """Read the files that are chats, all of them before anything is stored."""
    files = [file for file in options.files if is_transcript(file)]
    if options.thread is not None and len(options.files) != 1:
        raise UsageError("--thread names the thread of one file")
    if options.thread is not None and not files:
        raise UsageError(f"{options.files[0].name} is no chat; its lines name their own threads")
    chats = {file: read_transcript(file, options.thread, all_roles=options.all_roles) for file in files}
    threads = [chat.thread for chat in chats.values()]
    twice = {thread for thread in threads if threads.count(thread) > 1}
    if twice:
        raise UsageError(f"two files would both be the thread {min(twice)!r}; import one at a time, with --thread")
    return chats


async def _import_lines(memory: MemoryStore, file: Path, namespace: Sequence[str]) -> transfer.Imported:
    with _progress(file.name, None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return await memory.import_(file, namespace=namespace, progress=progress)


async def _import_chat(memory: MemoryStore, chat: Transcript, namespace: Sequence[str]) -> transfer.Imported:
    items = [{"namespace": namespace, "key": key, "value": value, "thread": chat.thread} for key, value in chat.turns]
    with _progress(chat.thread, len(items)) as bar:
        for start in range(0, len(items), _BATCH):
            bar.update(len(await memory.put_many(items[start : start + _BATCH])))
    return transfer.Imported(written=len(items))


def _imported(counts: transfer.Imported, skipped: int, files: int) -> str:
    what = {"older than what is there": counts.older, "expired": counts.expired, "messages left out": skipped}
    rest = ", ".join(f"{count} {kind}" for kind, count in what.items() if count)
    return f"imported {counts.written} from {files} file{'s' * (files > 1)}{f' ({rest})' if rest else ''}"


def _progress(title: str, total: int | None) -> "tqdm[Any]":
    """Return a bar on standard error, silent where that is no terminal."""
    return tqdm(desc=output.one_line(title), total=total, unit=" memories", file=sys.stderr, disable=None, leave=False)


def _show_result(options: Namespace, document: object, lines: Iterable[str]) -> None:
    """Print a result for a program, or for a person."""
    if options.json:
        print(output.as_json(document))
    else:
        _show(lines)


def _show(lines: Iterable[str]) -> None:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        print(line if columns is None else output.clip(line, columns))


def _tell(message: str) -> None:
    print(f"teffmem: {output.one_line(message)}", file=sys.stderr)


def _tell_of_rest(options: Namespace, shown: int, total: int) -> None:
    if options.offset + shown < total:
        _tell(f"{shown} of {total}; --limit and --offset have the others")


def _nothing_found() -> int:
    _tell("nothing found")
    return _NOTHING


def _fail(message: str) -> int:
    _tell(f"error: {message}")
    return _FAILED


def _use_utf8() -> None:
    """Read and write UTF-8, whatever the locale says."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")


def _drop_output() -> None:
    """Let what is still buffered go nowhere, now that its reader has left."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
