"""Write docs/results.md, its charts, and the README's table from what was measured.

    python benchmarks/results_page.py            # writes the page and docs/figures/results-*.svg
    python benchmarks/results_page.py --check    # writes nothing; exit code 1 where they differ

Every figure comes from a kept row of ``measured`` or, for what others published, of ``published.jsonl``; the words
stand in ``results_page.md.j2``. A figure without its rows ends the command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from command_line import command_line, told
from dots import Row, chart
from results import FIGURES, finished, spread

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"
README = HERE.parent / "README.md"
OPENING = (("Adult", "1", "AUC ↑"), ("Diabetes-130", "1", "two-way TVD ↓"), ("MNIST", "1", "accuracy ↑"))
"""Lines of the headline table that the README shows."""
NAMES = {
    "aim-mbi": "AIM",
    "mst-mbi": "MST",
    "mst-dpmm": "MST (dpmm)",
    "aim-dpmm": "AIM (dpmm)",
    "opendp-mst": "MST (OpenDP)",
    "opendp-aim": "AIM (OpenDP)",
    "adult": "Adult",
    "mushroom": "Mushroom",
    "diabetes130": "Diabetes-130",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10, JPEG copy",
    "ettm1": "ETTm1",
    "simbench": "SimBench",
    "london": "London",
    "daiad": "DAIAD",
}
TABLES = (("adult", 1.0), ("adult", 3.0), ("mushroom", 1.0), ("diabetes130", 1.0))
SERIES = ("london", "daiad", "simbench", "ettm1")
IMAGES = (("mnist", 0.2), ("mnist", 1.0), ("mnist", 10.0), ("fashion-mnist", 1.0), ("cifar10", 10.0))
"""Ours by default, at the δ of what is published; a copy, which nothing published compares with, at 1e-5."""
SEEDS = 3
"""Seeds of a claim of first place."""
SIZE = 60_000
"""Images that a classifier learns from, ours and others'."""
PLAIN = {"gaussian": "our plain Gaussian", "vae": "our autoencoder"}
MEMBERSHIP = ("gan-leaks", "gan-leaks-partial", "gan-leaks-calibrated", "monte-carlo", "domias", "shadow")
"""Attacks on every method's rows whose figure is an area under ROC."""
COPIES = ("cifar10",)
"""Data sets at hand only as JPEG copies, which stand beside no figure of the originals."""


class Figure(NamedTuple):
    """A mean over seeds, and whose it is."""

    value: float
    low: float
    high: float
    seeds: int
    who: str

    def text(self, form: str) -> str:
        """Return the mean, and the range or that there is none."""
        low, high = format(self.low, form), format(self.high, form)
        spread = f" ({low.removesuffix('%')}–{high})" if low != high else ""
        return format(self.value, form) + (spread if self.seeds > 1 else " (one seed)")


def figure(values: Iterable[float], who: str) -> Figure:
    """Return a figure.

    Raises:
        SystemExit: No row is kept.
    """
    found = list(values)
    if not found:
        raise SystemExit(f"no row is kept for {who}")
    low, middle, high = spread(found)
    return Figure(middle, low, high, len(found), who)


def tables(data: str, epsilon: float | None, measure: str) -> list[Figure]:
    """Return every peer's figure, ours among them; another cap or setting is another figure."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in finished("peers"):
        if (row["data"], row["epsilon"]) == (data, epsilon) and measure in row:
            own = tuple(row.get(name) for name in ("peer", "bins", "model_mb", "rounds_a_column", "cap"))
            groups.setdefault(own, []).append(row[measure])
    return [figure(values, own[0]) for own, values in groups.items()]


def named(figures: Sequence[Figure], who: str) -> Figure:
    """Return the figure of a peer; of several, that of most seeds."""
    own = [each for each in figures if each.who == who]
    return max(own, key=lambda each: each.seeds) if own else figure([], who)


def best(figures: Sequence[Figure], *, most: bool) -> Figure:
    """Return the best of those who are neither ours nor no method at all."""
    others = [each for each in figures if not each.who.startswith("ours:") and each.who not in ("real", "independent")]
    return sorted(others, key=lambda each: each.value, reverse=most)[0]


def images(data: str, epsilon: float | None) -> Figure:
    """Return the accuracy of a convolutional classifier on official test images."""
    method, at = "auto", []
    if epsilon is None:
        method = "real"
    elif data not in COPIES:
        at = [f"δ = {published(data, epsilon)['delta']:g}"]
    rows = [
        row["students"]["cnn"]
        for row in finished("images")
        if row["cell"][:3] == [data, method, epsilon] and row["cell"][4:] == [SIZE, False, "[]", *at]
    ]
    return figure(rows, f"{method} on {data} at {epsilon}")


def labeller() -> str:
    """Return how often CIFAR-10's labeller is right by itself."""
    (right,) = (
        row["annotator"] for row in finished("images") if row["cell"][:5] == ["cifar10", "guided", 10.0, 0, SIZE]
    )
    return f"{right:.1%}".replace("%", " %")


