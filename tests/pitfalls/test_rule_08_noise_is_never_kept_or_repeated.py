"""Rule 8: noise comes from the operating system and is never stored, logged or repeated; a seed governs initial weights
and sampling only (rows 16, 18 and 19; the ledger's part is in ``test_ledger_lost_steps_count.py``)."""

from __future__ import annotations

import contextlib
import os
import secrets
from itertools import count

import numpy as np
import pytest
import torch
from safetensors import safe_open

from doublure.errors import Interrupted, LostRun, NotAsPriced, RunFolderError, SettingError
from doublure.ledger import Ledger
from doublure.methods.statistics.tables import fitting as table_fitting
from doublure.private import entropy, noise, whole_noise
from doublure.private.clipping import ConstantSchedule
from doublure.private.gradients import CriticLoss
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries import counts
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.sampling import FixedSizeSampler, PoissonSampler
from doublure.run import running
from doublure.run.answers import AnswersInFolder
from doublure.run.folder import RunFolder
from doublure.training import critic_steps as private_critic_trainer
from doublure.training import gan_loop as adversarial
from doublure.training.gan_loop import Adversaries

KEPT = ("generator.", "average.", "critic_optimizer.", "generator_optimizer.")


def bytes_of(trace):
    return b"".join(np.asarray(value).tobytes() for value in trace.public["generator"].values())


def runs(lab, patch, *, noiseless=False, rows=24):
    """Return two runs of the same seed on the same table."""
    with patch.context() as inner:
        if noiseless:
            inner.setattr(
                OsKeyedNoise, "normal", lambda self, size, std: noise.ScaledNoise(np.zeros(size, np.float32), std)
            )
        return [lab.train(lab.people()[:rows], real=True, seed=7) for _ in range(2)]


def check_equal_seeds_do_not_repeat_the_noise(lab, patch):
    # Nobody is in the table, so nothing but the noise and what the seed governs is left.
    one, other = runs(lab, patch, rows=0)
    assert bytes_of(one) != bytes_of(other)
    one, other = runs(lab, patch, rows=0, noiseless=True)
    assert bytes_of(one) == bytes_of(other)
    with patch.context() as inner:
        inner.setattr(Adversaries, "partner", lambda self, size, condition: torch.zeros(size, 12))
        inner.setattr(CriticGradients, "_mix", lambda self, size: torch.zeros(size))
        one, other = runs(lab, patch, noiseless=True)
    assert bytes_of(one) != bytes_of(other)  # other lots


def test_equal_seeds_do_not_repeat_the_noise(lab, monkeypatch):
    check_equal_seeds_do_not_repeat_the_noise(lab, monkeypatch)


def seeded(size, std, seed):
    return noise.ScaledNoise(np.random.default_rng(seed).standard_normal(size, dtype=np.float32) * np.float32(std), std)


@pytest.mark.parametrize("what", ["noise", "lots", "seed governs nothing"])
def test_a_seed_that_governs_too_much_or_too_little_is_caught(lab, monkeypatch, what):
    numbers = count()
    if what == "noise":  # a generator seeded from the configuration, as published code has it
        monkeypatch.setattr(OsKeyedNoise, "normal", lambda self, size, std: seeded(size, std, 7))
    elif what == "lots":

        def lot(sampler):
            draw = np.random.default_rng(next(numbers) % 6)
            return np.flatnonzero(draw.random(sampler._population) < sampler.sample_rate)

        monkeypatch.setattr(PoissonSampler, "lot", lot)
    else:
        monkeypatch.setattr(adversarial, "_mixed", lambda *numbers: secrets.randbits(63))
    with lab.caught():
        check_equal_seeds_do_not_repeat_the_noise(lab, monkeypatch)


# All that is drawn where private records are, one draw each.
DRAWN = {
    "noise": lambda: noise.OsKeyedNoise().normal(8, 1.0).values,
    "paired rows": lambda: noise.OsKeyedDraws().normal(2, 4),
    "mixing numbers": lambda: noise.OsKeyedDraws().uniform(8),
    "lots": lambda: PoissonSampler(200, 0.5).lot(),
    "lots of one size": lambda: FixedSizeSampler(200, 100).lot(),
}
BITS = 128


