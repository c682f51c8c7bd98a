"""Where a memory lives: a path of segments, such as ``("users", "u1", "work")``.

Segments are compared whole, code point by code point; they are never patterns, and joining them with a
separator is never how they are told apart.
"""

from collections.abc import Iterator, Sequence

__all__ = [
    "WILDCARD",
    "Namespace",
    "check",
    "check_key",
    "decode",
    "encode",
    "lineage",
    "matches",
    "starts_with",
]

Namespace = tuple[str, ...]

WILDCARD = "*"
"""In a pattern of `matches`, exactly one segment."""

_END = b"\x00"  # closes a segment: UTF-8 holds this byte for NUL alone, which no segment may contain


def check(namespace: object) -> Namespace:
    """Return ``namespace`` as a tuple; a bare string is one segment.

    Raises:
        TypeError: It is not a string, tuple or list, or a segment is not a string.
        ValueError: A segment is empty, holds NUL or a lone surrogate.
    """
    if isinstance(namespace, str):
        namespace = (namespace,)
    if not isinstance(namespace, tuple | list):
        raise TypeError(f"a namespace is a tuple or list of strings, or one string, not {type(namespace).__name__}")
    return tuple([_check_name(segment, "segment of namespace", namespace) for segment in namespace])


def check_key(key: object) -> str:
    """Return ``key`` if it can name a memory: the rules are those of a segment."""
    return _check_name(key, "key")


def _check_name(name: object, role: str, whole: Sequence[object] = ()) -> str:
    if isinstance(name, str) and name and "\x00" not in name and (name.isascii() or _is_unicode(name)):
        return str.__str__(name)  # of a subclass, such as a string Enum, only the text
    described = f"{name!r} as a {role}{f' {tuple(whole)!r}' if whole else ''}"
    if not isinstance(name, str):
        raise TypeError(f"{described}: expected a string, not {type(name).__name__}")
    if not name:
        raise ValueError(f"{described}: expected at least one character")
    what = "the NUL character" if "\x00" in name else "a lone surrogate"
    raise ValueError(f"{described}: it may not hold {what}")


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode(namespace: Namespace) -> bytes:
    r"""Return the path as bytes: each segment in UTF-8, closed by NUL.

    Lossless and injective. Byte order is the order of the segments' code points, and the paths of a subtree
    are exactly those that start with the bytes of its top: the range from ``encode(top)`` up to
    ``encode(top) + b"\xff"``.
    """
    return b"".join(segment.encode() + _END for segment in namespace)


def decode(path: bytes) -> Namespace:
    """Return the namespace that `encode` turned into ``path``."""
    return tuple(segment.decode() for segment in path.split(_END)[:-1])


def lineage(namespace: Namespace) -> Iterator[Namespace]:
    """Yield the root, every namespace on the way down, and ``namespace`` itself."""
    return (namespace[:depth] for depth in range(len(namespace) + 1))


def starts_with(namespace: Namespace, top: Namespace) -> bool:
    """Tell whether ``namespace`` is ``top`` or lies below it."""
    return namespace[: len(top)] == top


def matches(namespace: Namespace, *, prefix: Namespace, suffix: Namespace) -> bool:
    """Tell whether ``namespace`` begins with ``prefix`` and ends with ``suffix``; ``"*"`` is any one segment."""
    if len(namespace) < max(len(prefix), len(suffix)):
        return False
    head, tail = namespace[: len(prefix)], namespace[len(namespace) - len(suffix) :]
    pairs = [*zip(head, prefix, strict=True), *zip(tail, suffix, strict=True)]
    return all(wanted in (WILDCARD, segment) for segment, wanted in pairs)
