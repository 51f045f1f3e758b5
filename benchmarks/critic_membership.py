"""Does a critic give away whom it learned from, by epochs and by how many there were (Frigerio et al. 2019, §6.3)?

    python benchmarks/critic_membership.py run            # resumable: finished cells are skipped
    python benchmarks/critic_membership.py table          # for docs/evidence/journal/attacks.md
    python benchmarks/critic_membership.py picture        # benchmarks/out/critic_membership.png: curves

Some census rows (Adult, 15 columns) are fitted, and 4,000 others are not; half of those are attacked too. The attacker
has the critic. Lots hold 50 rows, so that ``gan`` (σ = 0) and ``dpgan`` see each row equally often; a point of the
curve by epochs is a whole fit with that many steps. The paper held σ at 1 and at 5, whatever ε comes of it; here that
ε is printed (δ = 1e-5, add/remove of one row, PLD, every noisy step counted), and a third private way has ε = 8.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from attacks import adult, fitted
from command_line import command_line, some
from doublure.auditing import audit
from doublure.private.accounting import GaussianEvent, epsilon_of
from results import OUT, by_cell, finished, interval, measure

LOT, OTHERS, DELTA = 50, 4000, 1e-5
SIGMAS = {"σ = 1": 1.0, "σ = 5": 5.0}
WAYS = ("gan", *SIGMAS, "ε = 8")
ROWS, STEPS = 500, 3000
BY_EPOCHS = [(ROWS, steps) for steps in (100, 300, 1000)]
BY_ROWS = [(rows, STEPS) for rows in (100, ROWS, 2000)]


def epsilon(way: str, rows: int, steps: int) -> float:
    """Return the ε of a private way."""
    if way not in SIGMAS:
        return 8.0
    return epsilon_of([GaussianEvent(noise_multiplier=SIGMAS[way], sample_rate=LOT / rows, steps=steps)], DELTA)


def one_cell(way: str, rows: int, steps: int, seed: int) -> dict[str, Any]:
    """Fit once, and attack through the critic."""
    schema, trained, others = adult(rows, OTHERS, seed)
    asked: dict[str, Any] = {"method": "gan", "steps": steps, "lot_size": LOT}
    if way != "gan":
        asked |= {"method": "dpgan", "epsilon": epsilon(way, rows, steps), "delta": DELTA}
    with tempfile.TemporaryDirectory() as folder:
        run = fitted(Path(folder), schema, trained, seed, **asked)
        (found,) = audit(run, "critic", trained, others, seed=seed).attacks
    return {
        "epsilon": asked.get("epsilon"),
        "epochs": steps * LOT / rows,
        "area": found.value,
        "interval": found.interval,
        "baseline": found.baseline,
        "lower_bound": found.lower_bound,
        "curve": None if found.roc is None else found.roc.curve,
    }


def by_setting() -> dict[tuple[str, int, int], list[dict[str, Any]]]:
    """Return what was found, by way, rows and steps."""
    found: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for entry in finished("critic_membership"):
        way, rows, steps, _ = entry["cell"]
        found.setdefault((way, rows, steps), []).append(entry)
    return dict(sorted(found.items(), key=lambda item: (WAYS.index(item[0][0]), item[0][1:])))


def table() -> None:
    """Print the areas under ROC."""
    print("| | rows | epochs | ε | area, mean over seeds (95 %) | each seed's 95 % | baseline | shows ε ≥ |")
    print("|---|--:|--:|--:|---|---|--:|--:|")
    for (way, rows, _), entries in by_setting().items():
        claimed = entries[0]["epsilon"]
        each = "; ".join("{:.3f} to {:.3f}".format(*entry["interval"]) for entry in entries)
        cells = [way, rows, round(entries[0]["epochs"]), "–" if claimed is None else f"{claimed:.3g}"]
        cells += [interval([entry["area"] for entry in entries]).lstrip("+"), each]
        cells += [f"{mean(entry['baseline'] for entry in entries):.3f}"]
        cells += [f"{max(entry['lower_bound'] for entry in entries):.2f}"]
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


def picture() -> None:
    """Draw the ROC curves of each seed for the fewest rows, on logarithmic axes, and the area by epochs and by rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    settings = by_setting()
    figure, (curves, epochs, sizes) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for place, way in enumerate(WAYS):
        label = way if way != "gan" else "gan, no noise"
        for number, entry in enumerate(settings.get((way, *BY_ROWS[0]), [])):
            across, up = zip(*entry["curve"], strict=True)
            curves.plot(across, up, color=f"C{place}", lw=1, label=None if number else label)
        for pane, chosen, horizontal in ((epochs, BY_EPOCHS + BY_ROWS[1:2], 1), (sizes, BY_ROWS, 0)):
            here = [(setting, settings[way, *setting]) for setting in chosen if (way, *setting) in settings]
            at = [entries[0]["epochs"] if horizontal else setting[0] for setting, entries in here]
            areas = [[entry["area"] for entry in entries] for _, entries in here]
            middle = [mean(each) for each in areas]
            ends = [[m - min(each) for m, each in zip(middle, areas, strict=True)]]
            ends += [[max(each) - m for m, each in zip(middle, areas, strict=True)]]
            pane.errorbar(at, middle, yerr=ends, color=f"C{place}", marker="o", ms=4, capsize=3, label=label)
    curves.plot([1e-3, 1], [1e-3, 1], color="0.6", ls=":", lw=1)
    curves.set(xscale="log", yscale="log", xlim=(2e-3, 1), ylim=(2e-3, 1.05))
    curves.set(title=f"{BY_ROWS[0][0]} rows", xlabel="False positive rate", ylabel="True positive rate")
    epochs.set(title=f"{ROWS} rows", xlabel="epochs", ylabel="area under ROC", xscale="log")
    sizes.set(title=f"{STEPS} steps", xlabel="rows", ylabel="area under ROC", xscale="log")
    for pane in (epochs, sizes):
        pane.axhline(0.5, color="0.6", ls=":", lw=1)
        pane.set_ylim(0.4, 1.02)
    curves.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "critic_membership.png", dpi=110)


def main() -> None:
    """Read the command line."""
    options = command_line(__doc__, ["run", "table", "picture"], ways=some(WAYS), seeds=[0, 1, 2])
    torch.set_num_threads(1)
    settings = BY_EPOCHS + BY_ROWS
    cells = [(way, *setting, seed) for seed in options.seeds for setting in settings for way in options.ways]
    if options.verb == "run":
        made = by_cell(cells, one_cell)
        measure("critic_membership", made, lambda row: f"{row['cell']}: {row['area']:.3f} {row['interval']}")
    elif options.verb == "table":
        table()
    else:
        picture()


if __name__ == "__main__":
    main()