def check_every_key_is_long_and_all_of_it_counts(patch, draw):
    """A draw asks the operating system for one key of 128 bits or more, and each bit of it changes what is drawn."""

    def drawn(flipped=None):
        asked = []

        def randbits(size):
            asked.append(size)
            return 0 if flipped is None else (1 << flipped) % (1 << size)

        def urandom(size):
            return randbits(8 * size).to_bytes(size, "little")

        with patch.context() as inner:
            inner.setattr(secrets, "randbits", randbits)
            inner.setattr(os, "urandom", urandom)
            made = np.asarray(draw()).tobytes()
        assert len(asked) == 1
        return asked[0], made

    bits, base = drawn()
    assert bits >= BITS
    assert drawn() == (bits, base)  # nothing else goes in
    assert len({drawn(flipped)[1] for flipped in range(bits)} | {base}) == bits + 1


@pytest.mark.parametrize("what", DRAWN)
def test_every_key_is_long_and_all_of_it_counts(monkeypatch, what):
    check_every_key_is_long_and_all_of_it_counts(monkeypatch, DRAWN[what])


KEY = "secrets.randbits(128)"


@pytest.mark.parametrize("key", ["secrets.randbits(32)", f"{KEY} % 2**32", f"{KEY} >> 64", "7"])
@pytest.mark.parametrize(
    "what",
    DRAWN,
)
def test_a_short_key_is_caught(lab, monkeypatch, what, key):
    lab.plant(entropy, "freshly_keyed", (KEY, key))
    with lab.caught():
        check_every_key_is_long_and_all_of_it_counts(monkeypatch, DRAWN[what])


def normal_of(key, rows, width):
    return np.random.Generator(np.random.Philox(key=key)).standard_normal((rows, width), dtype=np.float32)


def uniform_of(key, size):
    return np.random.Generator(np.random.Philox(key=key)).random(size, dtype=np.float32)


def check_what_meets_private_records_is_secret(lab, patch, text=None):
    """The rows paired with records, and where between them the slope is taken, follow from a key of 128 bits or more
    that the operating system gives for this lot alone; what a public number governs, the generator's own noise, asks
    for none. Philox is drawn again from the key that was asked for: nothing else goes in."""
    asked, calls = [], []
    randbits, urandom = secrets.randbits, os.urandom
    noise, mix = Adversaries._noise, CriticGradients._mix

    def bits(size):
        asked.append((size, randbits(size)))
        return asked[-1][1]

    def chunk(size):
        asked.append((8 * size, urandom(size)))
        return asked[-1][1]

    def told(what, made, again):
        keys, values = list(asked), made.numpy().copy()
        if len(keys) == 1:
            assert (again(keys[0][1], *values.shape) == values).all()
        calls.append((what, keys, values.tobytes(), values.size))
        return made

    def paired(self, size, stream):
        asked.clear()
        return told("public" if stream is self._random else "paired", noise(self, size, stream), normal_of)

    def mixed(self, size):
        asked.clear()
        return told("mixed", mix(self, size), uniform_of)

    with patch.context() as inner:
        inner.setattr(secrets, "randbits", bits)
        inner.setattr(os, "urandom", chunk)
        inner.setattr(Adversaries, "_noise", paired)
        inner.setattr(CriticGradients, "_mix", mixed)
        for _ in range(2):
            few = {"steps": 2, "n_critic": 1, "lot_size": 24}
            lab.train(lab.people(), text or lab.PUBLIC, real=True, seed=7, **few)
    kinds = [what for what, *_ in calls]
    assert kinds == ["paired", "mixed", "public"] * 4
    public = [values for what, _, values, _ in calls if what == "public"]
    assert public[:2] == public[2:]
    assert all(not keys for what, keys, _, _ in calls if what == "public")
    secret = [(keys, values) for what, keys, values, size in calls if what != "public" and size]
    assert len(secret) == 8  # every unit is in every lot
    for keys, _ in secret:
        assert len(keys) == 1
        assert keys[0][0] >= 128
    assert len({keys[0][1] for keys, _ in secret}) == len(secret)
    assert len({values for _, values in secret}) == len(secret)


