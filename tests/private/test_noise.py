"""Noise has the right law, and no source can be seeded, saved or shared. Every test of a law has a mutant beside it."""

import copy
import itertools
import os
import pickle
import secrets
import subprocess
import sys

import numpy as np
import pytest
import torch
from replay_noise import ReplayNoise
from scipy import stats

from doublure.errors import SettingError
from doublure.private import noise as module
from doublure.private.noise import (
    OsKeyedDraws,
    OsKeyedNoise,
    ScaledNoise,
    require_std,
)

ALPHA = 1e-6
SIZE = 200_000  # tells a std that is off by 5 % (KS) or by 2 % (variance)
STD = 3.0
REAL = [OsKeyedNoise]
DRAWS = [OsKeyedDraws]


def ks_p(draw, std):
    return stats.kstest(draw.astype(np.float64) / std, "norm").pvalue


def std_p(draw, std):
    return 2 * stats.norm.sf(abs(np.square(draw.astype(np.float64) / std).mean() - 1) / np.sqrt(2 / len(draw)))


def repeated_blocks(*draws):
    """Blocks of 16 floats that occur more than once."""
    blocks = np.concatenate([draw[: len(draw) // 16 * 16].reshape(-1, 16) for draw in draws])
    return len(blocks) - len(np.unique(blocks, axis=0))


@pytest.fixture(scope="module", params=REAL)
def draw(request):
    return request.param().normal(SIZE, STD).values


def test_noise_is_normal(draw):
    assert draw.dtype == np.float32
    assert draw.shape == (SIZE,)
    assert ks_p(draw, STD) > ALPHA
    assert std_p(draw, STD) > ALPHA
    assert abs(draw.astype(np.float64).mean()) < 4.9 * STD / SIZE**0.5


def test_wrong_noise_is_caught(draw):
    assert ks_p(draw * 1.05, STD) < ALPHA
    assert std_p(draw * 1.02, STD) < ALPHA
    laplace = np.random.default_rng(0).laplace(0, STD / 2**0.5, SIZE)
    assert ks_p(laplace, STD) < ALPHA


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("std", [1e-30, 0.7, 1e30])
def test_a_source_says_how_far_its_noise_was_scaled(kind, std):
    drawn = kind().normal(5_000, std)
    assert isinstance(drawn, ScaledNoise)
    assert drawn.scale == std
    assert std_p(drawn.values, drawn.scale) > ALPHA


def test_neighbouring_values_are_independent(draw):
    for lag in (1, 2, 4, 16):
        product = (draw[lag:] * draw[:-lag]).astype(np.float64).mean() / STD**2
        assert abs(product) * (SIZE - lag) ** 0.5 < 4.9


def test_no_block_repeats(draw):
    assert repeated_blocks(draw) == 0
    assert repeated_blocks(draw, draw[:160]) == 10


@pytest.mark.parametrize("kind", REAL)
def test_two_draws_never_share_a_value_run(kind):
    same, other = kind(), kind()
    draws = [made.normal(1600, 1.0).values for made in (same, same, other)]
    assert repeated_blocks(*draws) == 0
    for one, two in itertools.combinations(draws, 2):
        assert abs(np.corrcoef(one, two)[0, 1]) < 4.9 / 1600**0.5


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("size", [0, 1, 7, 32_768, 32_769])
def test_every_size_is_filled(kind, size):
    draw = kind().normal(size, 1.0).values
    assert draw.shape == (size,)
    assert np.isfinite(draw).all()
    assert (draw == 0).sum() <= size // 1000  # float32 has a zero in eight million draws
    assert size == 0 or draw[-1] != 0


@pytest.mark.parametrize("kind", [*REAL, *DRAWS])
def test_a_source_takes_no_seed_and_holds_no_state(kind):
    with pytest.raises(TypeError):
        kind(7)
    with pytest.raises(TypeError):
        kind(seed=7)
    made = kind()
    with pytest.raises(AttributeError):
        made.key = 7
    for save in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never saved"):
            save(made)


@pytest.mark.parametrize("kind", REAL)
def test_global_seeds_do_not_govern_noise(kind):
    draws = []
    state, kept = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        draws.append(kind().normal(100, 1.0).values)
    torch.set_rng_state(state)
    np.random.set_state(kept)  # noqa: NPY002
    assert not np.array_equal(*draws)


FORKING = """
import os, numpy as np, torch
from doublure.private.noise import *
class Stateful:
    def __init__(self): self.generator = np.random.default_rng()
    def uniform(self, size): return torch.from_numpy(self.generator.random(size))
for name in ("OsKeyedNoise", "OsKeyedDraws", "Stateful"):
    source = globals()[name]()
    draw = (lambda: source.uniform(4).numpy()) if hasattr(source, "uniform") else (lambda: source.normal(4, 1.0).values)
    draw()
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, draw().tobytes())
        os._exit(0)
    child = os.read(reader, 4096)
    os.wait()
    print(name, "same" if child == draw().tobytes() else "different")
"""


@pytest.fixture(scope="module")
def forked():
    """Return of each source whether a forked process draws what its parent draws."""
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OsKeyedNoise", "different"),
        ("OsKeyedDraws", "different"),
        ("Stateful", "same"),
    ],
)
def test_a_forked_process_draws_its_own_noise(forked, name, expected):
    assert forked[name] == expected


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("std", [0.0, -1.0, float("nan"), float("inf"), 1e-40])
def test_noise_that_hides_nothing_is_refused(kind, std):
    with pytest.raises(SettingError, match=r"^std"):
        kind().normal(4, std)


@pytest.mark.parametrize("std", [float("nan"), 0.0, -1.0, 1e-31, 1e31, float("inf")])
def test_a_standard_deviation_can_be_checked_beforehand(std):
    with pytest.raises(SettingError) as refused:
        require_std(std, field="max_grad_norm")
    assert refused.value.field == "max_grad_norm"
    assert "\n" not in str(refused.value)
    for fine in (1e-30, 1.0, 1e30):
        require_std(fine)


# -- secret draws that are not noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DRAWS)
def test_secret_draws_have_the_right_law(kind):
    normal, uniform = kind().normal(SIZE // 4, 4), kind().uniform(SIZE)
    assert (normal.shape, normal.dtype) == ((SIZE // 4, 4), torch.float32)
    assert (uniform.shape, uniform.dtype) == ((SIZE,), torch.float32)
    assert ks_p(normal.flatten().numpy(), 1.0) > ALPHA
    assert std_p(normal.flatten().numpy(), 1.0) > ALPHA
    assert stats.kstest(uniform.double().numpy(), "uniform").pvalue > ALPHA
    assert stats.kstest(uniform.double().numpy() * 0.98, "uniform").pvalue < ALPHA
    assert float(uniform.min()) >= 0
    assert float(uniform.max()) < 1  # 1 - 2^-24 and not more
    assert repeated_blocks(normal.flatten().numpy(), uniform.numpy()) == 0
    for lag in (1, 2, 4):
        product = ((uniform[lag:] - 0.5) * (uniform[:-lag] - 0.5)).double().mean().item() * 12
        assert abs(product) * (SIZE - lag) ** 0.5 < 4.9


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("size", [0, 1, 7, 32_768, 32_769])
def test_secret_draws_of_every_size(kind, size):
    normal, uniform = kind().normal(size, 3), kind().uniform(size)
    assert (normal.shape, uniform.shape) == ((size, 3), (size,))
    assert torch.isfinite(normal).all()
    assert (torch.cat([normal.flatten(), uniform]) == 0).sum() <= size // 1000
    assert kind().normal(size, 0).shape == (size, 0)


@pytest.mark.parametrize("kind", DRAWS)
def test_global_seeds_do_not_govern_secret_draws(kind):
    draws, state = [], torch.get_rng_state()
    for _ in range(2):
        torch.manual_seed(0)
        draws.append(torch.cat([kind().normal(20, 5).flatten(), kind().uniform(100)]))
    torch.set_rng_state(state)
    assert not torch.equal(*draws)


def drawn_by(kind):
    """Return ways to draw eight numbers, as bytes."""
    made = kind()
    if kind in REAL:
        return [lambda: made.normal(8, 1.0).values.tobytes()]
    return [lambda: made.normal(4, 2).numpy().tobytes(), lambda: made.uniform(8).numpy().tobytes()]


def check_keys_are_long(patch):
    """Each call asks the operating system for 128 bits or more, and all of what it gives goes in."""
    for kind in (OsKeyedNoise, OsKeyedDraws):
        drawn = []
        for draw in drawn_by(kind):
            for given in (0, 1 << 127, 1 << 64, 1):
                with patch.context() as inner:
                    inner.setattr(secrets, "randbits", lambda bits, given=given: given % (1 << bits))
                    drawn.append(draw())
        assert len(set(drawn)) == len(drawn)


def test_keys_are_long(monkeypatch):
    check_keys_are_long(monkeypatch)


def test_short_keys_are_caught(monkeypatch):
    """torch's own generator keeps 32 bits of its seed: the keys 0, 2^64 and 2^127 would give the same draws."""

    class Short:
        def standard_normal(self, shape, dtype):
            return torch.randn(shape, generator=self.stream()).numpy()

        def random(self, size, dtype):
            return torch.rand(size, generator=self.stream()).numpy()

        def stream(self):
            return torch.Generator().manual_seed(secrets.randbits(128) % 2**63)

    monkeypatch.setattr(module, "freshly_keyed", Short)
    with pytest.raises(AssertionError):
        check_keys_are_long(monkeypatch)


def test_replay_plays_back_and_counts():
    noise = ReplayNoise([np.ones(3), torch.full((2,), 2.0)])
    assert noise.for_tests is True
    values, scale = noise.normal(3, 2.0)
    assert (values.dtype, values.tolist(), scale) == (np.float32, [2.0, 2.0, 2.0], 2.0)
    with pytest.raises(ValueError, match="another size"):
        noise.normal(3, 1.0)
    with pytest.raises(ValueError, match="no draw is left"):
        noise.normal(2, 1.0)
    assert noise.asked == [(3, 2.0), (3, 1.0), (2, 1.0)]
    assert ReplayNoise(itertools.repeat(np.zeros(2))).normal(2, 5.0).values.tolist() == [0.0, 0.0]
