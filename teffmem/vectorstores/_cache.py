"""Indexes of the scopes that were searched last, within a budget of memory."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from teffmem.vectorstores._scope import ScopeIndex

__all__ = ["Held", "IndexCache"]

Scope = TypeVar("Scope", bound=Hashable)


class Held:
    """An index with the lock that whoever uses it holds.

    Attributes:
        owner: The backend's own name for what the index describes, where a namespace can be emptied and begun anew.
    """

    def __init__(self) -> None:
        self.index = ScopeIndex()
        self.owner: int | None = None
        self.lock = threading.Lock()


class IndexCache(Generic[Scope]):
    """Keeps indexes by scope, dropping those unused for longest when they outgrow ``budget`` bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._held: OrderedDict[Scope, tuple[Held, int]] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def take(self, scope: Scope) -> Held:
        """Return the index of a scope, an empty one if none is held."""
        with self._lock:
            held, size = self._held.pop(scope, (None, 0))
            held = held or Held()
            self._held[scope] = (held, size)
            return held

    def measure(self, scope: Scope, held: Held) -> None:
        """Note how large an index has become, and drop others, or itself, until the budget holds."""
        size = held.index.nbytes
        with self._lock:
            current = self._held.get(scope)
            if current is None or current[0] is not held:
                return
            self._held[scope] = (held, size)
            self._total += size - current[1]
            while self._total > self._budget and self._held:
                _, (_, dropped) = self._held.popitem(last=False)
                self._total -= dropped

    def drop(self, scope: Scope) -> None:
        """Forget the index of a scope."""
        with self._lock:
            _, size = self._held.pop(scope, (None, 0))
            self._total -= size

    def clear(self) -> None:
        """Forget every index."""
        with self._lock:
            self._held.clear()
            self._total = 0
