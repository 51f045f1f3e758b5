"""The schema of customers, their orders, and the orders' lines."""

from __future__ import annotations

ITEM = "item: {type: category, values: [p, q], missing: true}"


def three_levels(
    units: int,
    *,
    lines: int = 2,
    days: int = 999,
    of_customers: str = "",
    of_orders: str = "",
    of_lines: str = "",
    item: str = ITEM,
    order_key: str = "{type: id}",
    tables: str = "",
    rules: str = "",
) -> str:
    """Return the schema's text: at most three orders a customer, in the order of their days.

    Args:
        units: How many customers there are.
        lines: How many lines an order has at most.
        days: The last day.
        of_customers: Roles of a customer's tier, beginning with a comma.
        of_orders: Further columns, each on a line of its own.
        of_lines: The same.
        item: What a line holds.
        order_key: The column that tells orders apart.
        tables: Further tables.
        rules: Further rules, each on a line of its own.
    """
    return f"""
doublure: 1
kind: relational
unit: {{name: customer}}
units: {units}
tables:
  customers:
    key: id
    columns:
      id: {{type: id}}
      tier: {{type: category, values: [a, b], missing: false{of_customers}}}
      since: {{type: integer, bounds: [0, {days - 99}], missing: false}}
  lines:
    parent: orders
    foreign_key: order
    max_children: {lines}
    columns:
      order: {{type: id}}
      {item}
{of_lines}  orders:
    key: nr
    parent: customers
    foreign_key: customer
    max_children: 3
    order: day
    columns:
      nr: {order_key}
      customer: {{type: id}}
      day: {{type: integer, bounds: [0, {days}], missing: false}}
{of_orders}{tables}constraints:
  - {{at_most: [customers.since, orders.day]}}
{rules}"""
