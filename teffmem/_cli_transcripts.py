"""Chats as memories: a file of OpenAI-style messages is a thread, each message one turn of it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teffmem._arguments import check_thread, check_value
from teffmem.text import is_blank

__all__ = ["Transcript", "is_transcript", "read_transcript"]

_WITHOUT = frozenset(("system", "developer", "tool", "function"))  # said by nobody, or by a machine
_TEXTS = frozenset(("text", "input_text", "output_text"))
_BEGINNING = re.compile(r'\[|\{\s*("messages"\s*:|$)')


@dataclass(frozen=True, slots=True)
class Transcript:
    """One chat, read and checked.

    Attributes:
        thread: What it is called; part of each key.
        turns: Key and value of each turn, in order.
        skipped: How many messages are none: by their role, or since they hold nothing visible.
    """

    thread: str
    turns: list[tuple[str, dict[str, Any]]]
    skipped: int


def is_transcript(file: Path) -> bool:
    """Tell whether a file is a chat, by its first line; else it is to be JSON Lines of memories.

    Raises:
        OSError: It cannot be read.
    """
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        first = next((line.strip() for line in lines if line.strip()), "")
    if _BEGINNING.match(first):
        return True
    try:
        document = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "messages" in document


def read_transcript(file: Path, thread: str | None = None, *, all_roles: bool = False) -> Transcript:
    """Read a chat: a JSON list of messages, or an object with such a list as "messages".

    Args:
        file: The file.
        thread: What to call it; None takes the file's name without its ending.
        all_roles: Take messages of the system and of tools too.

    Raises:
        ValueError: Something in it is no message; the error says which one, and repeats nothing of it.
        OSError: It cannot be read.
    """
    thread = check_thread(file.stem if thread is None else thread)
    messages = _messages(file)
    turns = []
    for index, message in enumerate(messages):
        try:
            value = _value(message, all_roles=all_roles)
        except (TypeError, ValueError) as error:
            raise ValueError(f"message {index} of {file.name}: {error}") from None
        if value is not None:
            turns.append((f"{thread}:{index}", value))
    return Transcript(thread, turns, len(messages) - len(turns))


def _messages(file: Path) -> list[Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno} of {file.name}: not JSON") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} of {file.name}: not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name}: {error}") from None
    messages = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(messages, list):
        raise ValueError(f"{file.name}: expected a list of messages, or an object with one as 'messages'")  # noqa: TRY004
    return messages


def _value(message: object, *, all_roles: bool) -> dict[str, Any] | None:
    """Return what to remember of a message; None if it is left out."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise TypeError("expected an object with a 'role'")
    content = "\n".join(_texts(message.get("content")))
    role, name = message["role"], message.get("name")
    if is_blank(content) or (role in _WITHOUT and not all_roles):
        return None
    named = {"name": name} if isinstance(name, str) and not is_blank(name) else {}
    value, _ = check_value({"text": f"{named.get('name', role)}: {content}", "role": role, **named}, None, index=True)
    return value


def _texts(content: object) -> Iterator[str]:
    """Yield the texts of a message's content: a string, None, or a list of parts."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from [part] if isinstance(part, str) else _texts_of_part(part)
    elif content is not None:
        raise TypeError(f"content is a string, null or a list of parts, not {type(content).__name__}")


def _texts_of_part(part: object) -> Iterator[str]:
    if not isinstance(part, dict):
        raise TypeError(f"a part of content is an object, not {type(part).__name__}")
    if part.get("type") in _TEXTS:
        if not isinstance(part.get("text"), str):
            raise TypeError("a part of type text has no text")
        yield part["text"]
