"""The benchmarks' inputs are what they claim to be."""

import json
from pathlib import Path

import pytest

from benchmarks import locomo, paraphrases
from teffmem.text import stems


def test_no_question_of_the_paraphrases_shares_a_stem_with_its_fact() -> None:
    """The set holds 100 facts, each asked for in words of which it has none."""
    pairs = paraphrases.read()

    assert len(pairs) == 100
    assert [pair for pair in pairs if stems(pair.fact) & stems(pair.question)] == []


def test_a_pair_with_a_shared_stem_is_refused(tmp_path: Path) -> None:
    """A set in which words could find a fact is no measure of meaning, and reading it says where."""
    path = tmp_path / "pairs.jsonl"
    good, bad = ["I own a cat.", "Which pet lives here?"], ["We keep bees.", "What is a bee?"]
    path.write_text("".join(json.dumps({"fact": fact, "question": q}) + "\n" for fact, q in (good, bad)))

    with pytest.raises(ValueError, match=r"line 2: fact and question share \['bee'\]"):
        paraphrases.read(path)


@pytest.mark.parametrize(("caption", "text"), [("", "Ann: hi"), ("a red barn", "Ann: hi [a red barn]")])
def test_a_chat_turn_becomes_one_item_of_its_session(caption: str, text: str) -> None:
    """Text is speaker, words and the caption if there is one; the session is the thread."""
    turn = {"id": "D3:2", "speaker": "Ann", "text": "hi", "date": "1 May", "session": 3, "caption": caption}

    item = locomo.item("conv-1", turn)

    assert item == {
        "namespace": ["conv-1"],
        "key": "D3:2",
        "value": {"text": text, "speaker": "Ann", "date": "1 May"},
        "thread": "3",
    }
