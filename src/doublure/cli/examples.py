"""An example of every command and group, as ``--help`` shows it: words of the command -> what is typed."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[tuple[str, ...], str] = {
    (): "doublure demo --files\ndoublure schema check adult.schema.yaml --data adult.csv",
    ("demo",): "doublure demo --files",
    ("schema",): "doublure schema draft adult.csv --codebook adult.codebook.csv -o draft.yaml",
    ("schema", "draft"): "doublure schema draft adult.csv --codebook adult.codebook.csv -o draft.yaml",
    ("schema", "check"): "doublure schema check adult.schema.yaml --data adult.csv --values misfits.csv",
    ("budget",): "doublure budget init adult.ledger --dataset adult --epsilon 3 --delta 1e-5",
    ("budget", "init"): "doublure budget init adult.ledger --dataset adult --epsilon 3 --delta 1e-5",
    ("budget", "show"): "doublure budget show adult.ledger",
    ("budget", "verify"): "doublure budget verify adult.ledger",
    ("plan",): "doublure plan adult.schema.yaml --epsilon 1 --delta 1e-6 -o plan.json",
    ("fit",): "doublure fit adult.csv --plan plan.json --ledger adult.ledger -o run",
    ("federate",): ("doublure federate simulate --plan plan.json --clients clients \\\n  --ledger all.ledger -o run"),
    ("federate", "simulate"): (
        "doublure federate simulate --plan plan.json --clients clients \\\n  --ledger all.ledger -o run"
    ),
    ("federate", "init"): "doublure federate init app --plan plan.json",
    ("sample",): 'doublure sample run -n 99 --given age=30.. --given "income=>50K" -o rows.csv',
    ("label",): "doublure label out run -n 300 -o task",
    ("label", "out"): "doublure label out run -n 300 -o task",
    ("label", "read"): "doublure label read task -o labelled.npz",
    ("label", "curve"): "doublure label curve task --real digits.npz",
    ("label", "public"): (
        "doublure label public run letters.npz --schema letters.schema.yaml \\\n"
        "  --provenance letters.provenance.yaml -n 300 -o labelled.npz"
    ),
    ("public",): "doublure public show generator",
    ("public", "fit"): (
        "doublure public fit letters.npz --schema letters.schema.yaml \\\n"
        "  --provenance letters.provenance.yaml -o generator"
    ),
    ("public", "adopt"): (
        "doublure public adopt weights.safetensors --schema letters.schema.yaml \\\n"
        "  --provenance letters.provenance.yaml -o generator"
    ),
    ("public", "show"): "doublure public show generator",
    ("public", "overlap"): "doublure public overlap letters.npz --private digits.npz \\\n  --schema digits.schema.yaml",
    ("evaluate",): "doublure evaluate run --real adult.csv --holdout kept.csv",
    ("compare",): "doublure compare run other-run --real adult.csv -o which.html",
    ("inspect",): "doublure inspect run --against right-run",
    ("release",): 'doublure release run -n 5000 --title "Synthetic census records" -o bundle',
    ("verify",): "doublure verify bundle --ledger adult.ledger",
    ("keys",): "doublure keys new -o steward.key",
    ("keys", "new"): "doublure keys new -o steward.key",
    ("datasets",): "doublure datasets list",
    ("datasets", "list"): "doublure datasets list",
    ("datasets", "fetch"): "doublure datasets fetch mushroom -o data",
    ("audit",): "doublure audit run --attack quick --real adult.csv --holdout kept.csv",
    ("doctor",): "doublure doctor",
}
