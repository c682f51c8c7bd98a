"""What can go wrong, as one tree.

    TeffmemError
    ├── FilterError (ValueError)              a search filter that has no meaning
    ├── UnsupportedError (ValueError)         a backend cannot do what was asked
    ├── EmbedderMismatchError (ValueError)    a store's vectors come from another embedder
    ├── MissingExtraError (ImportError)       an optional dependency is not installed
    ├── ProviderError (RuntimeError)          an embedding or chat provider failed
    │   └── RateLimitError                    ... because it was asked too often
    └── StoreError (RuntimeError)             a backend failed, or is closed
        └── PartialWriteError                 ... after some of a batch was written

Arguments of the wrong type or value raise plain TypeError and ValueError. No message holds a memory's
text, a query, a reply or a secret.
"""

from collections.abc import Sequence

__all__ = [
    "EmbedderMismatchError",
    "FilterError",
    "MissingExtraError",
    "PartialWriteError",
    "ProviderError",
    "RateLimitError",
    "StoreError",
    "TeffmemError",
    "UnsupportedError",
]


class TeffmemError(Exception):
    """Base of every error that teffmem defines."""


class FilterError(TeffmemError, ValueError):
    """A filter with an unknown operator, a wrong shape or a value that no memory can hold."""


class UnsupportedError(TeffmemError, ValueError):
    """The backend lacks the capability that a call needs; the message names both."""


class EmbedderMismatchError(TeffmemError, ValueError):
    """The store holds vectors of another embedder than the one it was opened with.

    Attributes:
        stored: Fingerprint of the embedder that made the store's vectors.
        given: Fingerprint of the embedder at hand.
    """

    def __init__(self, stored: str, given: str) -> None:
        super().__init__(
            f"this store's vectors were made by {stored!r}, but the embedder given is {given!r}: "
            "open the store with the embedder it was filled with, or export it and import it into a new one; "
            "get, list, delete, cleanup and mode='lexical' work meanwhile"
        )
        self.stored = stored
        self.given = given


class MissingExtraError(TeffmemError, ImportError):
    """An optional dependency is missing; the message has the pip line that brings it."""

    def __init__(self, wanted_by: str, extra: str, *, otherwise: str = "") -> None:
        hint = f", or {otherwise}" if otherwise else ""
        super().__init__(f"{wanted_by} needs an extra: pip install 'teffmem[{extra}]'{hint}")
        self.extra = extra


class ProviderError(TeffmemError, RuntimeError):
    """A provider did not answer, answered with an error, or answered nonsense.

    Attributes:
        status: HTTP status of the last answer; None where there was none.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class RateLimitError(ProviderError):
    """A provider refused for the rate of calls, and went on refusing.

    Attributes:
        retry_after: Seconds that the provider asked to wait; None if it did not say.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, status=429)
        self.retry_after = retry_after


class StoreError(TeffmemError, RuntimeError):
    """A backend could not do its work: a file not readable or writable, a server away, a closed store."""


class PartialWriteError(StoreError):
    """A backend without transactions failed amid a batch. Repeating the same call is safe.

    Attributes:
        written: The (namespace, key) pairs that are stored.
        missing: The (namespace, key) pairs that are not.
    """

    def __init__(
        self,
        written: Sequence[tuple[tuple[str, ...], str]],
        missing: Sequence[tuple[tuple[str, ...], str]],
    ) -> None:
        super().__init__(f"{len(written)} of {len(written) + len(missing)} items were written; repeat the call")
        self.written = list(written)
        self.missing = list(missing)
