"""Noise has the right law, and no source can be seeded, saved or shared. Every test of a law has a mutant beside it."""

import copy
import itertools
import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats

from doublure.errors import SettingError
from doublure.private import noise as module
from doublure.private.noise import (
    ChaCha20Draws,
    ChaCha20Noise,
    OsKeyedDraws,
    OsKeyedNoise,
    ReplayNoise,
    chacha20,
    require_std,
    secret_draws,
    source,
)

ALPHA = 1e-6
SIZE = 200_000  # tells a std that is off by 5 % (KS) or by 2 % (variance)
STD = 3.0
REAL = [OsKeyedNoise, ChaCha20Noise]
DRAWS = [OsKeyedDraws, ChaCha20Draws]


def ks_p(draw, std):
    return stats.kstest(draw.double().numpy() / std, "norm").pvalue


def std_p(draw, std):
    return 2 * stats.norm.sf(abs((draw.double() / std).square().mean() - 1).item() / np.sqrt(2 / len(draw)))


def repeated_blocks(*draws):
    """Blocks of 16 floats that occur more than once."""
    blocks = np.concatenate([draw.numpy()[: len(draw) // 16 * 16].reshape(-1, 16) for draw in draws])
    return len(blocks) - len(np.unique(blocks, axis=0))


@pytest.fixture(scope="module", params=REAL)
def draw(request):
    return request.param().normal(SIZE, STD)


def test_noise_is_normal(draw):
    assert draw.dtype == torch.float32
    assert draw.shape == (SIZE,)
    assert ks_p(draw, STD) > ALPHA
    assert std_p(draw, STD) > ALPHA
    assert abs(draw.double().mean().item()) < 4.9 * STD / SIZE**0.5


def test_wrong_noise_is_caught(draw):
    assert ks_p(draw * 1.05, STD) < ALPHA
    assert std_p(draw * 1.02, STD) < ALPHA
    laplace = torch.from_numpy(np.random.default_rng(0).laplace(0, STD / 2**0.5, SIZE))
    assert ks_p(laplace, STD) < ALPHA


def test_neighbouring_values_are_independent(draw):
    for lag in (1, 2, 4, 16):
        product = (draw[lag:] * draw[:-lag]).double().mean().item() / STD**2
        assert abs(product) * (SIZE - lag) ** 0.5 < 4.9


def test_no_block_repeats(draw):
    assert repeated_blocks(draw) == 0
    assert repeated_blocks(draw, draw[:160]) == 10


@pytest.mark.parametrize("kind", REAL)
def test_two_draws_never_share_a_value_run(kind):
    same, other = kind(), kind()
    draws = [same.normal(1600, 1.0), same.normal(1600, 1.0), other.normal(1600, 1.0)]
    assert repeated_blocks(*draws) == 0
    for one, two in itertools.combinations(draws, 2):
        assert abs(torch.corrcoef(torch.stack([one, two]))[0, 1].item()) < 4.9 / 1600**0.5


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("size", [0, 1, 7, 32_768, 32_769])
def test_every_size_is_filled(kind, size):
    draw = kind().normal(size, 1.0)
    assert draw.shape == (size,)
    assert torch.isfinite(draw).all()
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
    state = torch.get_rng_state()
    for _ in range(2):
        torch.manual_seed(0)
        draws.append(kind().normal(100, 1.0))
    torch.set_rng_state(state)
    assert not torch.equal(*draws)


STATEFUL = """
class Stateful:
    def __init__(self): self.generator = np.random.default_rng()
    def normal(self, size, std): return torch.from_numpy(self.generator.standard_normal(size))
    def uniform(self, size): return torch.from_numpy(self.generator.random(size))
"""
FORKING = """
import os, numpy as np, torch
from doublure.private.noise import *
{definition}
source = {source}()
draw = getattr(source, "uniform", lambda size: source.normal(size, 1.0))
draw(4)
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, draw(4).numpy().tobytes())
    os._exit(0)
child = os.read(reader, 4096)
os.wait()
print("same" if child == draw(4).numpy().tobytes() else "different")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OsKeyedNoise", "different"),
        ("ChaCha20Noise", "different"),
        ("OsKeyedDraws", "different"),
        ("ChaCha20Draws", "different"),
        ("Stateful", "same"),
    ],
)
def test_a_forked_process_draws_its_own_noise(name, expected):
    script = FORKING.format(definition=STATEFUL, source=name)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_settings_name_real_sources_only():
    for name in ("os-keyed", "chacha20"):
        assert source(name).name == name
        assert source(name).for_tests is False
    for name in ("replay", "seeded", ""):
        with pytest.raises(SettingError, match="os-keyed or chacha20"):
            source(name)


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
    assert ks_p(normal.flatten(), 1.0) > ALPHA
    assert std_p(normal.flatten(), 1.0) > ALPHA
    assert stats.kstest(uniform.double().numpy(), "uniform").pvalue > ALPHA
    assert stats.kstest(uniform.double().numpy() * 0.98, "uniform").pvalue < ALPHA
    assert float(uniform.min()) >= 0
    assert float(uniform.max()) < 1  # 1 - 2^-24 and not more
    assert repeated_blocks(normal.flatten(), uniform) == 0
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


def check_keys_are_long(patch):
    """Each call asks the operating system for 128 bits or more, and all of what it gives goes in."""
    asked = []
    for name, kind in (("os-keyed", OsKeyedDraws), ("chacha20", ChaCha20Draws)):
        made = secret_draws(name)
        assert isinstance(made, kind)
        for draw in (partial(made.normal, 4, 2), partial(made.uniform, 8)):
            for given in (0, 1 << 127, 1 << 64, 1):
                with patch.context() as inner:
                    inner.setattr(module.secrets, "randbits", lambda bits, given=given: given % (1 << bits))
                    inner.setattr(
                        module.os,
                        "urandom",
                        lambda size, given=given: (given % (1 << 8 * size)).to_bytes(size, "little"),
                    )
                    asked.append(draw().numpy().tobytes())
    assert len(set(asked)) == len(asked)


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
            return torch.Generator().manual_seed(module.secrets.randbits(128) % 2**63)

    monkeypatch.setattr(module, "_freshly_keyed", Short)
    with pytest.raises(AssertionError):
        check_keys_are_long(monkeypatch)


def test_settings_name_secret_draws_too():
    for name in ("os-keyed", "chacha20"):
        assert secret_draws(name).name == name
    with pytest.raises(SettingError, match="os-keyed or chacha20"):
        secret_draws("seeded")


def test_replay_plays_back_and_counts():
    noise = ReplayNoise([torch.ones(3), torch.full((2,), 2.0)])
    assert noise.for_tests is True
    assert noise.normal(3, 2.0).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="another size"):
        noise.normal(3, 1.0)
    with pytest.raises(ValueError, match="no draw is left"):
        noise.normal(2, 1.0)
    assert noise.asked == [(3, 2.0), (3, 1.0), (2, 1.0)]
    assert ReplayNoise(itertools.repeat(torch.zeros(2))).normal(2, 5.0).tolist() == [0.0, 0.0]


# --- ChaCha20, against RFC 8439 -------------------------------------------------------------------------------------


def test_chacha20_block_function():
    """RFC 8439, §2.3.2."""
    stream = chacha20(bytes(range(32)), nonce=bytes.fromhex("000000090000004a00000000"), counter=1, blocks=1)
    assert stream.hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


@pytest.mark.parametrize(
    ("key", "nonce", "counter", "expected"),
    [
        ("00" * 32, "00" * 12, 0, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"),
        ("00" * 32, "00" * 12, 1, "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"),
        ("00" * 31 + "01", "00" * 12, 1, "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"),
        ("00ff" + "00" * 30, "00" * 12, 2, "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"),
        ("00" * 32, "00" * 11 + "02", 0, "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"),
    ],
)
def test_chacha20_key_stream(key, nonce, counter, expected):
    """RFC 8439, appendix A.1, vectors 1 to 5 (first halves)."""
    stream = chacha20(bytes.fromhex(key), nonce=bytes.fromhex(nonce), counter=counter, blocks=1)
    assert stream[:32].hex() == expected


def test_chacha20_encrypts_the_sunscreen_text():
    """RFC 8439, §2.4.2: two blocks, counter from 1."""
    text = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    stream = chacha20(bytes(range(32)), nonce=bytes.fromhex("000000000000004a00000000"), counter=1, blocks=2)
    cipher = bytes(a ^ b for a, b in zip(text, stream, strict=False))
    assert cipher.hex().startswith("6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b")
    assert cipher.hex().endswith("5af90bbf74a35be6b40b8eedf2785e42874d")


def test_chacha20_blocks_stand_side_by_side():
    key, nonce = os.urandom(32), os.urandom(12)
    many = chacha20(key, nonce=nonce, counter=5, blocks=9)
    assert many == b"".join(chacha20(key, nonce=nonce, counter=5 + i, blocks=1) for i in range(9))


@pytest.mark.parametrize(("key", "nonce", "counter"), [(31, 12, 0), (32, 8, 0), (32, 12, 2**32)])
def test_chacha20_refuses_wrong_lengths(key, nonce, counter):
    with pytest.raises(ValueError, match="32 bytes"):
        chacha20(bytes(key), nonce=bytes(nonce), counter=counter, blocks=1)
