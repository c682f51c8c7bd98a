"""Draws the main results as one SVG for the docs, from the JSON under ``results/``; needs the group ``bench``."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.measure import RESULTS

__all__ = ["draw"]

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "benchmarks.svg"


def draw() -> None:
    """Write the picture; a panel whose results are not there says which benchmark makes them."""
    mpl.rcParams |= {"svg.hashsalt": "teffmem", "font.size": 9, "svg.fonttype": "none"}
    figure, panels = plt.subplots(1, 3, figsize=(13, 4))
    for axes, panel, name in zip(panels, (_limits, _rivals, _recall), ("latency", "rivals", "recall"), strict=True):
        path = RESULTS / f"{name}.json"
        if path.exists():
            panel(axes, json.loads(path.read_text(encoding="utf-8")))
        else:
            axes.set_title(f"{name}: not measured yet")
    figure.tight_layout()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})
    print(PICTURE)


def _limits(axes: Axes, results: dict[str, Any]) -> None:
    """Draw each ratio of latency beside its limit."""
    figures = [figure for figure in results["figures"] if figure["at_most"] is not None]
    names, values = [figure["name"] for figure in figures], [figure["value"] for figure in figures]
    axes.barh(names, values, color="#4c78a8")
    axes.scatter([figure["at_most"] for figure in figures], names, marker="|", s=150, color="#d62728", label="limit")
    axes.invert_yaxis()
    axes.set_title("times the floor (less is better)")
    axes.legend()


def _rivals(axes: Axes, results: dict[str, Any]) -> None:
    """Draw the search time of each memory by the number of items stored."""
    for memory in dict.fromkeys(row["memory"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["memory"] == memory]
        axes.plot([row["items"] for row in rows], [row["search"]["p50"] for row in rows], marker="o", label=memory)
    axes.set(xscale="log", yscale="log", xlabel="items stored", ylabel="ms")
    axes.set_title("search within one namespace of 100, p50")
    axes.legend()


def _recall(axes: Axes, results: dict[str, Any]) -> None:
    """Draw the shares found."""
    figures = [
        figure for figure in results["figures"] if "categories 1-4" in figure["name"] or "para" in figure["name"]
    ]
    names = [figure["name"].replace(", categories 1-4", "") for figure in figures]
    axes.barh(names, [figure["value"] for figure in figures], color="#54a24b")
    axes.set(xlim=(0, 1))
    axes.invert_yaxis()
    axes.set_title("share found (more is better)")
