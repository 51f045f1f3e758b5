"""Every record's gradient against a loop in float64, layer by layer, loss by loss."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest
import torch
from critics import NORMALISED, PAIRED, thinned
from planting import plant
from torch import Tensor, nn
from torch.nn import functional

from doublure.errors import SettingError
from doublure.private import gradients as package
from doublure.private.gradients import (
    CriticLoss,
    RecordGradients,
    RecordPairs,
    batch_gradient,
    choice,
    per_record_reference,
)
from doublure.private.gradients.choice import choose
from doublure.private.gradients.pairs import factor_pairs
from doublure.private.gradients.tape import UnknownParameterUse
from doublure.private.gradients.terms import DenseTerm, OuterTerm, UnitMembership
from doublure.private.gradients.units import UnitGradients

TOLERANCE = 1e-5
FLOOR = 1e-11
LOSSES = [
    CriticLoss(kind=kind, gradient_penalty=penalty) for kind in ("wgan", "hinge", "logistic") for penalty in (0.0, 10.0)
]


def named(each: CriticLoss | str) -> str:
    return each if isinstance(each, str) else f"{each.kind}-{each.gradient_penalty:g}"


def per_unit(gradients: RecordGradients, records: RecordPairs, **options: object) -> tuple[Tensor, Tensor]:
    """Return the units' gradients (G, P), taken out one by one, and their norms (G,)."""
    rows, norms = [], []
    for part in gradients.lot(records, **options):
        norms.append(part.norms())
        rows += [part.weighted_sum(each) for each in torch.eye(len(part.units))]
    return torch.stack(rows), torch.cat(norms)


def require_close(found: Tensor, norms: Tensor, expected: Tensor) -> None:
    """Require each row to agree with float64 to 1e-5 of itself, however large the others are, and its norm to bound it.

    A norm may be a little more than the row's, by what rounding can add where the terms of a row cancel, and by what
    may have sunk below the smallest float32 even where it is zero. It is never less.
    """
    sizes = expected.norm(dim=1)
    assert ((found.double() - expected).norm(dim=1) <= TOLERANCE * sizes.clamp(min=FLOOR)).all()
    assert (norms >= sizes * (1 - 1e-6)).all()
    assert (norms <= sizes + 2 * TOLERANCE * sizes.clamp(min=FLOOR)).all()


