"""Opening something by ``await`` or by ``async with``, whichever the caller writes."""

from collections.abc import Generator
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Opening"]


class _Openable(Protocol):
    async def get(self, namespace: tuple[str, ...], key: str) -> object: ...

    async def aclose(self) -> None: ...


T = TypeVar("T", bound=_Openable)


class Opening(Generic[T]):
    """A memory that is about to be opened: await it, or enter it with ``async with``, which closes it again.

    Attributes:
        memory: The memory, not yet reached for.
    """

    def __init__(self, memory: T) -> None:
        self.memory = memory

    def __await__(self) -> Generator[Any, None, T]:
        return self._open().__await__()

    async def __aenter__(self) -> T:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.memory.aclose()

    async def _open(self) -> T:
        """Reach for the backend, so that what is wrong with it shows here."""
        try:
            await self.memory.get((), "-")
        except BaseException:
            await self.memory.aclose()
            raise
        return self.memory