def unconditional(lab):
    """The same table, of which no column is a condition."""
    return lab.PUBLIC.replace(', roles: [condition], shares: {"no": 0.8, "yes": 0.2}', "")


@pytest.mark.parametrize("text", [None, unconditional], ids=["conditional", "unconditional"])
def test_what_meets_private_records_is_secret(lab, monkeypatch, text):
    check_what_meets_private_records_is_secret(lab, monkeypatch, text and text(lab))


@pytest.mark.parametrize("text", [None, unconditional], ids=["conditional", "unconditional"])
def test_paired_rows_that_are_public_for_one_of_the_two_are_caught(lab, monkeypatch, text):
    public, width = "not job.private", "job.encoder.condition_width"
    lab.plant(adversarial, "_paired_draws", (public, f"{public} or {width if text is None else f'not {width}'}"))
    with lab.caught():
        check_what_meets_private_records_is_secret(lab, monkeypatch, text=text and text(lab))


STREAM = "torch.Generator().manual_seed"
TEACHER = (
    "CriticSteps(job.mechanism, access, everyone, step, distances=distances, generator=adversaries.generator,"
    " spending=Spending(job) if access.event.filter_steps is not None else None)"
)
PAIRED = "return noise.secret_draws()"
MIXED = "return self._draws.uniform(size)"
WEAK_STREAMS = {
    # torch keeps 32 of the 63 bits: what this package once did
    "paired rows, 32 bits a run": (
        adversarial, "_paired_draws", (PAIRED, "return SeededDraws(__import__('secrets').randbits(63))")
    ),
    "mixing numbers, 32 bits a run": (
        private_critic_trainer, "private_critic_trainer",
        (TEACHER, TEACHER.replace("job.mech", "setattr(job.mechanism, 'for_tests', True) or job.mech")[:-1]
         + ", mixing=__import__('torch').Generator().manual_seed(__import__('secrets').randbits(63)))"),
    ),
    "mixing numbers, 32 bits a lot": (
        CriticGradients, "_mix",
        (MIXED, f"return torch.rand(size, generator={STREAM}(__import__('secrets').randbits(128) % 2**63))"),
    ),
    "paired rows, public": (
        adversarial, "_paired_draws", (PAIRED, "return SeededDraws(_mixed(job.seed, job.taken, 4))")
    ),
    "mixing numbers, public": (
        CriticGradients, "_mix", (MIXED, f"return torch.rand(size, generator={STREAM}(self.step))")
    ),
    "a short key": (entropy, "freshly_keyed", ("secrets.randbits(128)", "secrets.randbits(64)")),
    "a key from elsewhere": (entropy, "freshly_keyed", ("secrets.randbits(128)", "secrets.randbits(128) % 2**32")),
    "one key a run": (
        entropy, "freshly_keyed", ("secrets.randbits(128)", "globals().setdefault('_KEY', secrets.randbits(128))")
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", WEAK_STREAMS)
def test_a_weak_or_public_stream_beside_private_records_is_caught(lab, monkeypatch, mutant):
    owner, name, edit = WEAK_STREAMS[mutant]
    monkeypatch.setattr(entropy, "_KEY", None, raising=False)
    monkeypatch.delattr(entropy, "_KEY")
    lab.plant(owner, name, edit)
    with lab.caught():
        check_what_meets_private_records_is_secret(lab, monkeypatch)


def test_a_known_stream_is_for_tests(lab):
    """No method can hand the mechanism mixing numbers that somebody else knows."""
    for penalty, refused in ((1.0, True), (0.0, False)):
        settings = dict(
            loss=CriticLoss(kind="wgan", gradient_penalty=penalty), schedule=ConstantSchedule(max_grad_norm=1.0),
            noise_multiplier=1.0, sample_rate=1.0, steps=1, expected_units=1.0,
        )  # fmt: skip

        def make(settings=settings):
            return lab.mechanism(torch.zeros(2, 3), settings, allow_test_noise=False)

        if refused:
            assert lab.refusal(SettingError, make).field == "mixing"
        else:
            make()


def check_lots_move_no_public_stream(lab):
    base = lab.people()
    kept = lab.train(base)
    lab.assert_same_public(kept, lab.train(lab.without_unit(base, "p3"), like=kept))


def test_a_public_stream_that_lots_use_up_is_caught(lab):
    """How far it has got would tell the lots' sizes to whoever knows the seed."""
    check_lots_move_no_public_stream(lab)
    lab.plant(Adversaries, "partner", ("self._paired", "self._random"))
    with lab.caught():
        check_lots_move_no_public_stream(lab)


# -- on disk -----------------------------------------------------------------------------------------------------------


def spellings(number):
    """Return how a key of 63 to 128 bits could stand in a file."""
    size = -(-number.bit_length() // 8)
    return [str(number).encode(), f"{number:x}".encode(), number.to_bytes(size, "little"), number.to_bytes(size, "big")]


def check_no_key_and_no_state_is_kept(lab, patch, plan, folder):
    keys, randbits = [], secrets.randbits

    def recorded(bits):
        keys.append(randbits(bits))
        return keys[-1]

    with patch.context() as inner:
        inner.setattr(secrets, "randbits", recorded)
        lab.fit(lab.people(), plan, folder, real=True)
    assert len(keys) >= 4 * plan.steps  # of each lot, its noise, its paired rows, its mixing numbers
    files = [path for path in folder.rglob("*") if path.is_file()]
    written = {"checkpoint.safetensors", "generator.safetensors", "run.json", "log.jsonl", "ledger"}
    assert {path.name for path in files} >= written
    for path in files:
        content = path.read_bytes()
        for key in keys:
            assert not any(spelling in content for spelling in spellings(key)), path.name
    with safe_open(folder / "run/internal/checkpoint.safetensors", "pt") as file:
        names = set(file.keys())
        assert {name for name in names if not name.startswith(KEPT)} == {"critic", "iterations", "pace", "steps"}
        kinds = {file.get_tensor(name).dtype for name in names - {"iterations", "pace", "steps"}}
    assert kinds == {torch.float32}


def test_no_key_and_no_state_is_kept(lab, monkeypatch, declared_plan, tmp_path):
    check_no_key_and_no_state_is_kept(lab, monkeypatch, declared_plan, tmp_path)


OF = "int.from_bytes(g.bit_generator.state['state']['key'].tobytes(), 'little')"
COUNTS = "{'iterations': torch.tensor([self.iterations]), 'pace': self.pace.state()}"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (entropy, "freshly_keyed", ("secrets.randbits(128)", "(k := secrets.randbits(128), _KEYS.append(k))[0]")),
        (Adversaries, "state", (COUNTS, f"{COUNTS[:-1]}, 'rng': self._random._stream.get_state()}}")),
        (Adversaries, "state", (COUNTS, f"{COUNTS[:-1]}, 'critic_optimizer.s': torch.ones(9, dtype=torch.uint8)}}")),
        (OsKeyedNoise, "normal", ("freshly_keyed()", f"(g := freshly_keyed(), entropy._KEYS.append({OF}))[0]")),
    ],
    ids=["key in log.jsonl", "state kept", "bytes under another name", "key in run.json"],
)  # fmt: skip
def test_a_key_or_a_state_that_is_kept_is_caught(lab, monkeypatch, declared_plan, tmp_path, owner, name, edit):
    if owner is not Adversaries:
        monkeypatch.setattr(entropy, "_KEYS", [], raising=False)
        monkeypatch.setattr(noise, "entropy", entropy, raising=False)
        save = running.FitRun._save

        def leaking(run, *arguments, **more):
            if owner is entropy:
                run._folder.log({"mixing": entropy._KEYS[-1]})
            else:
                run._folder.update_run(noise=[str(key) for key in entropy._KEYS])
            return save(run, *arguments, **more)

        monkeypatch.setattr(running.FitRun, "_save", leaking)
    lab.plant(owner, name, edit)
    with lab.caught():
        check_no_key_and_no_state_is_kept(lab, monkeypatch, declared_plan, tmp_path)


def check_a_resumed_run_draws_fresh_noise_and_fewer_steps(lab, patch, plan, folder):
    """Cut off in the fourth step, between its payment and its noise: it is lost, and nothing is repeated."""
    draws, normal, alive = [], OsKeyedNoise.normal, [True]

    def watched(self, size, std):
        if len(draws) == 3 and alive:
            alive.clear()
            raise KeyboardInterrupt
        draws.append(normal(self, size, std))
        return draws[-1]

    with patch.context() as inner:
        inner.setattr(OsKeyedNoise, "normal", watched)
        with pytest.raises(Interrupted):
            lab.fit(lab.people(), plan, folder, real=True)
        before = len(draws)
        lab.fit(lab.people(), plan, folder, real=True, ledger=folder / "ledger", resume=True)
    assert before == 3
    assert len(draws) == before + plan.steps - 4
    assert len({draw.values.tobytes() for draw in draws}) == len(draws)


def test_a_resumed_run_draws_fresh_noise_and_fewer_steps(lab, monkeypatch, declared_plan, tmp_path):
    check_a_resumed_run_draws_fresh_noise_and_fewer_steps(lab, monkeypatch, declared_plan, tmp_path)


@pytest.mark.parametrize("mutant", ["lost steps taken again", "noise repeated"])
def test_a_resumed_run_that_takes_more_is_caught(lab, monkeypatch, declared_plan, tmp_path, mutant):
    if mutant == "noise repeated":
        numbers = count()
        monkeypatch.setattr(OsKeyedNoise, "normal", lambda self, size, std: seeded(size, std, next(numbers) % 3))
    else:
        lab.plant(running.FitRun, "__init__", ("taken=reservation.authorised", "taken=0"))
    with pytest.raises((AssertionError, NotAsPriced, RunFolderError)):
        check_a_resumed_run_draws_fresh_noise_and_fewer_steps(lab, monkeypatch, declared_plan, tmp_path)


# -- tables ------------------------------------------------------------------------------------------------------------


def noise_by_table(trace):
    """Return the noise of the releases, four cells after four: a table has so many, and some have more."""
    drawn = [noisy - exact for noisy, exact in zip(trace.outputs, trace.queries, strict=True)]
    return torch.cat(drawn).split(4)


def check_equal_seeds_do_not_repeat_the_tables_noise(lab, patch):
    one, other = (lab.count(lab.people(), seed=7) for _ in range(2))
    wide = [tuple(noise.tolist()) for each in (one, other) for noise in noise_by_table(each) if len(noise) > 3]
    assert len(wide) >= 8
    assert len({*wide}) == len(wide)
    assert bytes_of(one) != bytes_of(other)
    again = lab.count(lab.people(), seed=7, like=one)
    assert bytes_of(one) == bytes_of(again)  # the seed governs all the rest
    assert bytes_of(one) != bytes_of(lab.count(lab.people(), seed=8, like=one))


def test_equal_seeds_do_not_repeat_the_tables_noise(lab, monkeypatch):
    check_equal_seeds_do_not_repeat_the_tables_noise(lab, monkeypatch)


def repeated(counts, *, scale):
    drawn = np.random.default_rng(7).normal(0, scale, counts.shape)
    return noise.ScaledNoise(counts + np.rint(drawn).astype(np.int64), scale)


def repeated_by_table(counts, *, scale):
    drawn = np.random.default_rng().normal(0, scale)
    return noise.ScaledNoise(counts + np.rint(drawn).astype(np.int64), scale)


@pytest.mark.parametrize("draw", [repeated, repeated_by_table], ids=["seeded", "the same for each table"])
def test_repeated_noise_on_tables_is_caught(lab, monkeypatch, draw):
    monkeypatch.setattr(whole_noise, "gaussian", draw)
    with lab.caught():
        check_equal_seeds_do_not_repeat_the_tables_noise(lab, monkeypatch)


class Killed(BaseException):
    """The process is gone: nothing is cleaned up after it but what ``fit`` does for any end."""


def told_of_draws(patch, draws):
    """Note each draw, with its scale."""
    noisy = whole_noise.gaussian

    def drawn(counts, *, scale):
        draws.append(noisy(counts, scale=scale))
        return draws[-1]

    patch.setattr(whole_noise, "gaussian", drawn)


def ending(patch, release, error, *, before=False):
    """Let the process end at a release, before its answer is kept, or afterwards."""
    room = AnswersInFolder.room

    @contextlib.contextmanager
    def ends(answers, place, size):
        def fails(answer):
            raise error

        with room(answers, place, size) as put:
            yield fails if before and place[0] == release - 1 else put
        if place[0] == release - 1:
            raise error

    patch.setattr(AnswersInFolder, "room", ends)


def check_a_lost_release_is_not_drawn_again(lab, patch, plan, folder, release):
    """Killed between a draw and its keeping: what was drawn is lost, and with it what was paid for.

    Nor is it drawn again where what was kept before is put back from a copy.
    """
    draws, internal = [], folder / "run/internal"

    def go_on():
        return lab.fit(lab.people(), plan, folder, real=True, ledger=folder / "ledger", resume=True)

    with patch.context() as inner:
        told_of_draws(inner, draws)
        with inner.context() as killed:
            ending(killed, release, Killed(), before=True)
            with pytest.raises(Killed):
                lab.fit(lab.people(), plan, folder, real=True)
        assert len(draws) == release
        before = {path.name: path.read_bytes() for path in internal.iterdir()}
        for _ in range(2):
            lab.refusal(LostRun, go_on)
            for name, content in before.items():
                (internal / name).write_bytes(content)
    assert len(draws) == release


@pytest.mark.parametrize("release", [1, 2])
def test_a_lost_release_is_not_drawn_again(lab, monkeypatch, counting_plan, tmp_path, release):
    check_a_lost_release_is_not_drawn_again(lab, monkeypatch, counting_plan, tmp_path, release)


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (Mechanism, "refuse_lost", [("self._lost[access]", "False")]),
        (running.FitRun, "__init__", [("taken=reservation.authorised", "taken=0")]),
    ],
    ids=["not refused", "not remembered"],
)
def test_a_lost_release_that_is_drawn_again_is_caught(lab, monkeypatch, counting_plan, tmp_path, owner, name, edits):
    lab.plant(owner, name, *edits)
    with lab.caught():
        check_a_lost_release_is_not_drawn_again(lab, monkeypatch, counting_plan, tmp_path, 1)