def grouped() -> nn.Module:
    return nn.Sequential(nn.Conv1d(8, 64, 3, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(128, 1))


def check_groups_agree(make_critic, make_records):
    """Each group of a convolution adds its own square to a record's norm, and factor pairs are exact about it."""
    critic, loss, records = (
        make_critic(grouped),
        CriticLoss(kind="wgan", gradient_penalty=10.0),
        make_records((8, 4), 3),
    )
    index = torch.arange(3)
    parameters = [*critic.parameters()]
    terms = factor_pairs(critic, parameters, loss, records)
    found = UnitGradients(index, terms, UnitMembership(index, 3, single=True), parameters)
    assert any(isinstance(term, OuterTerm) and term.groups == 2 for term in terms)
    expected = per_record_reference(critic, loss, records)
    assert torch.allclose(found.norms(), expected.norm(dim=1), rtol=TOLERANCE, atol=0)
    assert choose(critic, parameters, loss, records).name == "pairs"


def test_groups_agree(make_critic, make_records):
    check_groups_agree(make_critic, make_records)


@pytest.mark.parametrize("sum_of", ["amax(1)", "mean(1)", "select(1, 0)"])
def test_groups_that_are_not_added_up_are_refused(make_critic, make_records, monkeypatch, sum_of):
    """A wrong norm would clip too little: the way is not taken, and a direct look finds it out."""
    total = "squares.view(-1, self.groups)"
    plant(monkeypatch, OuterTerm, "measure", (f"{total}.sum(1)", f"{total}.{sum_of}"))
    critic = make_critic(grouped)
    chosen = choose(critic, [*critic.parameters()], CriticLoss(kind="wgan"), make_records((8, 4), 2))
    assert chosen.name != "pairs"
    with pytest.raises(AssertionError):
        check_groups_agree(make_critic, make_records)


@pytest.mark.parametrize(("what", "by"), [("row", 1 + 1e-4), ("norm", 1 + 1e-4), ("norm", 1 - 1e-5)])
def test_a_fault_in_a_small_row_is_caught(what, by):
    """A row a millionth of the largest, off by little of itself."""
    expected = torch.eye(3, dtype=torch.float64) * torch.tensor([1e3, 1.0, 1e-3])
    found, norms = expected.clone(), expected.norm(dim=1)
    require_close(found, norms, expected)
    (found[2] if what == "row" else norms[2:]).mul_(by)
    with pytest.raises(AssertionError):
        require_close(found, norms, expected)


@pytest.mark.parametrize(("paired", "loss"), thinned(PAIRED, LOSSES), indirect=["paired"], ids=named)
def test_pairs_equal_the_loop(paired, make_records, loss):
    critic, shape = paired
    records = make_records(shape, 6)
    gradients = RecordGradients(critic, loss)
    found, norms = per_unit(gradients, records)
    assert gradients.method == "pairs"
    require_close(found, norms, per_record_reference(critic, loss, records))


@pytest.mark.parametrize(("normalised", "loss"), thinned(NORMALISED, LOSSES), indirect=["normalised"], ids=named)
def test_normalised_critics_equal_the_loop(normalised, make_records, loss):
    """Every activation behind a normalisation of each kind, a record by itself and a unit of several."""
    critic, shape = normalised
    records, group = make_records(shape, 6), torch.tensor([1, 0, 1, 2, 2, 1])
    gradients = RecordGradients(critic, loss)
    expected = per_record_reference(critic, loss, records)
    found, norms = per_unit(gradients, records)
    assert gradients.method == "pairs"
    require_close(found, norms, expected)
    summed = torch.zeros(3, expected.shape[1], dtype=torch.float64).index_add_(0, group, expected)
    require_close(*per_unit(gradients, records, group=group), summed)


@pytest.mark.parametrize("loss", LOSSES[:2], ids=named)
def test_other_critics_equal_the_loop_in_another_way(other, make_records, loss):
    critic, shape, way = other
    records = make_records(shape, 5)
    gradients = RecordGradients(critic, loss)
    found, norms = per_unit(gradients, records)
    assert gradients.method == way
    require_close(found, norms, per_record_reference(critic, loss, records))


@pytest.mark.parametrize(("paired", "loss"), thinned(PAIRED, LOSSES), indirect=["paired"], ids=named)
def test_units_of_several_records_are_summed(paired, make_records, loss):
    critic, shape = paired
    records, group = make_records(shape, 9), torch.tensor([3, 0, 3, 1, 3, 0, 4, 3, 1])
    expected = torch.zeros(5, sum(p.numel() for p in critic.parameters()), dtype=torch.float64)
    expected.index_add_(0, group, per_record_reference(critic, loss, records))
    found, norms = per_unit(RecordGradients(critic, loss), records, group=group, groups=5)
    require_close(found, norms, expected)
    assert not found[2].any()


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("activation", [nn.LeakyReLU(0.2), nn.SiLU()], ids=["piecewise", "smooth"])
def test_conditions_beside_the_records(make_critic, make_records, loss, activation):
    critic = make_critic(activation=activation, width=8)
    records = make_records((5,), 6, condition=torch.randn(6, 3, generator=torch.Generator().manual_seed(1)))
    gradients = RecordGradients(critic, loss)
    found, norms = per_unit(gradients, records)
    assert gradients.method == "pairs"
    require_close(found, norms, per_record_reference(critic, loss, records))


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("positions", [1, 3])
def test_embedded_conditions(make_critic, make_records, loss, positions):
    critic = make_critic(activation=nn.SiLU(), width=5 + 4 * positions, table=lambda: nn.Embedding(6, 4))
    condition = torch.tensor([[0, 5, 0], [1, 1, 1], [2, 3, 2], [5, 0, 1], [1, 1, 0], [4, 4, 2]])[:, :positions]
    records, group = make_records((5,), 6, condition=condition), torch.tensor([0, 1, 1, 0, 2, 2])
    gradients = RecordGradients(critic, loss)
    expected = per_record_reference(critic, loss, records)
    found, norms = per_unit(gradients, records)
    assert gradients.method == "pairs"
    require_close(found, norms, expected)
    summed = torch.zeros(3, expected.shape[1], dtype=torch.float64).index_add_(0, group, expected)
    require_close(*per_unit(gradients, records, group=group), summed)


@pytest.mark.parametrize("kind", ["wgan", "hinge", "logistic"])
def test_real_records_alone(paired, make_records, kind):
    critic, shape = paired
    records = RecordPairs(real=make_records(shape, 6).real)
    loss = CriticLoss(kind=kind)
    found, norms = per_unit(RecordGradients(critic, loss), records)
    require_close(found, norms, per_record_reference(critic, loss, records))


@pytest.mark.parametrize(("paired", "loss"), thinned(PAIRED, LOSSES), indirect=["paired"], ids=named)
def test_batch_gradient_is_the_sum(paired, make_records, loss):
    critic, shape = paired
    records = make_records(shape, 6)
    expected = per_record_reference(critic, loss, records).sum(0)
    assert (batch_gradient(critic, loss, records).double() - expected).norm() <= TOLERANCE * expected.norm()


def test_the_reference_agrees_with_finite_differences(make_critic, make_records):
    """The reference itself, through the penalty's double backward, against nothing but the loss's values."""
    critic = make_critic(activation=nn.SiLU()).double()
    loss, records = CriticLoss(kind="logistic", gradient_penalty=10.0), make_records((5,), 1).to(torch.float64)
    (found,) = per_record_reference(critic, loss, records)
    flat = torch.nn.utils.parameters_to_vector(critic.parameters()).detach()

    def value(at: Tensor) -> Tensor:
        torch.nn.utils.vector_to_parameters(at, critic.parameters())
        return loss.per_record(critic, records).sum().detach()

    step = 1e-6
    for place in range(0, len(flat), 37):
        shift = torch.zeros_like(flat)
        shift[place] = step
        slope = (value(flat + shift) - value(flat - shift)) / (2 * step)
        assert slope == pytest.approx(found[place].item(), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("kind", "real", "fake"), [("wgan", -3.0, 3.0), ("hinge", 0.0, 4.0), ("logistic", 0.0485874, 3.0485874)]
)
def test_the_losses_are_those_of_the_table(kind, real, fake):
    loss, score = CriticLoss(kind=kind), torch.tensor([3.0])
    assert loss.on_real(score).tolist() == pytest.approx([real], rel=1e-5)
    assert loss.on_fake(score).tolist() == pytest.approx([fake], rel=1e-5)


def test_slopes_are_taken_between_a_record_and_its_partner():
    real, fake = torch.tensor([[4.0, 8.0], [1.0, 1.0]]), torch.tensor([[0.0, 4.0], [3.0, -1.0]])
    mixed = RecordPairs(real=real, fake=fake, mix=torch.tensor([0.25, 1.0])).mixed()
    assert mixed.tolist() == [[1.0, 5.0], [1.0, 1.0]]


class Called(nn.Module):
    """Layers called as functions, with as few arguments as they take."""

    def __init__(self, features: int, *kernel: int) -> None:
        super().__init__()
        self.kernel = nn.Parameter(0.5 * torch.randn(4, 2, *kernel))
        self.one, self.other = (nn.Parameter(1 + torch.rand(size)) for size in (4, features))
        self.last = nn.Parameter(0.5 * torch.randn(1, features))

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        convolved = (functional.conv1d if x.dim() == 3 else functional.conv2d)(x, self.kernel)
        bent = functional.leaky_relu(functional.group_norm(convolved, 2, self.one)).flatten(1)
        normal = functional.layer_norm(bent, bent.shape[1:], self.other)
        return functional.linear(functional.relu(normal), self.last).squeeze(1)


@pytest.mark.parametrize(("features", "kernel", "shape"), [(32, (3,), (2, 10)), (36, (2, 3), (2, 4, 5))])
def test_layers_called_without_what_they_can_do_without(make_records, features, kernel, shape):
    torch.manual_seed(0)
    critic, loss = Called(features, *kernel), CriticLoss(kind="wgan", gradient_penalty=10.0)
    gradients, records = RecordGradients(critic, loss), make_records(shape, 4)
    found, norms = per_unit(gradients, records)
    assert gradients.method == "pairs"
    require_close(found, norms, per_record_reference(critic, loss, records))


def test_a_critic_may_have_one_parameter(make_critic, make_records):
    critic, loss = make_critic(lambda: nn.Linear(5, 1, bias=False)), CriticLoss(kind="wgan")
    gradients, records = RecordGradients(critic, loss), make_records((5,), 3)
    expected = per_record_reference(critic, loss, records)
    require_close(*per_unit(gradients, records), expected)
    (part,) = gradients.lot(records)
    assert torch.allclose(part.weighted_sum(torch.ones(3)).double(), expected.sum(0), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e4])
