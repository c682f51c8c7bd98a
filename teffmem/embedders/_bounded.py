"""Running many coroutines, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["each"]

T = TypeVar("T")
R = TypeVar("R")


async def each(function: Callable[[T], Awaitable[R]], items: Iterable[T], at_once: int) -> list[R]:
    """Return ``function`` of each item, in the order of the items, with at most ``at_once`` under way.

    The first failure cancels the rest and is raised as it is, not in a group. Nothing outlives the call.
    """
    gate = asyncio.Semaphore(at_once)

    async def gated(item: T) -> R:
        async with gate:
            return await function(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(gated(item)) for item in items]
    except BaseExceptionGroup as failures:
        failure = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise failure
