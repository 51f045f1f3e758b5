"""Answers to a schema's questions: one query and one access of the plan each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doublure.private.queries.facts import make_fact_query

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.private.mechanism import Mechanism
    from doublure.private.partitions import Partitions
    from doublure.private.queries.facts import FactRecords
    from doublure.schema import Question, Schema


def learn(
    question: Question,
    table: FactRecords | Partitions[FactRecords],
    schema: Schema,
    *,
    mechanism: Mechanism,
    access: Access,
    learned: Mapping[str, Any],
) -> Any:
    """Return the answer to one question, in the form that the schema holds.

    Args:
        question: The fact that is asked for.
        table: The private records, in one place or in partitions.
        schema: The public facts.
        mechanism: Of the run.
        access: The access that pays for the answer.
        learned: Earlier answers: class shares need the values.
    """
    query = make_fact_query(question, schema, learned)
    return query.read(mechanism.release(query, access, table))
