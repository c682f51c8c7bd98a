"""What is known of providers that embed over HTTP, as data: addresses, key variables, limits and dialects.

Sources: the providers' API references as of 2026. Limits of tokens are kept well below the documented ones
(OpenAI 300,000 a request, Voyage 120,000 for its largest models, Mistral 16,384), since tokens are only estimated
here. Texts a request are fewer than providers allow (OpenAI 2,048, Voyage 1,000, Mistral 256): an answer of more
than about 100,000 numbers in JSON takes over 50 ms to parse, during which the event loop stands still. OpenAI
is asked for base64 instead, which is parsed thirty times faster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

__all__ = ["GENERIC", "PROVIDERS", "Provider"]


@dataclass(frozen=True, slots=True)
class Provider:
    """How one provider is spoken to.

    Attributes:
        base_url: Where ``/embeddings`` is appended.
        key_variable: Environment variable that usually holds the key; None if no key is needed.
        batch_size: Texts a request.
        batch_tokens: Tokens a request, estimated.
        dim_field: Request field that asks for a dimension.
        fields: Sent with every request.
        query_fields: Sent with questions.
        document_fields: Sent with what is stored.
    """

    base_url: str = ""
    key_variable: str | None = None
    batch_size: int = 32
    batch_tokens: int = 100_000
    dim_field: str = "dimensions"
    fields: Mapping[str, Any] = field(default_factory=dict)
    query_fields: Mapping[str, Any] = field(default_factory=dict)
    document_fields: Mapping[str, Any] = field(default_factory=dict)


GENERIC: Final = Provider(fields={"encoding_format": "float"})
"""Any OpenAI-compatible server."""

PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "jina": Provider(
            "https://api.jina.ai/v1",
            "JINA_API_KEY",
            query_fields={"task": "retrieval.query"},
            document_fields={"task": "retrieval.passage"},
        ),
        "mistral": Provider(
            "https://api.mistral.ai/v1", "MISTRAL_API_KEY", batch_tokens=12_000, dim_field="output_dimension"
        ),
        "ollama": Provider("http://localhost:11434/v1", fields={"encoding_format": "float"}),
        "openai": Provider(
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            batch_size=256,
            batch_tokens=200_000,
            fields={"encoding_format": "base64"},
        ),
        "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "voyage": Provider(
            "https://api.voyageai.com/v1",
            "VOYAGE_API_KEY",
            batch_tokens=90_000,
            dim_field="output_dimension",
            query_fields={"input_type": "query"},
            document_fields={"input_type": "document"},
        ),
    }
)
"""By name. Voyage refuses the encoding "float", and numbers are its default, so none is named there."""
