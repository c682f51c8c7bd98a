"""Much work in small pieces, so that the event loop is never held for long."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["in_pieces"]

T = TypeVar("T")
R = TypeVar("R")

_PIECE = 200


async def in_pieces(function: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """Return what a function makes of each thing, letting the event loop go on after every 200 of them."""
    made = list(map(function, things[:_PIECE]))
    for start in range(_PIECE, len(things), _PIECE):
        await asyncio.sleep(0)
        made += map(function, things[start : start + _PIECE])
    return made
