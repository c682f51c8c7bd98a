"""The order of writes: what touches the same memory happens in the order in which it was asked for.

A put may wait for its embedding; whatever comes after it on the same key, or on a subtree that holds the key,
waits for the put. What does not overlap waits for nothing.
"""

import asyncio
from collections.abc import Iterable
from typing import Self

from teffmem.namespace import Namespace, lineage, starts_with

__all__ = ["Turn", "WriteOrder"]

Name = tuple[Namespace, str]


class Turn:
    """One write's place in the order, given up on leaving the ``with`` block; `arrive` waits until it has come.

    A turn that is given up before it came passes to those behind it only when it would have come, so that they need to
    know of nobody but those just ahead of them.
    """

    def __init__(self, order: "WriteOrder", names: tuple[Name, ...], tree: Namespace | None) -> None:
        self._order = order
        self._ahead = 0
        self._behind: list[Turn] = []
        self._has_come = asyncio.Event()
        self._is_over = False
        self.names = names
        self.tree = tree

    async def arrive(self) -> None:
        """Wait for all earlier writes that overlap this one."""
        if self._ahead:
            await self._has_come.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let later writes go on, whether this one was done or not."""
        self._is_over = True
        leaving = [] if self._ahead else [self]
        while leaving:
            leaving += leaving.pop()._leave()

    def follow(self, turns: Iterable["Turn"]) -> None:
        """Come after these turns, none of which has left."""
        for turn in set(turns):
            turn._behind.append(self)
            self._ahead += 1

    def _leave(self) -> list["Turn"]:
        """Make room; return the turns whose turn it now would be, had they not been given up."""
        self._order.forget(self)
        for turn in self._behind:
            turn._ahead -= 1
        come = [turn for turn in self._behind if not turn._ahead]
        for turn in come:
            turn._has_come.set()
        return [turn for turn in come if turn._is_over]


class WriteOrder:
    """Hands out turns. The order of the calls to `names` and `tree` is the order of the writes."""

    def __init__(self) -> None:
        self._last_of: dict[Name, Turn] = {}
        self._trees: dict[Namespace, Turn] = {}
        self._turns: dict[Turn, None] = {}

    def names(self, names: Iterable[Name]) -> Turn:
        """Take a turn for writing these memories."""
        turn = Turn(self, tuple(dict.fromkeys(names)), None)
        earlier = [self._last_of[name] for name in turn.names if name in self._last_of]
        if self._trees:
            above = {top for namespace, _ in turn.names for top in lineage(namespace)}
            earlier += [self._trees[top] for top in above if top in self._trees]
        turn.follow(earlier)
        self._last_of.update(dict.fromkeys(turn.names, turn))
        self._turns[turn] = None
        return turn

    def tree(self, top: Namespace) -> Turn:
        """Take a turn for changing whatever lives at and below ``top``."""
        turn = Turn(self, (), top)
        turn.follow(other for other in self._turns if _overlaps(other, top))
        self._trees[top] = turn
        self._turns[turn] = None
        return turn

    def forget(self, turn: Turn) -> None:
        """Drop a turn that has left."""
        del self._turns[turn]
        for name in turn.names:
            if self._last_of.get(name) is turn:
                del self._last_of[name]
        if turn.tree is not None and self._trees.get(turn.tree) is turn:
            del self._trees[turn.tree]


def _overlaps(turn: Turn, top: Namespace) -> bool:
    if turn.tree is not None:
        return starts_with(turn.tree, top) or starts_with(top, turn.tree)
    return any(starts_with(namespace, top) for namespace, _ in turn.names)