def test_what_cancels_leaves_no_trace_in_the_others(size):
    """Of summands a million times their sum, whatever their size: in float32 their rounding would be seen beside it."""
    right = torch.zeros(2, 2, 3)
    right[0, 0] = size * torch.tensor([5e-4, 8e-4, 1e-4])
    right[1] = size * torch.tensor([[1000.0], [1000.001]])
    term = OuterTerm(0, None, 1, (torch.tensor([[[-1.0], [1.0]]]).expand(2, 2, 1),), (right,), (True,))
    index = torch.arange(2)
    found = UnitGradients(index, [term], UnitMembership(index, 2, single=True), [torch.zeros(1, 3)])
    expected = (right[:, 1].double() - right[:, 0].double()).sum(0)
    assert torch.allclose(found.weighted_sum(torch.ones(2)).double(), expected, rtol=1e-5, atol=0)


def test_no_record_has_no_gradient(make_critic, make_records):
    critic = make_critic()
    found = per_record_reference(critic, CriticLoss(kind="wgan"), make_records((5,), 0))
    assert found.shape == (0, sum(p.numel() for p in critic.parameters()))
    assert found.dtype == torch.float64


@pytest.mark.parametrize("wrong", [2, 3])
def test_a_way_that_is_wrong_for_lots_of_some_size_is_not_taken(make_critic, make_records, monkeypatch, wrong):
    critic = make_critic()
    parameters, right = list(critic.parameters()), choice.factor_pairs

    def sometimes(critic, parameters, loss, records):
        return right(critic, parameters, loss, records)[: None if len(records) != wrong else 1]

    monkeypatch.setattr(choice, "factor_pairs", sometimes)
    assert choose(critic, parameters, CriticLoss(kind="wgan"), make_records((5,), 4)).name == "vmap"