def check_what_ends_while_it_is_counted_is_counted_again(lab, patch, plan, folder, end):
    """Stopped, killed or failed before its noise was drawn, a release costs nothing, however often that happens."""
    draws, asked, answer = [], [], counts.Counts.answer

    def ends(query, records, *, sample_rate):
        asked.append(query)
        if len(asked) > 1:
            raise end
        return answer(query, records, sample_rate=sample_rate)

    with patch.context() as inner:
        told_of_draws(inner, draws)
        with inner.context() as ended:
            ended.setattr(counts.Counts, "answer", ends)
            for session in range(3):
                more = {"ledger": folder / "ledger", "resume": True} if session else {}
                with pytest.raises((type(end), Interrupted)):
                    lab.fit(lab.people(), plan, folder, real=True, **more)
                assert Ledger.open(folder / "ledger")._store.view().account.runs.popitem()[1].authorised == 1
        lab.fit(lab.people(), plan, folder, real=True, ledger=folder / "ledger", resume=True)
    assert [draw.scale for draw in draws] == [pytest.approx(access.event.scale) for access in plan.touches]
    assert all(entry["lost"] == 0 for entry in RunFolder.open(folder / "run").executed)


@pytest.mark.parametrize("end", [KeyboardInterrupt(), Killed(), MemoryError()], ids=["stopped", "killed", "failed"])
def test_what_ends_while_it_is_counted_is_counted_again(lab, monkeypatch, counting_plan, tmp_path, end):
    check_what_ends_while_it_is_counted_is_counted_again(lab, monkeypatch, counting_plan, tmp_path, end)


