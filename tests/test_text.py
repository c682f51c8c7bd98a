"""Words: whatever is written can be found by what is written."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from teffmem.text import ANALYSIS, analyse, is_blank, query_terms, stems, unpack
from tests import strategies


def terms(text: str) -> set[int]:
    hashes, _ = unpack(analyse(text).packed)
    return set(hashes.tolist())


def finds(query: str, text: str) -> bool:
    """Tell whether a query shares a term with a text."""
    return not terms(text).isdisjoint(query_terms(query).tolist())


def finds_wholly(query: str, text: str) -> bool:
    """Tell whether a text holds every term of a query, and the query has one."""
    wanted = set(query_terms(query).tolist())
    return bool(wanted) and wanted <= terms(text)


@pytest.mark.parametrize(
    "query",
    [
        "a-b",
        "c++",
        '"',
        "NOT",
        "foo:bar",
        "(",
        "*",
        "_",
        "O'Brien",
        "x AND",
        "%",
        "123e4567-e89b-42d3-a456-426614174000",
        "the",
        "?!",
        "´",
        "½",
        "…",
        "$",
        "\\",
        "\U0001f600",
        "👩‍👩‍👧",
        "☕️",
        "-1",
        "10.0.0.1",
        "a_b",
        "NEAR(a b)",
        "^a",
        "{a b}",
        "'; DROP TABLE x; --",
    ],
)
def test_d19_no_text_is_syntax(query: str) -> None:
    """Operators, quotes and symbols of a query are text: an item that holds them literally is found, in full."""
    assert finds_wholly(query, f"we said {query} yesterday")
    assert finds_wholly(query, query)


@given(st.text(max_size=20), st.text(max_size=20))
@example("\u0301", "")
@example("\u3164", "")
@example("\uffa0", "a")
@example("\u0301", "e")
@example("\u0640", "")
def test_a_text_is_found_by_itself(text: str, more: str) -> None:
    """Any visible text has a term, and finds itself, alone or before other text; a blank one has none."""
    assert (query_terms(text).size == 0) == is_blank(text)
    assert not analyse(text).length or query_terms(text).size
    if not is_blank(text):
        assert finds_wholly(text, text)
        assert finds_wholly(text, f"{text} {more}")


@pytest.mark.parametrize(
    "text",
    ["", "   ", "\n\t", "\u200b", "\ufeff", "\u00a0\u3000", "\u2060\u00ad", "\x00\x01", "\u3164", "\u2800\ufe0f"],
)
def test_d13_blank_forms_have_nothing_to_find(text: str) -> None:
    """Blanks, controls, zero-width characters and fillers are blank, and have no terms and no length."""
    assert is_blank(text)
    assert query_terms(text).tolist() == []
    assert stems(text) == set()
    found = analyse(text)
    assert (found.packed.tolist(), found.length) == ([], 0)


@pytest.mark.parametrize("text", ["a", "  a", "?", "\u200b.", "水", "\U0001f600", "\u0301", "٣", "\ue000"])
def test_what_can_be_seen_is_not_blank(text: str) -> None:
    """A letter, mark, digit, symbol or emoji, wherever it stands, is something."""
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("绿茶", "我喜欢绿茶"),
        ("茶", "我喜欢绿茶"),
        ("東京", "私は東京都に住んでいます"),
        ("コーヒー", "毎朝コーヒーを飲む"),
        ("ｺｰﾋｰ", "毎朝コーヒーを飲む"),
        ("がっこう", "がっこうへいく"),
        ("커피", "나는 커피를 마신다"),
        ("กาแฟ", "ฉันดื่มกาแฟทุกเช้า"),
        ("កាហ្វេ", "ខ្ញុំផឹកកាហ្វេ"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("தமிழ்", "நான் தமிழ் பேசுகிறேன்"),
        ("القهوة", "أحب القهوة"),
        ("مدرسة", "هذه مَدْرَسَةٌ كبيرة"),
        ("محمد", "اسمه محـــمد"),
        ("שלום", "שָׁלוֹם לכולם"),
        ("кофе", "Я люблю КОФЕ"),
        ("καφες", "Μου αρέσει ο ΚΑΦΈΣ"),
        ("iphone手机", "新的iPhone手机壳"),
    ],
)
def test_e1_texts_in_many_scripts_are_found(query: str, text: str) -> None:
    """A word is found within a sentence of its script, with or without blanks, points and full-width forms."""
    assert finds_wholly(query, text)
    assert not finds("zebra", text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe"),
        ("café", "cafe\u0301"),
        ("CAFÉ", "café"),
        ("Łódź", "lodz"),
        ("Đà Nẵng", "da nang"),
        ("smørrebrød", "SMORREBROD"),
        ("Straße", "STRASSE"),
        ("œuvre", "OEUVRE"),
        ("İstanbul", "istanbul"),
        ("IŞIK", "ışık"),
        ("ΟΔΟΣ", "οδός"),
        ("ﬁle", "file"),
        ("ＡＢＣ１２", "abc12"),
        ("m²", "m2"),
        ("co\u00adoperate", "cooperate"),
        ("क्\u200dष", "क्ष"),
        ("running", "runs"),
        ("deployments", "deployed"),
        ("Don't", "DON'T"),
    ],
)
def test_spellings_of_a_word_meet(one: str, other: str) -> None:
    """Case, accents, barred letters, ligatures, widths, soft hyphens and English endings do not part a word."""
    assert stems(one) == stems(other)
    assert set(query_terms(one).tolist()) == set(query_terms(other).tolist())


@pytest.mark.parametrize(("one", "other"), [("は", "ば"), ("cat", "car"), ("10", "100"), ("की", "का"), ("u1", "u10")])
def test_different_words_stay_apart(one: str, other: str) -> None:
    """A voiced kana, a letter, a digit or a vowel sign makes another word."""
    assert not finds(one, other)


def test_weak_words_count_only_alone() -> None:
    """Function words and symbols are indexed without length, and a query uses them only if it has nothing else."""
    assert analyse("The cat, and the dog!").length == 2
    assert finds_wholly("the", "The cat")
    assert finds_wholly("to be or not to be", "not to be, or to be")
    assert query_terms("the cat?").tolist() == query_terms("cat").tolist()
    assert not finds("the dog", "the cat")
    assert stems("the running dogs") == {"run", "dog"}
    assert stems("the") == {"the"}


def test_terms_are_counted() -> None:
    """A term stands once with its count, words of one stem together, and the count ends at 255."""
    found = analyse("run runs running cat")
    hashes, counts = unpack(found.packed)
    assert dict(zip(hashes.tolist(), counts.tolist(), strict=True)) == {
        int(query_terms("run")[0]): 3,
        int(query_terms("cat")[0]): 1,
    }
    assert found.length == 4
    assert [array.dtype.name for array in (found.packed, hashes, counts)] == ["uint64", "uint64", "uint8"]
    _, counts = unpack(analyse("cat " * 1000).packed)
    assert counts.tolist() == [255]
    assert analyse("cat " * 1000).length == 1000


def test_a_query_asks_for_each_term_once_in_order() -> None:
    """Terms of a query are distinct, in order of first appearance."""
    assert query_terms("dog cat dogs cat").tolist() == query_terms("dog cat").tolist()
    assert query_terms("dog cat").tolist() == query_terms("cat dog").tolist()[::-1]
    assert query_terms("dog").dtype.name == "uint64"


def test_characters_without_blanks_go_in_pairs() -> None:
    """Of a run of n characters every one and every neighbouring pair is a term."""
    text = "我喜欢绿茶"
    pieces = [*text, *(one + other for one, other in pairwise(text))]
    assert stems(text) == set(pieces)
    assert analyse(text).length == len(pieces)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("running", [70312018560590398]),
        ("Straße café", [24704802693372738, 64399079316604024]),
        ("绿茶", [1944379508656096, 66429933764979530, 28687243895014932]),
        ("हिन्दी", [65034876864402232]),
        ("?", [2468461290813447]),
    ],
)
def test_terms_never_change_under_one_name(text: str, expected: list[int]) -> None:
    """A store keeps these numbers: if this fails, ANALYSIS needs a new name."""
    assert ANALYSIS == "words-1"
    assert query_terms(text).tolist() == expected


@given(st.text(st.characters(), max_size=30))
def test_e3_any_string_can_be_analysed(text: str) -> None:
    """Controls, NUL, lone surrogates and unassigned characters raise nothing, and give the same each time."""
    first, second = analyse(text), analyse(text)
    assert first.packed.tolist() == second.packed.tolist()
    assert first.length == second.length
    assert set(query_terms(text).tolist()) <= terms(text)


@pytest.mark.parametrize("text", ["a\x00b", "a\x1b[31m b", "a\x7fb", "a\u2028b", "\ufeffa b", "a\ud800b"])
def test_e3_controls_part_words_and_hide_none(text: str) -> None:
    """What stands on either side of a control character is found."""
    assert finds_wholly("b", text)
    assert not is_blank(text)


@given(strategies.texts)
def test_case_does_not_matter(text: str) -> None:
    """A text has the same terms in capitals, in small letters and folded by Unicode."""
    assert terms(text.upper()) == terms(text.lower()) == terms(text.casefold()) == terms(text)


def test_threads_agree() -> None:
    """Eight threads that analyse at once get what one gets."""
    words = [f"{stem}{ending}" for stem in ("connect", "relat", "nation", "happi", "argu") for ending in _ENDINGS]
    texts = [" ".join(words[i:] + words[:i]) + f" unseen{i}ing" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        together = [found.packed.tolist() for found in pool.map(analyse, texts * 4)]
    assert together == [analyse(text).packed.tolist() for text in texts] * 4


_ENDINGS = ("", "s", "ed", "ing", "ion", "ions", "ional", "ness", "ative", "ment", "ments", "able", "ly", "ies", "y")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "the quick brown foxes jump over lazy dogs, " * 23_000,
        " ".join(f"w{i}" for i in range(140_000)),
        "绿茶" * 160_000,
        "é" * 500_000,
        "e" + "\u0301" * 500_000,
        "\u0301" * 500_000,
        "\u0301\u0327" * 250_000,
        "e" + "\uff9e\u0327\u0301" * 160_000,
        " " * 1_000_000,
        "?!" * 500_000,
    ],
    ids=[
        "word",
        "words",
        "distinct",
        "unspaced",
        "letters",
        "marks",
        "loose marks",
        "mixed marks",
        "half-width marks",
        "blanks",
        "symbols",
    ],
)
@pytest.mark.timeout(20)
def test_a_megabyte_is_analysed_in_seconds(text: str) -> None:
    """The work grows with the length of a text and no faster, whatever fills it, marks out of order included."""
    assert set(query_terms(text).tolist()) <= terms(text)
    assert is_blank(text) == text.isspace()
