"""The generator that is fitted to a mean embedding: of any size, each image by itself, public weights to start with."""

from __future__ import annotations

import pytest
import torch

from doublure.networks.detail import block_spread, checkerboard
from doublure.networks.sizes import DEEP, LAST, WARP_WIDTH, shrinking, upsampling_work
from doublure.networks.upsampling import CheckerboardFilter, UpsamplingGenerator, warp_images

WIDTH = 5 + WARP_WIDTH


def generator(shape=(1, 8, 8), classes=3, channels=(6, 4), seed=0, warp=1.0, **more):
    return UpsamplingGenerator(
        shape, condition_width=classes, noise_width=WIDTH, warp=warp, hidden=12, channels=channels,
        generator=torch.Generator().manual_seed(seed), **more,
    )  # fmt: skip


def noise(size, seed=1):
    return torch.randn(size, WIDTH, generator=torch.Generator().manual_seed(seed))


def labels(size, classes=3):
    return torch.eye(classes)[torch.arange(size) % classes]


@pytest.mark.parametrize("shape", [(1, 4, 4), (1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 48, 48), (3, 9, 17)])
@pytest.mark.parametrize("channels", [(6,), (6, 4), (6, 5, 4)])
def test_any_size_and_depth(shape, channels):
    for classes in (0, 3):
        images = generator(shape, classes, channels)(noise(4), labels(4) if classes else None)
        assert images.shape == (4, *shape)
        assert images.abs().max() <= 1
        assert images.std() > 0.01
    assert generator(shape, 3, channels)(noise(0), labels(0)).shape == (0, *shape)