PAID = "self._pay(access)"
ASKS = "answer = places.ask(query, sample_rate=getattr(event, 'sample_rate', 1.0))"


def test_a_release_that_is_paid_for_before_it_is_counted_is_caught(lab, monkeypatch, counting_plan, tmp_path):
    lab.plant(Mechanism, "release", (PAID, "pass"), (ASKS, f"self._pay(access)\n{ASKS}"))
    with lab.caught():
        check_what_ends_while_it_is_counted_is_counted_again(lab, monkeypatch, counting_plan, tmp_path, Killed())


def check_kept_releases_are_taken_up(lab, patch, plan, folder, cut):
    """Stopped after a release was kept, or in the fit: what was drawn is used, and what was not is drawn once."""
    draws, fit_mixture = [], table_fitting.fit_mixture
    answers = AnswersInFolder(folder / "run/internal")

    def stops_within(*arguments, at, **named):
        def told(step):
            if step == 0:
                raise KeyboardInterrupt
            at(step)

        return fit_mixture(*arguments, at=told, **named)

    with patch.context() as inner:
        told_of_draws(inner, draws)
        with inner.context() as stopped:
            if cut == "fit":
                stopped.setattr(table_fitting, "fit_mixture", stops_within)
            else:
                ending(stopped, cut, KeyboardInterrupt())
            with pytest.raises(Interrupted):
                lab.fit(lab.people(), plan, folder, real=True)
        kept = {place: answers.read(place).noisy.tobytes() for place in sorted(answers.places())}
        assert {path.stat().st_mode & 0o777 for path in (folder / "run/internal").iterdir()} == {0o600}
        first = len(draws)
        assert len(kept) == first == (plan.steps if cut == "fit" else cut)
        lab.fit(lab.people(), plan, folder, real=True, ledger=folder / "ledger", resume=True)
    assert [draw.scale for draw in draws] == [pytest.approx(access.event.scale) for access in plan.touches]
    whole = [draw.values.tobytes() for draw in draws[:first]]
    assert list(kept.values()) == whole
    assert not answers.places()