def without_labeller() -> str:
    """Return what a CNN learns from CIFAR-10's synthetic images of a fit without a labeller."""
    cell = ["cifar10", "auto", 10.0, 0, SIZE, False, "['labeller_share=0']"]
    (right,) = (row["students"]["cnn"] for row in finished("images") if row["cell"] == cell)
    return f"{right:.1%}".replace("%", " %")


def published(data: str, epsilon: float) -> dict[str, Any]:
    """Return what others published."""
    rows = [json.loads(line) for line in (HERE / "published.jsonl").read_text().splitlines()]
    (row,) = (row for row in rows if (row["data"], row["epsilon"]) == (data, epsilon))
    return dict(row)


def series(data: str, method: str, epsilon: float | None, measure: str = "forecast") -> Figure:
    """Return a figure of days; by default the error of forecasts on days kept aside."""
    rows = [
        row[measure]
        for row in finished("series_methods")
        if row["cell"][:3] == [data, method, epsilon] and row["cell"][4] == "test" and row["cell"][3] == "{}"
    ]
    return figure(rows, f"{method} on {data} at {epsilon}")


def simple(data: str) -> Figure:
    """Return the better of two plain private generators of days, at ε = 1."""
    figures = [series(data, peer, 1.0)._replace(who=name) for peer, name in PLAIN.items()]
    return min(figures, key=lambda each: each.value)


class Line(NamedTuple):
    """A line of the headline table, as text."""

    what: str
    epsilon: str
    measure: str
    ours: str
    other: str
    real: str


def line(
    what: str, epsilon: float, measure: str, ours: Figure, other: Figure, real: Figure, form: str, *, fair: bool = True
) -> Line:
    """Return a line; the better of the two is bold, both where they round alike; ours if fair and of all seeds."""
    less = measure.endswith("↓")
    a, b = format(ours.value, form), format(other.value, form)
    sign = -1 if less else 1
    bold = [
        fair and ours.seeds >= SEEDS and (a == b or sign * ours.value > sign * other.value),
        a == b or sign * ours.value < sign * other.value,
    ]
    who = NAMES.get(other.who, other.who) + (", one seed" if other.seeds == 1 and other.who in NAMES else "")
    cells = [f"**{text}**" if first else text for text, first in zip((ours.text(form), b), bold, strict=True)]
    return Line(what, f"{epsilon:g}", measure, cells[0], f"{cells[1]} ({who})", format(real.value, form))


def headline() -> list[Line]:
    """Return the headline table."""
    lines = []
    for data, epsilon in TABLES:
        for key, measure, form in (("boosting_auc", "AUC ↑", ".3f"), ("two_way", "two-way TVD ↓", ".4f")):
            found = tables(data, epsilon, key)
            rows = named(found, "ours:statistics"), best(found, most=key == "boosting_auc")
            lines.append(line(NAMES[data], epsilon, measure, *rows, named(tables(data, None, key), "real"), form))
    for data in SERIES:
        ours, other = series(data, "copula", 1.0), simple(data)
        lines.append(
            line(
                f"{NAMES[data]} days",
                1.0,
                "forecast error ↓",
                ours,
                other,
                series(data, "real", None),
                ".3f",
                fair=False,
            )
        )
    for data, epsilon in IMAGES:
        other = published(data, epsilon)
        pair = images(data, epsilon), figure([other["accuracy"]], other["who"])
        real = images(data, None)
        lines.append(line(NAMES[data], epsilon, "accuracy ↑", *pair, real, ".1%", fair=data not in COPIES))
    return [Line(*(cell.replace("%", " %") for cell in each)) for each in lines]