@pytest.mark.parametrize(
    ("steps", "kept", "numbers"), [(1, OuterTerm, 9), (2, OuterTerm, 18), (3, DenseTerm, 20), (8, DenseTerm, 20)]
)
def test_a_gradient_is_written_out_where_that_takes_no_more_room(steps, kept, numbers):
    """20 numbers of the weight and 4 of the bias, or 9 for each place that the layer acts at."""
    left, right = torch.randn(1, steps, 4), torch.randn(1, steps, 5)
    first, *rest = OuterTerm(0, 1, 1, (left,), (right,), (True,)).shortest()
    assert isinstance(first, kept)
    assert first.numbers() == numbers
    assert [term.numbers() for term in rest] == ([4] if kept is DenseTerm else [])


def test_dropout_is_still_per_record(make_critic, make_records):
    """With dropout on there is no reference; each record's gradient must still be bounded by its reported norm."""
    critic = make_critic(lambda: nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.5), nn.LeakyReLU(0.2), nn.Linear(16, 1)))
    gradients = RecordGradients(critic.train(), CriticLoss(kind="wgan", gradient_penalty=10.0))
    (part,) = gradients.lot(make_records((5,), 6))
    assert gradients.method == "pairs"
    assert critic.body[1].training
    for norm, each in zip(part.norms(), torch.eye(6), strict=True):
        assert part.weighted_sum(each).double().norm() <= norm * (1 + 1e-6)


