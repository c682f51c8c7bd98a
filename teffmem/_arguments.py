"""What a caller may pass for a count, a duration, a share: checked once, here, before anything happens."""

import sys
from datetime import datetime, timedelta

from teffmem.items import Default, Value, json_object
from teffmem.namespace import check_key
from teffmem.text import is_blank

__all__ = [
    "check_count",
    "check_keys",
    "check_share",
    "check_text",
    "check_thread",
    "check_value",
    "duration",
    "lifetime",
]


_EVERYTHING = 2**61  # more than any store holds, and two of them still fit a machine's integer


def check_count(name: str, count: object) -> int:
    """Return a number of things: an integer from 0 (k, limit, offset); one beyond any store's size is cut to that.

    Raises:
        TypeError: It is no integer, or a bool.
        ValueError: It is negative.
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"{name} is a whole number, not {count!r} of type {type(count).__name__}")
    if count < 0:
        raise ValueError(f"{name} is 0 or more, not {count}")
    return min(int(count), _EVERYTHING)


def check_keys(keys: object) -> list[str]:
    """Return a list of keys; a bare string is refused, since it would be taken apart into letters."""
    if not isinstance(keys, list | tuple):
        raise TypeError(f"keys is a list of strings, not {type(keys).__name__}")
    return [check_key(key) for key in keys]


def check_share(name: str, number: object, low: float, high: float) -> float:
    """Return a finite number between ``low`` and ``high``, both included."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} is a number, not {type(number).__name__}")
    if not low <= number <= high:
        raise ValueError(f"{name} is from {low:g} to {high:g}, not {number!r}")
    return float(number)


def check_text(name: str, text: object) -> str:
    """Return a text with something visible in it."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is a string, not {type(text).__name__}")
    if is_blank(text):
        raise ValueError(f"{name} holds nothing visible ({len(text)} characters); give it words, or pass index=False")
    return text


def check_thread(thread: object) -> str:
    """Return the name of a thread; the rules are those of a key."""
    try:
        return check_key(thread)
    except (TypeError, ValueError) as error:
        raise type(error)(f"thread: {error}") from None


def check_value(value: object, text: object, *, index: bool) -> tuple[Value, str | None]:
    """Return a copy of a value, and the text that is indexed instead of the value's own, if any.

    Raises:
        TypeError, ValueError: The value is no JSON object, or there is nothing to index.
    """
    copy = json_object(value)
    if text is not None:
        json_object({"text": text} if isinstance(text, str) else {})
        return copy, check_text("text", text)
    if index:
        if "text" not in copy:
            raise ValueError("the value has no field 'text'; add one, pass text=, or index=False")
        check_text("the value's 'text'", copy["text"])
    return copy, None


def duration(name: str, given: object) -> float:
    """Return a length of time in seconds: a number or timedelta, above 0 and finite."""
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name} is a number of seconds or a timedelta, not {type(given).__name__}")
    if not (seconds > 0 and _is_finite(seconds)):
        raise ValueError(f"{name} is above 0 seconds and finite, not {given!r}")
    return float(seconds)


def _is_finite(number: float) -> bool:
    """Tell whether a float can hold a number: an integer may be beyond it."""
    return abs(number) <= sys.float_info.max


def lifetime(ttl: object, default: float | None) -> float | None:
    """Return a time to live in seconds; None for ever; the store's own where nothing was given."""
    if isinstance(ttl, Default):
        return default
    return None if ttl is None else duration("ttl", ttl)


def moment(name: str, given: object) -> float:
    """Return a point in time in Unix seconds: a finite number, or a datetime that knows its time zone."""
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ValueError(f"{name} is a datetime without a time zone; add one, such as tzinfo=timezone.utc")
        return given.timestamp()
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{name} is a number of Unix seconds or an aware datetime, not {type(given).__name__}")
    if not _is_finite(given):
        raise ValueError(f"{name} is finite, not {given!r}")
    return float(given)
