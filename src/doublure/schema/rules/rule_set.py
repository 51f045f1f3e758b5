"""All rules of a schema: whether they can be kept, rows that break one, and the rows that these become.

Turn by turn, and within a turn in this order: ``combinations``, ``implies``, ``sum`` (each as listed), ``at_most``;
after every change the columns that ``equal`` and ``determines`` derive follow. Rows that still break a rule after the
last turn take all columns that the rule holds together from another *sampled* row that keeps them all; where there is
none, from the row that showed that the schema's rules can be kept (:mod:`doublure.schema.rules.row_search`).

Sampled rows may lend one another cells, at random. Records may not: without a source of randomness a row becomes what a
public rule says of that row alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from graphlib import CycleError, TopologicalSorter

from doublure.errors import counted, printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.rules.row_search import RowSearch
from doublure.schema.rules.rule import CellSource, DerivedColumn, Floats, Follow, Ints, Mask, NumericRule, Rng, Rule

TURNS = 6


class RulesDoNotFit(ValueError):
    """The rules that no row can keep, and what to do; the field is ``constraints``."""

    field = "constraints"


class RuleSet:
    """Some rules of a schema, every fact of their columns known.

    Args:
        rules: The rules.
        columns: All columns.

    Attributes:
        names: The columns that they are about.
        derived: Columns that follow from others, each after its source.
        kept: Rules that the rest must keep.
        fixing: The same in the order in which they are fixed.

    Raises:
        ValueError: A rule has cells that a column does not have; ``message; remedy``.
    """

    def __init__(self, rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
        self.names = tuple(dict.fromkeys(name for rule in rules for name in rule.names))
        self.derived = _in_turn({each.name: each for rule in rules for each in rule.derivations(columns)})
        kept = (each for rule in rules for each in rule.in_numbers(columns, rules))
        self.kept: list[NumericRule] = sorted(kept, key=lambda rule: rule.joint)
        self.fixing = sorted(self.kept, key=lambda rule: rule.turn)
        self._columns = columns

    @property
    def components(self) -> tuple[frozenset[str], ...]:
        """Columns that rules hold together: no rule joins two of these."""
        found: list[frozenset[str]] = []
        for names in [*({each.name, *each.sources} for each in self.derived), *(set(rule.names) for rule in self.kept)]:
            joined = frozenset(names).union(*(part for part in found if part & names))
            found = [*(part for part in found if not part & names), joined]
        return tuple(found)

    def root_of(self, name: str) -> tuple[str, Follow]:
        """Return the modelled column that another follows from (often itself), and the way.

        A column that follows from several leads no further.
        """
        steps: list[Follow] = []
        for each in reversed(self.derived):
            if each.name == name and len(each.sources) == 1:
                steps.insert(0, each.follow)
                name = each.sources[0]
        return name, lambda numbers: reduce(lambda cells, step: step(cells), steps, numbers)

    @property
    def movable(self) -> frozenset[str]:
        """The modelled columns that fixing may change, but for rows that no turn fixes."""
        return frozenset(self.root_of(name)[0] for rule in self.kept for name in rule.moves)

    def clash(self, asked: Mapping[str, Allowed]) -> list[str]:
        """Return the columns of which no row can have what is asked for, by the rules alone; none where one can.

        A search that cannot be sure counts as one that found a row.

        Args:
            asked: Column -> the cells that fit.
        """
        for component in self.components:
            own = {name: cells for name, cells in asked.items() if name in component}
            search = RowSearch(component, self._columns, self.derived, self.kept, own)
            if own and search.find() is None and search.sure:
                return sorted(own)
        return []

    def witness(self, component: frozenset[str]) -> dict[str, float] | None:
        """Return cells of columns that no rule joins with others that keep all rules, or None if none were found."""
        return RowSearch(component, self._columns, self.derived, self.kept, {}).find()

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return ``(N,)``: which rows break any rule."""
        import numpy as np

        found = np.zeros(_length(numbers), dtype=np.bool_)
        for each in self.derived:
            found |= ~_same(numbers[each.name], each.follow(*(numbers[name] for name in each.sources)))
        for rule in self.kept:
            found |= rule.broken(numbers)
        return found

    def fix(self, numbers: dict[str, Floats], rng: Rng | None) -> None:
        """Change cells in place until every row keeps every rule.

        Args:
            numbers: Column -> ``(N,)``, all of :attr:`names`.
            rng: Lets sampled rows lend one another cells; without it each row is fixed by itself.
        """
        self._follow(numbers)
        for turn in range(TURNS):
            moved = False
            for rule in self.fixing:
                off = rule.broken(numbers)
                if off.any():
                    moved = True
                    source = CellSource(rng=rng, turn=turn, sound=~self.broken(numbers), root_of=self.root_of)
                    rule.fix(numbers, off, source)
                    self._follow(numbers)
            if not moved:
                return
        for component in self.components:
            self._replace(numbers, component, rng)

    def _follow(self, numbers: dict[str, Floats]) -> None:
        for each in self.derived:
            numbers[each.name] = each.follow(*(numbers[name] for name in each.sources))

    def _replace(self, numbers: dict[str, Floats], component: frozenset[str], rng: Rng | None) -> None:
        """Give rows that no turn has fixed the cells of one that keeps all rules."""
        import numpy as np

        off = np.zeros(_length(numbers), dtype=np.bool_)
        for rule in self.kept:
            if set(rule.names) <= component:
                off |= rule.broken(numbers)
        if not off.any():
            return
        lenders = np.flatnonzero(~off)
        if rng is not None and len(lenders):
            chosen = self._alike(numbers, component, np.flatnonzero(off), lenders, rng)
            for name in component:
                numbers[name] = numbers[name].copy()
                numbers[name][off] = numbers[name][chosen]
            return
        row = self.witness(component)
        if row is None:  # refused when the schema was read
            raise ValueError("no row keeps all rules")
        for name in component:
            numbers[name] = np.where(off, row[name], numbers[name])

    def _alike(
        self, numbers: Mapping[str, Floats], component: frozenset[str], rows: Ints, lenders: Ints, rng: Rng
    ) -> Ints:
        """Return a lender for each row: one with the same conditions, where there is one."""
        import numpy as np

        chosen: Ints = rng.choice(lenders, len(rows))
        for name in sorted(component):
            if "condition" not in self._columns[name].roles:
                continue
            for value in np.unique(numbers[name][rows]):
                own, lending = numbers[name][rows] == value, lenders[numbers[name][lenders] == value]
                if len(lending):
                    chosen[own] = rng.choice(lending, int(own.sum()))
            break
        return chosen


