"""Rule 15: labels are part of the record; what conditions are drawn from is public or bought (row 3).

A labeller of its own, inside the budget or else "none", comes with the method ``guided``.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import doublure as db
from doublure.encode.table import TableEncoder
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.run import running
from doublure.training.gan_loop import Adversaries

ALPHA = 1e-6


def permuted(frame):
    """Return the table with its labels dealt out anew: every count is as before, no record is."""
    return frame.assign(out=np.random.default_rng(2).permutation(frame["out"].to_numpy()))


def turned(frame):
    return frame.assign(out=frame["out"].map({"no": "yes", "yes": "no"}))


def conditions(lab, patch, frame, like=None, schema=None):
    """Return the conditions that the generator is trained on, and the trace."""
    drawn, draw = [], TableEncoder.draw_conditions

    def watched(encoder, n, rng, fixed=None):
        drawn.append(draw(encoder, n, rng, fixed))
        return drawn[-1]

    with patch.context() as inner:
        inner.setattr(TableEncoder, "draw_conditions", watched)
        trace = lab.train(frame, schema or lab.PUBLIC, like=like, steps=8, n_critic=1)
    return np.concatenate(drawn), trace


def check_labels_do_not_move_the_law_of_conditions(lab, patch):
    base = lab.people()
    kept, trace = conditions(lab, patch, base)
    for other in (permuted(base), turned(base), base.assign(out="yes")):
        found, seen = conditions(lab, patch, other, like=trace)
        assert np.array_equal(kept, found)
        lab.assert_same_public(trace, seen)


def test_labels_do_not_move_the_law_of_conditions(lab, monkeypatch):
    check_labels_do_not_move_the_law_of_conditions(lab, monkeypatch)


ENCODED = "encoder = encoder_for(schema, plan.settings.encoding)"
FROM_LABELS = (
    "shares = loaded.frame['out'].value_counts(normalize=True)\n"
    "    columns = {**schema.columns, 'out': schema.columns['out'].model_copy(update={'shares': dict(shares)})}\n"
    "    encoder = encoder_for(schema.model_copy(update={'columns': columns}), plan.settings.encoding)"
)


def test_conditions_drawn_from_the_labels_are_caught(lab, monkeypatch):
    lab.plant(running.FitRun, "_train", (ENCODED, FROM_LABELS))
    with lab.caught():
        check_labels_do_not_move_the_law_of_conditions(lab, monkeypatch)


def test_conditions_taken_from_records_are_caught(lab, monkeypatch):
    """As a generator that remembers the labels it met: SmartNoise and synthcity keep them."""
    partner, draw = Adversaries.partner, TableEncoder.draw_conditions
    met = []

    def remembering(self, size, condition):
        met.extend(condition)
        return partner(self, size, condition)

    def replayed(encoder, n, rng, fixed=None):
        return np.stack([met[i % len(met)] for i in range(n)]) if met else draw(encoder, n, rng, fixed)

    monkeypatch.setattr(Adversaries, "partner", remembering)
    monkeypatch.setattr(TableEncoder, "draw_conditions", replayed)
    with lab.caught():
        check_labels_do_not_move_the_law_of_conditions(lab, monkeypatch)


def check_conditions_follow_the_schema(lab, patch, plan, folder):
    """A quarter says yes in the data, a fifth in the schema: what is sampled follows the schema."""
    frame = lab.people().assign(out=["yes"] * 18 + ["no"] * 6)
    lab.fit(frame, plan, folder, real=True)
    found = db.load(folder / "run").sample(20_000, seed=1)["out"].value_counts()
    assert stats.chisquare([found["no"], found["yes"]], [16_000, 4_000]).pvalue > ALPHA


def test_conditions_follow_the_schema(lab, monkeypatch, declared_plan, tmp_path):
    check_conditions_follow_the_schema(lab, monkeypatch, declared_plan, tmp_path)


def test_conditions_that_follow_the_data_are_caught(lab, monkeypatch, declared_plan, tmp_path):
    resolved = "resolved = schema.resolve(learned)"
    lab.plant(
        running.FitRun, "_resolve",
        (resolved,
         f"{resolved}\n    shares = loaded.frame['out'].value_counts(normalize=True).astype(float).to_dict()\n"
         "    changed = resolved.columns['out'].model_copy(update={'shares': shares})\n"
         "    resolved = resolved.model_copy(update={'columns': {**resolved.columns, 'out': changed}})"),
    )  # fmt: skip
    with lab.caught():
        check_conditions_follow_the_schema(lab, monkeypatch, declared_plan, tmp_path)


def check_a_label_is_clipped_with_its_record(lab):
    """A record that differs in its label alone is one record less and another more: twice the clip, and no further."""
    base = lab.people()
    changed = base.assign(out=base["out"].where(base["who"] != "p7", turned(base)["out"]))
    kept = lab.train(base)
    found = lab.train(changed, like=kept)
    lab.assert_same_public(kept, found)
    pairs = zip(kept.queries, found.queries, kept.allowed, strict=True)
    moved = [float((one - other).norm()) / allowed for one, other, allowed in pairs]
    assert max(moved) <= 2 * (1 + 1e-5)
    assert max(moved) > 1e-3  # the label is seen by the critic, inside the clip


ENGINE = "return self.engine(self.critic, records).lot(paired, group=group, groups=groups)"
TOTAL = "clipped.total.cpu().numpy()"


def test_a_label_is_clipped_with_its_record(lab):
    check_a_label_is_clipped_with_its_record(lab)


@pytest.mark.parametrize(
    "planted",
    [
        [
            (CriticGradients, "gradients", (ENGINE, f"self.seen = condition\n{ENGINE}")),
            (CriticGradients, "answer", (TOTAL, f"{TOTAL} + self.seen[:, 0].sum().numpy()")),
        ],
        [
            (
                CriticGradients,
                "gradients",
                ("condition=condition", "condition=torch.zeros_like(condition)"),
                ("self.partner(len(real), condition)", "self.partner(len(real), condition * 0)"),
            )
        ],
    ],
    ids=["label beside the clip", "label left out"],
)
def test_a_label_beside_the_record_is_caught(lab, planted):
    for owner, name, *edits in planted:
        lab.plant(owner, name, *edits)
    with lab.caught():
        check_a_label_is_clipped_with_its_record(lab)


def test_bought_shares_are_all_that_is_used(lab, monkeypatch):
    """With the noisy answer frozen, the labels themselves no longer matter."""
    base = lab.people()
    kept, trace = conditions(lab, monkeypatch, base, schema=lab.BOUGHT)
    found, seen = conditions(lab, monkeypatch, turned(base), like=trace, schema=lab.BOUGHT)
    assert np.array_equal(kept, found)
    lab.assert_same_public(trace, seen)
