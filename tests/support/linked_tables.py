"""Employees who name their boss, and whose posts answer posts of their own and name colleagues."""

from __future__ import annotations

import numpy as np
import pandas as pd

UNITS, POSTS = 400, 4
TEXT = f"""
doublure: 1
kind: relational
unit: {{name: employee}}
units: {UNITS}
tables:
  employees:
    key: nr
    links: {{boss: {{to: employees, match: {{boss_level: level}}, acyclic: true}}}}
    columns:
      nr: {{type: id, pattern: "E-{{4 digits}}"}}
      boss: {{type: id}}
      level: {{type: integer, bounds: [1, 4], missing: false}}
      boss_level: {{type: integer, bounds: [1, 4], missing: true}}
  posts:
    key: post
    parent: employees
    foreign_key: author
    max_children: {POSTS}
    order: day
    links: {{answers: {{to: posts, match: [topic], acyclic: true}}, likes: {{to: employees}}}}
    columns:
      post: {{type: id}}
      author: {{type: id}}
      day: {{type: integer, bounds: [0, 100], missing: false}}
      topic: {{type: category, values: [a, b], missing: false}}
      answers: {{type: id}}
      likes: {{type: id}}
"""


def made_up(count=UNITS, seed=0):
    """Return employees whose boss is one level up, and posts that answer an earlier one of their author and topic."""
    rng = np.random.default_rng(seed)
    level = rng.integers(1, 5, count)
    above = [np.flatnonzero(level == own + 1) for own in level]
    boss = [
        None if own == 4 or not len(those) else int(rng.choice(those)) for own, those in zip(level, above, strict=True)
    ]
    employees = pd.DataFrame({"nr": np.arange(count), "boss": pd.array(boss, dtype="Int64"), "level": level})
    employees["boss_level"] = [None if own is None else int(level[own]) for own in boss]
    rows: list[tuple[object, ...]] = []
    for author in range(count):
        own: list[tuple[object, ...]] = []
        for place in range(rng.integers(0, POSTS + 1)):
            topic = "b" if rng.random() < 0.3 else "a"
            alike = [post for post, _, _, known, _, _ in own if known == topic]
            likes = int(rng.integers(0, count)) if rng.random() < 0.5 else None
            own.append((len(rows) + place, author, 10 * place, topic, alike[-1] if alike else None, likes))
        rows += own
    posts = pd.DataFrame(rows, columns=["post", "author", "day", "topic", "answers", "likes"])
    return {"employees": employees, "posts": posts.astype({"answers": "Int64", "likes": "Int64"})}