def check_rules(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Refuse rules that no row could keep, alone or together.

    Raises:
        RulesDoNotFit: With a message for the schema's author, which names every rule that does not fit by itself.
    """
    found = []
    for rule in rules:
        try:
            rule.check(columns)
            if rule.settled(columns):
                RuleSet([rule], columns)
        except ValueError as error:
            found.append(str(error))
    if len(found) > 1:
        listed = " ".join(f"({number}) {text.replace('; ', ', ')}" for number, text in enumerate(found, 1))
        raise RulesDoNotFit(f"{counted(len(found), 'rule')} do not fit: {listed}; fix each")
    if found:
        raise RulesDoNotFit(found[0])
    try:
        _check_together(rules, columns)
    except ValueError as error:
        raise RulesDoNotFit(str(error)) from None


def goes_with(rule: Rule, rules: Sequence[Rule], columns: Mapping[str, Column]) -> bool:
    """Return whether a schema takes a rule beside others, as far as its columns' facts and its list are known.

    Args:
        rule: The rule; the mapping of one that names a file may be empty.
        rules: The others.
        columns: All columns.
    """
    near = [each for each in rules if {*each.names} & {*rule.names}]
    known = rule.settled(columns) and not (rule.needs_file and rule.file_key)
    try:
        _check_names([*rules, rule], columns)
        if known:
            check_rules([*near, rule], columns)
    except ValueError:
        return False
    return True


def _check_together(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    _check_names(rules, columns)
    _refuse_bought(rules, columns)
    known = [rule for rule in rules if rule.settled(columns)]
    together = RuleSet(known, columns)
    plain = {name for rule in known if not rule.encoded for name in rule.names}
    plain |= {name for rule in together.kept if not rule.joint for name in rule.names}
    for component in together.components:
        if component & plain and together.witness(component) is None:
            named = ", ".join(sorted(map(printable, component)))
            raise ValueError(f"no row was found that keeps all rules of {named}; fix or remove one of them")


def _check_names(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    derived = [name for rule in rules for name in rule.derives]
    repeated = {name for rule in rules if rule.repeats for name in rule.derives}
    computed = [name for rule in rules if not rule.deriving for name in rule.derives]
    if twice := sorted({name for name in computed if derived.count(name) > 1}):
        raise ValueError(f"{printable(twice[0])} follows by two rules; take one away")
    if len(set(derived)) != len(derived) or {rule.names[0] for rule in rules if rule.repeats} & repeated:
        raise ValueError("a column stands in two equal constraints; write one list with all of them")
    for model in dict.fromkeys(type(rule) for rule in rules):
        model.check_together(rules, columns)
    for rule in rules:
        taken = set(rule.names) & set(derived)
        if taken and not rule.takes_derived:
            name = printable(min(taken))
            raise ValueError(f"{rule.word} names {name}, which follows from another column; name that one")


def _refuse_bought(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Refuse bounds that are still to be bought where an answer could contradict a rule after it has been paid for."""
    chains = [set(rule.names) for rule in rules if rule.encoded and not rule.derives]
    for rule in rules:
        if rule.encoded:
            continue
        reached, before = set(rule.names), 0
        while before < len(reached):
            before = len(reached)
            reached = reached.union(*(chain for chain in chains if reached & chain))
        for name in sorted(reached):
            if columns[name].learned:
                fact = f"{rule.word} and at_most need declared facts of {printable(name)}"
                raise ValueError(f"{fact}; declare what is learned")


def derived_by(rules: Sequence[Rule], *, repeated: bool = False) -> dict[str, str]:
    """Return the columns that follow from others: ``{derived: first source}``.

    Args:
        rules: The schema's.
        repeated: Only those that say the same as their source, value by value (``equal``).
    """
    return {name: rule.sources[0] for rule in rules if rule.repeats or not repeated for name in rule.derives}


def derived_sources(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """Return the columns that follow from others, each with all of its sources."""
    return {name: rule.sources for rule in rules for name in rule.derives}


def computed_advice(sources: Mapping[str, tuple[str, ...]], names: Iterable[str]) -> tuple[str, str] | None:
    """Return which columns are computed and so not counted, and what to ask for instead; None where none is.

    Args:
        sources: Columns that follow from others, each with all of these.
        names: Columns.

    Example:
        >>> computed_advice({"age": ("born",), "old": ("age",)}, ["income", "old"])
        ('old is computed from born', 'ask for born')
    """
    found = {name: tuple(_roots(name, sources)) for name in names if name in sources}
    if not found:
        return None
    said = (f"{printable(name)} is computed from {' and '.join(map(printable, own))}" for name, own in found.items())
    asked = dict.fromkeys(printable(each) for own in found.values() for each in own)
    return ", and ".join(said), f"ask for {' or '.join(asked)}"


def _roots(name: str, sources: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for each in sources.get(name, ()):
        yield from _roots(each, sources) if each in sources else (each,)


def _in_turn(derived: Mapping[str, DerivedColumn]) -> tuple[DerivedColumn, ...]:
    try:
        turns = TopologicalSorter({name: {*each.sources} for name, each in derived.items()}).static_order()
        return tuple(derived[name] for name in turns if name in derived)
    except CycleError as error:
        circle = error.args[1]
        word = "determines" if all(len(derived[name].sources) == 1 for name in circle) else "a computed column"
        raise ValueError(f"{word} goes round in a circle through {printable(circle[0])}; take one away") from None


def _same(left: Floats, right: Floats) -> Mask:
    import numpy as np

    close = np.abs(left - right) <= 1e-9 * np.maximum(1.0, np.abs(left))
    found: Mask = close | (np.isnan(left) & np.isnan(right))
    return found


def _length(numbers: Mapping[str, Floats]) -> int:
    return len(next(iter(numbers.values()), ()))