@pytest.mark.parametrize("shape", [(1, 48, 48), (3, 64, 64), (1, 112, 92), (3, 33, 70)])
@pytest.mark.parametrize("doubling", ["transposed", "bilinear"])
def test_a_large_image_is_drawn_as_features_see_it_and_enlarged(shape, doubling):
    factor = shrinking(shape)
    made = generator(shape, channels=(6, 5, 4), warp=0.0, enlargement=factor, doubling=doubling)
    images, drawn = made(noise(6), labels(6)), made.body(torch.cat([noise(6)[:, :-WARP_WIDTH], labels(6)], dim=1))
    assert images.shape == (6, *shape)
    assert images.abs().max() <= 1
    height, width = (side // factor for side in shape[1:])
    seen = torch.nn.functional.avg_pool2d(images, factor)
    shrunk, own = (one[..., 1 : height - 1, 1 : width - 1].flatten() for one in (seen.detach(), drawn.detach()))
    assert float(torch.corrcoef(torch.stack([shrunk, own]))[0, 1]) > 0.9  # pixel for block: nothing is shifted


def test_no_pattern_stands_inside_the_blocks_that_features_average():
    """However hard it is drawn: weights that weave a chessboard leave none in what is enlarged."""
    spreads, boards = [], []
    for enlargement in (1, 2):
        made = generator((1, 48, 48), 0, (32, 24, 16), warp=0.0, enlargement=enlargement)
        with torch.no_grad():
            made.body[-4].weight.mul_(4)
        images = made(noise(40)).detach()
        spreads.append(float(block_spread(images).mean()))
        boards.append(float(checkerboard(images).mean()))
    assert spreads[1] < spreads[0] / 1.5
    assert boards[1] < boards[0] / 3


def test_interpolated_doublings_leave_no_grid():
    """What maps have by parity of row and column: transposed convolutions draw it, and these do not."""
    found = {}
    for doubling in ("transposed", "bilinear"):
        made = generator((1, 32, 32), 0, (32, 24, 16), warp=0.0, doubling=doubling)
        maps = torch.nn.Sequential(*made.body[:9])(noise(60)[:, :-WARP_WIDTH]).detach()[..., 4:-4, 4:-4]
        maps = maps - torch.nn.functional.avg_pool2d(maps, 3, 1, 1, count_include_pad=False)
        parity = [maps[..., row::2, column::2].mean(dim=(2, 3)) for row in (0, 1) for column in (0, 1)]
        found[doubling] = float(torch.stack(parity).std(dim=0).mean() / maps.std())
    assert found["bilinear"] < found["transposed"] / 3


def test_an_image_depends_on_its_own_noise_and_label():
    made, own, wanted = generator(), noise(5), labels(5)
    together = made(own, wanted)
    for row in range(5):
        torch.testing.assert_close(made(own[[row]], wanted[[row]])[0], together[row], atol=1e-6, rtol=1e-5)
    other = own.clone()
    other[1:] = torch.nan
    torch.testing.assert_close(made(other, wanted)[0], together[0], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(made(own, labels(5).flip(1))[0], together[0], atol=1e-3)
    assert not torch.allclose(made(noise(5, 2), wanted)[0], together[0], atol=1e-3)


def test_spread_multiplies_the_noise_of_the_image_and_not_of_the_warps():
    made, own, wanted = generator(), noise(6), labels(6)
    wider = own.clone()
    wider[:, :-WARP_WIDTH] *= 1.5
    expected = made(wider, wanted)
    made.spread = 1.5
    torch.testing.assert_close(made(own, wanted), expected)
    made.spread = 0.0
    alike = made(noise(1).expand(6, WIDTH) + (own - noise(1)) * (torch.arange(WIDTH) < WIDTH - WARP_WIDTH), wanted)
    torch.testing.assert_close(alike[:3], alike[3:])


def test_initial_weights_follow_from_the_generator_alone():
    state = torch.get_rng_state()
    made = []
    for other in (1, 2):
        torch.manual_seed(other)
        made.append(generator().state_dict())
    torch.set_rng_state(state)
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    other = generator(seed=1).state_dict()
    changed = [name for name in other if not torch.equal(other[name], made[0][name])]
    assert changed == [name for name in other if name.endswith("weight")]
    assert not any(made[0][name].any() for name in made[0] if name.endswith("bias"))


def test_signals_keep_their_size_on_the_way():
    """He's initialisation: no layer makes what goes through it vanish or explode."""
    made, seen = generator((1, 16, 16), 0, (32, 24, 16)), []
    for layer in made.body:
        if not list(layer.children()) and list(layer.parameters()):
            layer.register_forward_hook(lambda layer, given, made: seen.append(float(made.detach().std())))
    made(noise(200))
    assert len(seen) == 5
    assert all(0.4 < spread < 4 for spread in seen)


def test_a_chessboard_is_taken_away_and_nothing_that_runs_one_way():
    across = torch.arange(12.0)
    field, stripes, plain = (-1) ** (across + across[:, None]), ((-1) ** across).expand(12, 12), torch.ones(12, 12)
    maps = torch.stack([field, stripes, stripes.T, plain])[None]
    left = CheckerboardFilter()(maps)
    assert left.shape == maps.shape
    inner = left[:, :, 1:-1, 1:-1]
    torch.testing.assert_close(inner[:, 0], torch.zeros_like(inner[:, 0]))
    torch.testing.assert_close(inner[:, 1:], maps[:, 1:, 1:-1, 1:-1])


def test_no_image_holds_a_chessboard():
    made = generator((1, 28, 28), 0, (32, 24, 16), warp=0.0)
    field = (-1) ** (torch.arange(28.0) + torch.arange(28.0)[:, None])
    images = made(noise(50)).detach()[:, 0]
    made.body[-2] = torch.nn.Identity()
    before = made(noise(50)).detach()[:, 0]
    share = [float((some[:, 1:-1, 1:-1] * field[1:-1, 1:-1]).mean(dim=(1, 2)).std()) for some in (images, before)]
    assert share[0] < share[1] / 5


# -- warps -------------------------------------------------------------------------------------------------------------


def turns(rows=1, **changed):
    """Numbers that warp nothing but in the places named: turn, size, stretch, slant, right, down."""
    made = torch.zeros(rows, WARP_WIDTH)
    for name, value in changed.items():
        made[:, ("turn", "size", "stretch", "slant", "right", "down").index(name)] = value
    return made


def blob(row=10, column=16, side=24):
    down, across = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return (torch.exp(-((down - row) ** 2 + (across - column) ** 2) / 6.0) * 2 - 1)[None, None]


def centre(image):
    light = (image + 1)[0, 0] / (image + 1).sum()
    place = torch.arange(len(light), dtype=torch.float32)
    return float(light.sum(1) @ place), float(light.sum(0) @ place)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 17)])
