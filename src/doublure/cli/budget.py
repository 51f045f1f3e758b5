"""``doublure budget init|show|verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import VerbResult
from doublure.cli.verb import VerbApp
from doublure.errors import GateFailed, LedgerError, counted, printable

if TYPE_CHECKING:
    from doublure.ledger import Ledger

_CAME_TO_NOTHING = ("no-noise-drawn",)
_CUT_END = (
    "It cannot show that later records were cut off. Compare it with the card of each bundle that was given out: "
    "doublure verify BUNDLE --ledger LEDGER."
)

LedgerPath = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger: a file, or postgresql://host/db/name.")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Keep the ledger of what has been spent.")
    group.command("init")(init)
    group.command("show")(show)
    group.command("verify")(verify)
    app.add_typer(group, name="budget")


def init(
    ledger: LedgerPath,
    dataset: Annotated[str, typer.Option(help="The data set's id; the cap belongs to it.")],
    epsilon: Annotated[float, typer.Option(help="The cap on ε over all runs.")],
    delta: Annotated[float, typer.Option(help="The cap on δ over all runs.")],
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Create a ledger with its cap."""
    from doublure.ledger import Ledger

    try:
        made = Ledger.create(ledger, dataset=dataset, epsilon=epsilon, delta=delta)
    except LedgerError as error:
        raise _there(ledger) or error from None
    text = f"Wrote {ledger}: {dataset} may spend ε = {epsilon:g}, δ = {delta:g} over all runs."
    return _with_others(made, made.show(), [text])


def _with_others(book: Ledger, summary: dict[str, Any], lines: list[str]) -> VerbResult:
    """Return what is said of a ledger, with a line on others of the same data set beside it."""
    if others := book.beside:
        said = (
            f"Beside it lies another ledger of {printable(book.dataset)} ({', '.join(others)}): no cap holds for both."
        )
        summary, lines = summary | {"beside": list(others)}, [*lines, said]
    return VerbResult(data=summary, text="\n".join(lines))


def _there(path: str) -> LedgerError | None:
    """Return what is said of a ledger that is there already; None where there is none that can be opened."""
    from doublure.ledger import Ledger

    try:
        book = Ledger.open(path)
    except (LedgerError, OSError):
        return None
    cap, left = book.cap, book.remaining
    said = f"ε = {left.epsilon:g} of {cap.epsilon:g} and δ = {left.delta:g} of {cap.delta:g} are left"
    remedy = "go on with it: what a second ledger of the same records charges is added up nowhere"
    return LedgerError(f"is the ledger of {printable(book.dataset)} already: {said}", field=path, remedy=remedy)


def show(ledger: LedgerPath, as_json: Json = False, config: Config = None) -> VerbResult:
    """Show what has been spent and what is left."""
    from doublure.ledger import Ledger

    book = Ledger.open(ledger)
    summary = book.show()
    lines = [
        f"Data set {printable(summary['dataset'])}",
        f"  cap        ε = {book.cap.epsilon:<10g} δ = {book.cap.delta:g}",
        f"  spent      ε = {book.spent.epsilon:<10g} δ = {book.spent.delta:g}",
        f"  remaining  ε = {book.remaining.epsilon:<10g} δ = {book.remaining.delta:g}",
    ]
    entries = {run["run_id"]: run["sequence"] for run in summary["runs"]}
    shown = [run for run in summary["runs"] if run["status"] not in _CAME_TO_NOTHING]
    for run in shown:
        price = "no ε" if run["epsilon"] is None else f"ε = {run['epsilon']:g}, δ = {run['delta']:g}"
        lines.append(
            f"  {run['sequence']:>4}  {run['utc']}  {run['method']:<12} {run['kind']:<12} {price}  {run['status']}"
        )
        lines += [f"        in no total: {printable(each['purpose'])}: {_price(each)}" for each in run["apart"]]
    lines += [
        f"  {each['sequence']:>4}  {each['utc']}  released from entry {entries[each['run_id']]} ({each['kind']}), "
        f"card ledger {each['head_sha256'][:12]}…: {', '.join(map(printable, each['files']))}"
        for each in summary["releases"]
    ]
    lines += [
        f"  in no total, {printable(each['purpose'])}: the sum of these {each['times']}: {_price(each)}"
        for each in summary["apart"]
        if each["times"] > 1
    ]
    if folded := len(summary["runs"]) - len(shown):
        lines.append(f"  and {counted(folded, 'attempt')} that drew no noise and cost nothing (--json lists them)")
    return _with_others(book, summary, [*lines, book.coverage, _upto(book)])


def _upto(book: Ledger) -> str:
    """Return up to which record the figures go."""
    last = book.entries[-1]
    upto = f"Up to record {last.sequence} of {last.utc}"
    return f"{upto}. That later records were cut off shows only beside a card (doublure verify)."


def _price(of: dict[str, Any]) -> str:
    from doublure.guarantee import figure

    return f"ε = {figure(of['epsilon'])}, δ = {figure(of['delta'])}"


def verify(ledger: LedgerPath, as_json: Json = False, config: Config = None) -> VerbResult:
    """Check every record of the ledger."""
    from doublure.ledger import Ledger
    from doublure.ledger.places import find_place

    find_place(ledger).refuse_missing()
    try:
        report = Ledger.open(ledger).verify()
    except LedgerError as error:
        raise GateFailed(error.message, field=error.field, remedy=error.remedy) from None
    held = f"{counted(report.runs, 'run')}, {counted(report.releases, 'release')}"
    text = f"{ledger} is intact up to record {report.sequence} of {report.utc}: {held}.\n{_CUT_END}"
    if report.torn:
        text += f"\nCut short: {counted(report.torn, 'line')}. Each counts for all that it can have said."
    figures = {"sequence": report.sequence, "utc": report.utc, "head_sha256": report.head_sha256, "runs": report.runs}
    return VerbResult(data=figures, text=text)