@pytest.mark.parametrize("cut", [1, 2, "fit"])
def test_kept_releases_are_taken_up(lab, monkeypatch, counting_plan, tmp_path, cut):
    check_kept_releases_are_taken_up(lab, monkeypatch, counting_plan, tmp_path, cut)


@pytest.mark.parametrize("cut", [1, "fit"])
def test_kept_releases_that_are_drawn_again_are_caught(lab, monkeypatch, counting_plan, tmp_path, cut):
    """What is kept is not drawn again, and were it drawn, nothing would take its place: each holds alone."""
    lab.plant(Mechanism, "release", ("self.keeps(access)", "False"))
    with pytest.raises(RunFolderError, match="was kept already"):
        check_kept_releases_are_taken_up(lab, monkeypatch, counting_plan, tmp_path / "one", cut)
    lab.plant(AnswersInFolder, "room", ("path.exists()", "False"))
    with pytest.raises((AssertionError, NotAsPriced)):
        check_kept_releases_are_taken_up(lab, monkeypatch, counting_plan, tmp_path / "other", cut)


def test_what_is_kept_before_it_is_paid_for_is_refused(lab, monkeypatch, counting_plan, tmp_path):
    """A kill between the two would leave an answer that no ledger knows of."""
    keeps = "kept(KeptAnswer(noisy=noisy, asked=asked, ran=self.executed.entry(access)))"
    lab.plant(Mechanism, "release", (PAID, "pass"), (keeps, f"{keeps}\nself._pay(access)"))
    with monkeypatch.context() as inner:
        pay, paid = Mechanism._pay, []

        def dies(mechanism, access):
            paid.append(access)
            if len(paid) == 2:
                raise Killed
            pay(mechanism, access)

        inner.setattr(Mechanism, "_pay", dies)
        with pytest.raises(Killed):
            lab.fit(lab.people(), counting_plan, tmp_path, real=True)
    with pytest.raises(RunFolderError, match="that is not paid for"):
        lab.fit(lab.people(), counting_plan, tmp_path, real=True, ledger=tmp_path / "ledger", resume=True)
