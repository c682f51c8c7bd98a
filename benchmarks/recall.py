"""Is the right memory found? LoCoMo's questions and the paraphrases, through the public API with its defaults."""

import argparse

from benchmarks import locomo, paraphrases
from benchmarks.measure import Report

__all__ = ["run"]


async def run(options: argparse.Namespace) -> Report:
    """Measure both sets; ``options.data`` is the folder of LoCoMo's conversations."""
    report = Report("recall")
    await locomo.recall(report, options.data)
    await paraphrases.recall(report, options.data)
    return report
