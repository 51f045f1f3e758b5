"""The refusal of rules that no row can keep: each by itself, then all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.rule_set import RuleSet


class RulesDoNotFit(ValueError):
    """The rules that no row can keep, and what to do; the field is ``constraints``."""

    field = "constraints"


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
        raise RulesDoNotFit(f"{len(found)} rules do not fit: {listed}; fix each")
    if found:
        raise RulesDoNotFit(found[0])
    try:
        _check_together(rules, columns)
    except ValueError as error:
        raise RulesDoNotFit(str(error)) from None


def _check_together(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    derived = [name for rule in rules for name in rule.derives]
    repeated = {name for rule in rules if rule.repeats for name in rule.derives}
    if len(set(derived)) != len(derived) or {rule.names[0] for rule in rules if rule.repeats} & repeated:
        raise ValueError("a column stands in two equal constraints; write one list with all of them")
    for model in dict.fromkeys(type(rule) for rule in rules):
        model.check_together(rules, columns)
    for rule in rules:
        taken = set(rule.names) & set(derived)
        if taken and not rule.takes_derived:
            name = printable(min(taken))
            raise ValueError(f"{rule.word} names {name}, which follows from another column; name that one")
    _refuse_bought(rules, columns)
    known = [rule for rule in rules if rule.settled(columns)]
    together = RuleSet(known, columns)
    plain = {name for rule in known if not rule.encoded for name in rule.names}
    for component in together.components:
        if component & plain and together.witness(component) is None:
            named = ", ".join(sorted(map(printable, component)))
            raise ValueError(f"no row was found that keeps all rules of {named}; fix or remove one of them")


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