def test_an_input_overwritten_after_its_use_is_noticed(make_critic, make_records):
    class Overwritten(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            with torch.no_grad():
                x.mul_(0.5)
            return y

    critic = make_critic(lambda: nn.Sequential(nn.Linear(5, 8), Overwritten(8, 1)))
    with pytest.raises(UnknownParameterUse):
        factor_pairs(critic, list(critic.parameters()), CriticLoss(kind="wgan"), make_records((5,), 4))


def test_no_gradient_imports_algebra(make_critic, make_records, monkeypatch):
    """It would take longer than a small fit: a gradient that is given a seed has torch import SymPy."""
    monkeypatch.setitem(sys.modules, "torch.fx.experimental.symbolic_shapes", None)
    loss = CriticLoss(kind="wgan", gradient_penalty=10.0)
    assert per_unit(RecordGradients(make_critic(), loss), make_records((5,), 4))[0].any()
    values = torch.ones(2, requires_grad=True)
    with pytest.raises(ImportError):
        torch.autograd.grad(values * 2, values, torch.ones(2))  # whose import this test would notice


def test_the_critic_is_left_as_it_was(make_critic, make_records):
    critic = make_critic()
    critic.body[0].weight.requires_grad_(False)
    before = {name: value.clone() for name, value in critic.state_dict().items()}
    attributes = [set(vars(module)) for module in critic.modules()] + [set(vars(p)) for p in critic.parameters()]
    gradients = RecordGradients(critic, CriticLoss(kind="wgan", gradient_penalty=10.0))
    found, _ = per_unit(gradients, make_records((5,), 4))
    assert found[0][:80].any(), "a frozen parameter has a gradient all the same"
    assert [p.requires_grad for p in critic.parameters()] == [False, True, True, True, True, True]
    assert all(p.grad is None for p in critic.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in critic.modules())
    after = [set(vars(module)) for module in critic.modules()] + [set(vars(p)) for p in critic.parameters()]
    assert attributes == after
    assert all(torch.equal(before[name], value) for name, value in critic.state_dict().items())


def test_the_same_lot_gives_the_same_bits(paired, make_records):
    critic, shape = paired
    gradients, records = RecordGradients(critic, CriticLoss(kind="wgan", gradient_penalty=10.0)), make_records(shape, 6)
    for one, other in zip(per_unit(gradients, records), per_unit(gradients, records), strict=True):
        assert torch.equal(one, other)


def test_gradients_need_no_grad_mode(make_critic, make_records):
    critic, loss, records = make_critic(), CriticLoss(kind="wgan", gradient_penalty=10.0), make_records((5,), 4)
    with torch.no_grad():
        found, norms = per_unit(RecordGradients(critic, loss), records)
        expected = per_record_reference(critic, loss, records)
    require_close(found, norms, expected)


def test_coarse_matrix_products_are_not_used_for_the_sum(make_critic, make_records):
    critic, loss, records = make_critic(), CriticLoss(kind="wgan"), make_records((5,), 4)
    (part,) = RecordGradients(critic, loss).lot(records)
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        found = part.weighted_sum(torch.ones(4))
    finally:
        torch.set_float32_matmul_precision(precision)
    exact = sum(part._weighted(part.terms, torch.ones(4, dtype=torch.float64), torch.float64).unsqueeze(0))
    assert torch.equal(found, exact.float())


# By the settings of torch 2.9 and later, for one backend or for all: the older question may not be asked then.
NEWER = [
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'tf32'",
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
]
IN_A_PROCESS = """
import os, sys
import torch
from doublure.private.gradients import CriticLoss, RecordPairs, RecordGradients
from doublure.private.gradients.units import UnitGradients

torch.set_num_threads(1)
draw = torch.Generator().manual_seed(0)
class Critic(torch.nn.Linear):
    def forward(self, x, condition=None):
        return super().forward(x).squeeze(1)
gradients = RecordGradients(Critic(5, 1), CriticLoss(kind="wgan", gradient_penalty=1.0))
real, fake = torch.randn(2, 4, 5, generator=draw)
records = RecordPairs(real=real, fake=fake, mix=torch.rand(4, generator=draw))
asked, weighted = [], UnitGradients._weighted
def watched(self, terms, weights, precision):
    asked.append(precision)
    return weighted(self, terms, weights, precision)
UnitGradients._weighted = watched
for setting in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    exec(setting)
    (part,) = gradients.lot(records)
    assert part.weighted_sum(torch.ones(4)).dtype == torch.float32
    print(asked[-1], flush=True)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="needs torch 2.9")
def test_a_coarse_product_by_the_newer_settings_is_not_used_for_the_sum():
    words = [sys.executable, "-W", "ignore", "-c", IN_A_PROCESS, *NEWER, ""]  # each in a fork: none asks after another
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["torch.float64"] * len(NEWER) + ["torch.float32"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"fake": torch.zeros(3, 4)}, "fake"),
        ({"mix": torch.zeros(2)}, "mix"),
        ({"condition": torch.zeros(2, 1)}, "condition"),
    ],
)
def test_records_that_do_not_go_together_are_refused(arguments, field):
    with pytest.raises(SettingError) as refused:
        RecordPairs(real=torch.zeros(3, 5), **arguments)
    assert refused.value.field == field


def test_settings_are_checked(make_critic, make_records):
    with pytest.raises(SettingError, match="hinged"):
        CriticLoss(kind="hinged")
    for penalty in (-1.0, float("nan"), float("inf")):
        with pytest.raises(SettingError):
            CriticLoss(kind="wgan", gradient_penalty=penalty)
    gradients = RecordGradients(make_critic(), CriticLoss(kind="wgan", gradient_penalty=10.0))
    with pytest.raises(SettingError) as refused:
        gradients.lot(RecordPairs(real=torch.zeros(3, 5)))
    assert refused.value.field == "gradient_penalty"
    with pytest.raises(SettingError) as refused:
        gradients.lot(make_records((5,), 3), chunk_size=0)
    assert refused.value.field == "chunk_size"
    for group in (torch.zeros(2, dtype=torch.long), torch.zeros(3), torch.tensor([0, 1, 7]), torch.tensor([0, -1, 0])):
        with pytest.raises(SettingError) as refused:
            gradients.lot(make_records((5,), 3), group=group, groups=2)
        assert refused.value.field == "group"


def test_a_critic_must_return_one_score_a_record(make_records):
    class Wide(nn.Linear):
        def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
            return super().forward(x)

    with pytest.raises(SettingError) as refused:
        list(RecordGradients(Wide(5, 1), CriticLoss(kind="wgan")).lot(make_records((5,), 3)))
    assert refused.value.field == "critic"


def test_examples():
    results = doctest.testmod(package)
    assert results.attempted
    assert not results.failed


def test_norms_of_long_rows_do_not_accumulate_in_float32():
    """Millions of numbers in one sum of float32 lose a hundred thousandth: a gradient would pass for shorter."""
    values = torch.rand(1, 2**22, generator=torch.Generator().manual_seed(0)) + 0.5
    units = UnitMembership(index=torch.zeros(1, dtype=torch.long), count=1, single=True)
    squares, _ = DenseTerm(parameter=0, values=values).measure(units)
    exact = values.double().square().sum()
    assert squares.item() == pytest.approx(exact.item(), rel=1e-8)