def charts() -> dict[str, str]:
    """Return the three charts, by file name."""
    peers = {"first": "aim-mbi", "second": "mst-mbi", "third": "opendp-mst"}
    rows = []
    for data, epsilon in TABLES:
        found = tables(data, epsilon, "boosting_auc")
        there = {mark: who for mark, who in peers.items() if any(each.who == who for each in found)}
        values = {mark: best([own for own in found if own.who == who], most=True).value for mark, who in there.items()}
        values |= {"doublure": named(found, "ours:statistics").value}
        values |= {"real": named(tables(data, None, "boosting_auc"), "real").value}
        rows.append(Row(name=f"{NAMES[data]}, ε = {epsilon:g}", values=values))
    marks = {"doublure": "doublure", **{mark: NAMES[who] for mark, who in peers.items()}, "real": "real data"}
    drawn = {
        "tables": chart("Tables: further right is better", "AUC on real test rows", marks, rows, step=0.05),
    }
    rows = []
    for data in SERIES:
        values = {"doublure": series(data, "copula", 1.0).value, "first": simple(data).value}
        rows.append(Row(name=f"{NAMES[data]}, ε = 1", values={**values, "real": series(data, "real", None).value}))
    marks = {"doublure": "doublure", "first": "the better of two plain private ones", "real": "real data"}
    axis = "forecast error on days kept aside, standard deviations"
    drawn["series"] = chart("Series: further left is better", axis, marks, rows, step=0.2)
    rows = []
    for data, epsilon in IMAGES:
        values = {"doublure": images(data, epsilon).value, "first": published(data, epsilon)["accuracy"]}
        values = {name: 100 * value for name, value in (values | {"real": images(data, None).value}).items()}
        rows.append(Row(name=f"{NAMES[data]}, ε = {epsilon:g}", values=values))
    marks = {"doublure": "doublure", "first": "FETA-Pro, published", "real": "real data"}
    axis = "accuracy on real test images, %"
    drawn["images"] = chart("Images: further right is better", axis, marks, rows, step=10)
    return {f"results-{name}.svg": text for name, text in drawn.items()}


def seconds(data: str, epsilon: float, who: str) -> str:
    """Return a peer's processor seconds by its most expensive setting, whose figures are its best."""
    found = [each.value for each in tables(data, epsilon, "cpu_seconds") if each.who == who]
    return f"{max(found):,.0f}" if found else "–"


def facts() -> Mapping[str, Any]:
    """Return what the page says outside its tables."""
    audits = finished("audit_fits")
    sound, planted = ([row for row in audits if row["planted"] is fault] for fault in (False, True))
    largest = max(finished("scale"), key=lambda row: (row["records"], -row["peak_mb"]))
    members = [row for row in finished("attacks") if row["case"] == "membership" and row["method"] == "statistics"]
    return {
        "lines": headline(),
        "forest": {
            who: [f"{named(tables(data, 1.0, 'forest'), who).value:.3f}" for data in ("adult", "mushroom")]
            for who in ("ours:statistics", "aim-mbi")
        },
        "alone": {
            data: [f"{named(found, 'ours:statistics').value:.4f}", f"{NAMES[other.who]} {other.value:.4f}"]
            for data in ("adult", "mushroom")
            if (other := best(found := tables(data, 1.0, "one_way"), most=False))
        },
        "cpu": {
            who: {data: seconds(data, 1.0, who) for data in ("adult", "mushroom", "diabetes130")}
            for who in ("ours:statistics", "aim-mbi", "mst-mbi")
        },
        "labeller": labeller(),
        "without_labeller": without_labeller(),
        "sound": sound,
        "fits": f"{sum({row['case']: row['fits'] for row in sound}.values()):,}",
        "accused": sum(row["accused"] for row in sound),
        "planted": planted,
        "caught": sum(row["accused"] for row in planted),
        "shown": f"{max(row['gaussian_epsilon'] for row in sound):.1f}",
        "claimed": f"{max(row['claimed'] for row in sound):g}",
        "attack": f"{max(row['attacks'][name]['value'] for row in members for name in MEMBERSHIP):.3f}",
        "attacks": len(MEMBERSHIP),
        "millions": f"{largest['records'] / 1e6:g}",
        "scale_seconds": f"{largest['cpu_seconds']:.0f}",
        "scale_mb": f"{largest['peak_mb']:.0f}",
    }


def opening() -> str:
    """Return the README with its lines of the headline table."""
    names = {"AUC ↑": "AUC on real rows ↑", "accuracy ↑": "accuracy on real images ↑"}
    lines = {(each.what, each.epsilon, each.measure): each for each in headline()}
    rows = ["| data | ε | measure | doublure | best of others | real data |", "|---|--:|---|---|---|--:|"]
    for key in OPENING:
        found = lines[key]
        rows.append("| " + " | ".join(found._replace(measure=names.get(found.measure, found.measure))) + " |")
    before, start, rest = README.read_text(encoding="utf-8").partition("<!-- results: ")
    told, end, after = rest.partition("<!-- /results -->")
    return before + start + told.splitlines()[0] + "\n" + "\n".join(rows) + "\n" + end + after


def files() -> dict[Path, str]:
    """Return the page, the README and the charts: what each file holds."""
    loader = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, trim_blocks=True, autoescape=False)
    page = loader.get_template("results_page.md.j2").render(facts())
    return {PAGE: page.rstrip() + "\n", README: opening()} | {FIGURES / name: text for name, text in charts().items()}


def main() -> None:
    """Write, or compare."""
    arguments = command_line(
        (__doc__ or "").partition("\n")[0], check=told(False, "write nothing, and say what differs"),
    )  # fmt: skip
    stale = []
    for path, text in files().items():
        if arguments.check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"{', '.join(stale)}: not what is measured; run python benchmarks/results_page.py")


if __name__ == "__main__":
    main()