def test_without_turns_or_strength_nothing_is_warped(shape):
    images = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    torch.testing.assert_close(warp_images(images, turns(3), 1.0), images, atol=1e-5, rtol=0)
    drawn = torch.randn(3, WARP_WIDTH, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(warp_images(images, drawn, 0.0), images, atol=1e-5, rtol=0)
    assert (warp_images(images, drawn, 1.0) - images).abs().max() > 0.1
    own = noise(3)
    plain = generator(shape, 0).body(own[:, :5])[:, :, : shape[1], : shape[2]]
    torch.testing.assert_close(generator(shape, 0, warp=0.0)(own), plain, atol=1e-6, rtol=0)


def test_warps_go_where_they_are_said_to():
    image = blob()
    row, column = centre(image)
    assert centre(warp_images(image, turns(right=9.0), 1.0)) == pytest.approx((row, column - 0.96), abs=0.05)
    assert centre(warp_images(image, turns(down=9.0), 1.0)) == pytest.approx((row - 0.96, column), abs=0.05)
    turned = centre(warp_images(image, turns(turn=9.0), 1.0))
    arm, moved = torch.tensor([row - 11.5, column - 11.5]), torch.tensor(turned) - 11.5
    assert float(moved.norm()) == pytest.approx(float(arm.norm()), abs=0.05)
    assert float(arm @ moved / arm.norm() / moved.norm()) == pytest.approx(0.978, abs=0.002)  # 12 degrees
    small = (warp_images(image, turns(size=9.0), 1.0) + 1).sum() / (image + 1).sum()
    assert float(small) == pytest.approx(1.12**-2, abs=0.02)


def test_warps_stay_small_and_go_on_as_the_border():
    far = torch.full((1, WARP_WIDTH), 1e6)
    assert torch.equal(warp_images(blob(), far, 1.0), warp_images(blob(), far / 1e3, 1.0))
    white = torch.ones(1, 1, 24, 24)
    torch.testing.assert_close(warp_images(white, turns(right=9.0, turn=9.0), 4.0), white)
    striped = torch.linspace(-1, 1, 24)[:, None].expand(1, 1, 24, 24)
    moved = warp_images(striped, turns(right=9.0), 4.0)  # what comes in at the side is the last column, row by row
    torch.testing.assert_close(moved, striped, atol=1e-5, rtol=0)


def test_an_image_is_warped_by_its_own_numbers():
    images = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
    drawn = torch.randn(4, WARP_WIDTH, generator=torch.Generator().manual_seed(1))
    together = warp_images(images, drawn, 1.0)
    for row in range(4):
        torch.testing.assert_close(
            warp_images(images[[row]], drawn[[row]], 1.0)[0], together[row], atol=1e-6, rtol=1e-5
        )


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 48, 70)])
@pytest.mark.parametrize(("doubling", "kernel"), [("transposed", DEEP), ("bilinear", LAST)])
def test_a_plan_knows_how_much_it_computes(shape, doubling, kernel):
    """One multiplication for each weight at each place that it is used in."""
    factor = shrinking(shape)
    made = generator(shape, 3, channels=(6, 4), enlargement=factor, doubling=doubling)
    products = 0

    def count(layer, inputs, found):
        nonlocal products
        places = inputs[0].shape[2:].numel() if isinstance(layer, torch.nn.ConvTranspose2d) else found.shape[2:].numel()
        products += layer.weight.numel() * places

    for layer in made.body:
        if hasattr(layer, "weight"):
            layer.register_forward_hook(count)
    made(torch.randn(1, WIDTH), torch.eye(3)[:1])
    assert upsampling_work(shape, WIDTH - WARP_WIDTH + 3, 12, (6, 4), factor, kernel)[0] == products
