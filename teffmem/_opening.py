"""Opening something by ``await`` or by ``async with``, whichever the caller writes."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Opening"]


class _Closable(Protocol):
    async def aclose(self) -> None: ...


T = TypeVar("T", bound=_Closable)


class Opening(Generic[T]):
    """A memory that is about to be opened: await it, or enter it with ``async with``, which closes it again.

    Attributes:
        memory: The memory, not yet reached for.
    """

    def __init__(self, memory: T, reach: Callable[[], Awaitable[object]]) -> None:
        """Keep a memory, and what to call so that anything wrong with its backend shows when it is opened."""
        self.memory = memory
        self._reach = reach

    def __await__(self) -> Generator[Any, None, T]:
        return self._open().__await__()

    async def __aenter__(self) -> T:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.memory.aclose()

    async def _open(self) -> T:
        try:
            await self._reach()
        except BaseException:
            await self.memory.aclose()
            raise
        return self.memory
