"""What the command line accepts: verbs, options, and what their values mean.

argparse of the standard library does: a dozen verbs need no dependency.
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, get_args

import platformdirs

from teffmem.ranking import Mode

__all__ = ["UsageError", "fields", "parse", "version"]

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_REPEATED = re.compile(r"(invalid \w+(?: value)?|explicit argument):? '.*?'(?= \(choose|$)", re.DOTALL)  # by argparse
_EPILOG = "Exit status: 0 done, 1 nothing found (doctor: something is wrong), 2 a mistake or a failure."


class UsageError(ValueError):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are exceptions."""

    def error(self, message: str) -> NoReturn:
        said = _REPEATED.sub(r"\1", message)
        raise UsageError(f"{said}; see {self.prog} --help")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line; ``verb`` says what to do. None: those of this process.

    Raises:
        UsageError: There is something in it that no verb takes. No message repeats a text.
        SystemExit: ``--help`` or ``--version`` was asked for, and printed.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if any(re.match(r"--?[a-zA-Z]", argument) for argument in unknown):
        raise UsageError(f"an option that {options.verb} does not have; see teffmem {options.verb} --help")
    if unknown:  # most likely words of a text, which no message may repeat
        raise UsageError(f"{len(unknown)} arguments too many for {options.verb}; quote a text that has blanks")
    return options


def version() -> str:
    """Return the version of the installed package."""
    try:
        return metadata.version("teffmem")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _default_location() -> str:
    """Return TEFFMEM_STORE, or else the file in the platform's folder for a user's data."""
    return os.environ.get("TEFFMEM_STORE") or str(platformdirs.user_data_path("teffmem", False) / "memory.db")


def _embedder_config(named: str) -> dict[str, Any] | None:
    """Return the config of an embedder given as ``NAME``, ``PROVIDER:MODEL`` or a JSON object; None for ``none``."""
    if named == "none":
        return None
    if named.lstrip().startswith("{"):
        return _object(named)
    provider, _, model = named.partition(":")
    return {"provider": provider, **({"model": model} if model else {})}


def fields(given: Sequence[str]) -> dict[str, Any]:
    """Return the fields given as ``name=value``: a value that is JSON is read as such, any other is a string."""
    pairs = [field.partition("=") for field in given]
    if any(not (name and equals) for name, equals, _ in pairs):
        raise UsageError("--field is name=value")
    if any(name == "text" for name, _, _ in pairs):
        raise UsageError("the field 'text' is the text itself; give --field another name")
    return {name: _value(text) for name, _, text in pairs}


def _seconds(duration: str) -> float:
    """Return a duration such as 90, 15m, 2h or 30d in seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdw]?)", duration)
    if match is None:
        raise argparse.ArgumentTypeError(f"{duration!r} is no duration, such as 90, 15m, 2h or 30d")
    return float(match[1]) * _UNITS[match[2]]


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _object(text: str) -> dict[str, Any]:
    """Return a JSON object given on the command line."""
    found = _value(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("not a JSON object")  # argparse would repeat the text for a ValueError
    return found


def _parser() -> argparse.ArgumentParser:
    about = "Long-term memory in a file of your own."
    parser = _Parser(prog="teffmem", description=about, epilog=_EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"teffmem {version()}")
    _add_place(parser, _default_location(), os.environ.get("TEFFMEM_EMBEDDER") or "minilm")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    for name, (about, *parts) in _VERBS.items():
        verb = verbs.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False)
        _add_place(verb, argparse.SUPPRESS, argparse.SUPPRESS)
        for add in parts:
            add(verb)
    return parser


def _add_place(parser: argparse.ArgumentParser, store: str, embedder: str) -> None:
    """Add what every verb takes, before or after its name."""
    parser.add_argument(
        "--store", default=store, metavar="PATH|URL", help="where memories are; default: $TEFFMEM_STORE, see doctor"
    )
    parser.add_argument(
        "--embedder",
        type=_embedder_config,
        default=embedder,
        metavar="NAME",
        help="minilm, none (words alone), PROVIDER:MODEL or a JSON object; default: $TEFFMEM_EMBEDDER, or minilm",
    )


def _add_namespace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="SEGMENT",
        help="a segment of the namespace, as it is; repeat for each: -n users -n ana. Without: the root",
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_remember(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to remember; - reads it from standard input")
    parser.add_argument("--key", help="its name; default: a short one is made, and printed")
    parser.add_argument("--ttl", type=_seconds, metavar="DURATION", help="forget it after 90 (seconds), 15m, 2h, 30d")
    parser.add_argument("--thread", help="the conversation or document it is one turn of")
    parser.add_argument(
        "--field", action="append", default=[], metavar="NAME=VALUE", help="another field, JSON or else a string"
    )


def _add_recall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="the question")
    parser.add_argument("-k", type=int, default=10, metavar="N", help="how many at most; default: 10")
    parser.add_argument("--mode", choices=("auto", *get_args(Mode)), default="auto", help="default: auto")
    parser.add_argument("--min-similarity", type=float, metavar="COSINE", help="least cosine, -1 to 1")
    parser.add_argument("--min-coverage", type=float, metavar="SHARE", help="least share of the question's words")
    parser.add_argument("--explain", action="store_true", help="show the parts of each score")


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--filter", type=_object, metavar="JSON", help='conditions on fields: {"year": {"$gte": 2020}}')


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its name, in exactly this namespace")


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="how many at most; default: 100")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="how many to leave out first")


def _add_forget(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("key", nargs="?", metavar="KEY", help="one memory, in exactly this namespace")
    what.add_argument("--all-of-namespace", action="store_true", help="all of the namespace and below it")
    what.add_argument("--everything", action="store_true", help="all there is")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _add_namespaces(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prefix",
        action="append",
        default=[],
        metavar="SEGMENT",
        help="what they begin with; repeat for each segment; * is any one",
    )
    parser.add_argument("--max-depth", type=int, metavar="N", help="cut longer ones to N segments")


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON Lines of memories, or a chat")
    parser.add_argument("--thread", help="the thread of a chat; default: the file's name without its ending")
    parser.add_argument("--all-roles", action="store_true", help="of chats, take system and tool messages too")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: standard output")


def _add_cleanup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-age", type=_seconds, metavar="DURATION", help="also what was last put longer ago: 90, 15m, 2h, 30d"
    )


_Part = Callable[[argparse.ArgumentParser], None]

_VERBS: dict[str, tuple[str, *tuple[_Part, ...]]] = {
    "demo": ("remember a few facts and find them again, in a file that is then removed",),
    "remember": ("store a text", _add_remember, _add_namespace, _add_json),
    "recall": ("find memories for a question, best first", _add_recall, _add_filter, _add_namespace, _add_json),
    "get": ("print one memory", _add_key, _add_namespace, _add_json),
    "list": ("print memories, newest first", _add_page, _add_filter, _add_namespace, _add_json),
    "forget": ("remove memories", _add_forget, _add_namespace, _add_json),
    "namespaces": ("print the namespaces that hold something", _add_namespaces, _add_page, _add_json),
    "stats": ("count what is there", _add_namespace, _add_json),
    "import": ("read memories or chats from files", _add_import, _add_namespace, _add_json),
    "export": ("write memories as JSON Lines", _add_export, _add_namespace),
    "cleanup": ("remove what has expired for good", _add_cleanup, _add_namespace, _add_json),
    "doctor": ("say what is installed, where the file is, and what is wrong", _add_json),
}
