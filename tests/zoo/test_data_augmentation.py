"""Views are drawn per sample from one generator; operations do what Pillow or the formula says."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from ssl_zoo.data import image_ops as ops
from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.augmentation import DigitAugmenter, FeatureAugmenter, ImageAugmenter, make_augmenter


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(n: int, channels: int = 3, side: int = 32, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, (n, channels, side, side), dtype=torch.uint8, generator=generator(seed))


AUGMENTERS = {
    "image": lambda g: (ImageAugmenter([0.5] * 3, [0.25] * 3, generator=g), pictures(1)),
    "grey": lambda g: (ImageAugmenter([0.5], [0.25], generator=g), pictures(1, 1, 16)),
    "digits": lambda g: (
        DigitAugmenter([0.2], [0.3], fill=[0.0], border="fill", generator=g), pictures(1, 1, 16),
    ),
    "float": lambda g: (ImageAugmenter([0.5] * 3, [0.25] * 3, generator=g), pictures(1) / 255),
    "tabular": lambda g: (
        FeatureAugmenter([0.0] * 12, [1.0] * 12, generator=g), torch.randn(1, 12, generator=generator()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AUGMENTERS)
@pytest.mark.parametrize("view", ["weak", "strong"])
def test_identical_inputs_in_one_batch_get_different_views(name, view):
    augment, one = AUGMENTERS[name](generator())
    x = one.expand(64, *one.shape[1:])
    views = getattr(augment, view)(x)
    assert views.dtype == torch.float32 and views.shape == x.shape and torch.isfinite(views).all()
    distinct = len({v.numpy().tobytes() for v in views})
    few = {"digits": 15, "grey": 25}  # 25 shifts of a digit, 50 views of a small picture, 162 of a larger one
    assert distinct > (few.get(name, 40) if view == "weak" else 40)
    assert not torch.equal(views, getattr(augment, view)(x))  # and the next batch differs


@pytest.mark.parametrize("name", AUGMENTERS)
def test_plain_is_the_normalised_input_and_draws_nothing(name):
    augment, x = AUGMENTERS[name](generator())
    before = augment.generator.get_state()
    unit = x.float() / (255 if x.dtype == torch.uint8 else 1)
    shape = (1, -1, 1, 1) if x.ndim == 4 else (1, -1)
    expected = (unit - augment.mean.view(shape)) / augment.std.view(shape)
    assert torch.allclose(augment.plain(x), expected, atol=1e-5)
    assert torch.equal(augment.generator.get_state(), before)


@pytest.mark.parametrize("name", AUGMENTERS)
def test_views_follow_the_generator_and_resume(name):
    augment, one = AUGMENTERS[name](generator(1))
    x = one.expand(8, *one.shape[1:])
    augment.weak(x)
    state = {k: v.clone() for k, v in augment.state_dict().items()}
    wanted = [augment.weak(x), augment.strong(x)]
    torch.rand(3)  # the global generator is not read
    other, _ = AUGMENTERS[name](generator(2))
    other.load_state_dict(state)
    assert all(torch.equal(a, b) for a, b in zip(wanted, [other.weak(x), other.strong(x)], strict=True))


@pytest.mark.parametrize("name", AUGMENTERS)
def test_inputs_are_left_alone_and_odd_batches_work(name):
    augment, one = AUGMENTERS[name](generator())
    x = one.repeat(5, *[1] * (one.ndim - 1))
    kept = x.clone()
    for view in (augment.plain, augment.weak, augment.strong):
        view(x)
        assert torch.equal(x, kept)
        assert view(x[:1]).shape == x[:1].shape and view(x[:0]).shape == x[:0].shape


def test_channels_last_views():
    augment = ImageAugmenter([0.5] * 3, [0.25] * 3, generator=generator(), channels_last=True)
    for view in (augment.plain, augment.weak, augment.strong):
        assert view(pictures(4)).is_contiguous(memory_format=torch.channels_last)


def test_weak_view_is_a_shift_and_a_mirror_image():
    x = pictures(300, 3, 16)
    augment = ImageAugmenter([0.0] * 3, [1.0] * 3, generator=generator(), pad=0.125)
    views = (augment.weak(x) * 255).round().to(torch.uint8)
    padded = torch.nn.functional.pad(x.float(), (2, 2, 2, 2), mode="reflect").to(torch.uint8)
    found = []
    for image, view in zip(padded, views, strict=True):
        crops = {
            (dy, dx, flip): crop.flip(2) if flip else crop
            for dy in range(5) for dx in range(5) for flip in (False, True)
            for crop in [image[:, dy : dy + 16, dx : dx + 16]]
        }  # fmt: skip
        found += [key for key, crop in crops.items() if torch.equal(crop, view)][:1]
    assert len(found) == 300
    counts = np.array([sum(k[0] == d for k in found) for d in range(5)])
    assert counts.min() > 30 and 110 < sum(k[2] for k in found) < 190  # all shifts, about half mirrored


def test_digits_are_never_mirrored_and_keep_their_background():
    x = torch.zeros(500, 1, 16, 16, dtype=torch.uint8)
    x[:, :, 2:14, 3:5] = 255  # a stroke left of the centre
    augment = DigitAugmenter([0.0], [1.0], fill=[0.0], border="fill", generator=generator())
    for view in (augment.weak(x), augment.strong(x)):
        columns = torch.arange(16.0)
        center = (view.sum((1, 2)) * columns).sum(1) / view.sum((1, 2, 3)).clamp_min(1e-6)
        assert (center[view.sum((1, 2, 3)) > 1] < 9).all()
    weak = augment.weak(x)
    assert set(weak.unique().tolist()) == {0.0, 1.0} and (weak.sum((1, 2, 3)) == 24).all()


def test_strong_view_draws_every_operation_and_cuts_out():
    augment = ImageAugmenter([0.5] * 3, [0.25] * 3, generator=generator(), cutout=0.5, n_ops=0)
    x = torch.full((400, 3, 16, 16), 255, dtype=torch.uint8)
    cut = (augment.strong(x) == 0).all(1).float().mean((1, 2))  # the mean colour is 0 when normalised
    assert cut.max() <= 0.25 + 1e-6 and 0.02 < cut.mean() < 0.1
    augment = ImageAugmenter([0.5] * 3, [0.25] * 3, generator=generator(), n_ops=2, cutout=0.0)
    smooth = torch.linspace(0, 255, 16).to(torch.uint8).expand(600, 3, 16, 16)
    unchanged = (augment.strong(smooth) == augment.plain(smooth)).all(3).all(2).all(1).float().mean()
    assert unchanged < 0.1


def test_operations_are_chosen_evenly_and_distinct():
    seen = []

    class Spy(ImageAugmenter):
        def _resample(self, x, chosen, size):
            seen.append(chosen)
            return super()._resample(x, chosen, size)

    Spy([0.5], [0.25], generator=generator()).strong(pictures(2000, 1, 8))
    chosen = torch.cat(seen)
    assert (chosen.sum(1) == 2).all()
    assert (chosen.float().mean(0) - 2 / 14).abs().max() < 0.03


# ------------------------------------------------------------------------------------------------- single operations


def as_pillow(x: torch.Tensor) -> Image.Image:
    array = (x * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    return Image.fromarray(array if array.shape[2] == 3 else array[:, :, 0])


def from_pillow(image: Image.Image) -> torch.Tensor:
    array = np.asarray(image)
    return torch.from_numpy(array.copy().reshape(*array.shape[:2], -1)).permute(2, 0, 1).float() / 255


def test_colour_operations_match_pillow():
    from PIL import ImageEnhance

    x = (torch.rand(6, 3, 12, 12, generator=generator()) * 0.6 + 0.2).mul(255).round() / 255
    large = (torch.rand(6, 3, 64, 64, generator=generator()) ** 2).mul(255).round() / 255
    factor = torch.tensor([0.1, 0.5, 0.9, 1.0, 1.3, 1.9])
    bits = torch.tensor([4, 5, 6, 7, 8, 4])
    mine = {
        "brightness": ops.brightness(x, factor), "contrast": ops.contrast(x, factor), "color": ops.color(x, factor),
        "sharpness": ops.sharpness(x, factor), "autocontrast": ops.autocontrast(x), "equalize": ops.equalize(large),
        "posterize": ops.posterize(x, 2.0**bits), "solarize": ops.solarize(x, factor / 2),
    }  # fmt: skip
    for k in range(6):
        image, f = as_pillow(x[k]), float(factor[k])
        theirs = {
            "brightness": ImageEnhance.Brightness(image).enhance(f),
            "contrast": ImageEnhance.Contrast(image).enhance(f),
            "color": ImageEnhance.Color(image).enhance(f), "sharpness": ImageEnhance.Sharpness(image).enhance(f),
            "autocontrast": ImageOps.autocontrast(image), "equalize": ImageOps.equalize(as_pillow(large[k])),
            "posterize": ImageOps.posterize(image, int(bits[k])),
            "solarize": ImageOps.solarize(image, math.ceil(f / 2 * 255)),
        }  # fmt: skip
        for name, image_theirs in theirs.items():
            gap = (mine[name][k] - from_pillow(image_theirs)).abs().max()
            assert gap <= (0.03 if name == "equalize" else 0.013), (name, f, gap)


def test_neutral_parameters_change_nothing():
    x = torch.rand(3, 3, 8, 8, generator=generator())
    one, zero = torch.ones(3), torch.zeros(3)
    for op in (ops.brightness, ops.contrast, ops.color, ops.sharpness):
        assert torch.allclose(op(x, one), x, atol=1e-6)
    matrix = ops.affine_matrix(zero, zero, zero, one, zero, zero)
    assert torch.allclose(ops.affine(x, matrix, torch.tensor([0.5] * 3)), x, atol=1e-5)
    assert torch.equal(ops.cutout(x, one, one, zero, torch.zeros(3)), x)
    grey = torch.rand(2, 1, 8, 8)
    assert torch.equal(ops.color(grey, torch.tensor([0.1, 1.9])), grey)


def test_constant_pictures_stay_finite_and_constant():
    for value in (0.0, 0.3, 1.0):
        x = torch.full((2, 3, 8, 8), value)
        for out in (ops.autocontrast(x), ops.equalize(x), ops.contrast(x, torch.tensor([0.1, 1.9]))):
            assert torch.allclose(out, x, atol=1e-6)


def test_affine_map_turns_scales_and_shifts():
    x = torch.zeros(4, 1, 9, 9)
    x[:, :, 4, 6] = 1.0  # right of the centre
    zero, one = torch.zeros(4), torch.ones(4)
    angle = torch.tensor([math.pi / 2, 0, 0, 0])
    shift_x, shift_y = torch.tensor([0.0, 1 / 9, 0, 0]), torch.tensor([0.0, 0, -2 / 9, 0])
    scale = torch.tensor([1.0, 1, 1, 2])
    out = ops.affine(x, ops.affine_matrix(angle, zero, zero, scale, shift_x, shift_y), torch.zeros(1))
    where = [divmod(int(o.argmax()), 9) for o in out]
    assert where == [(2, 4), (4, 7), (2, 6), (4, 8)]
    assert torch.allclose(ops.affine(torch.ones(1, 3, 4, 4), ops.affine_matrix(
        *(v[:1] for v in (zero, zero, zero, one, one * 9, zero))), torch.tensor([0.1, 0.2, 0.3])
    )[0, :, 0, 0], torch.tensor([0.1, 0.2, 0.3]))  # fmt: skip


def test_chosen_samples_alone_are_changed_alike_on_both_paths():
    x, factor = torch.rand(6, 3, 8, 8), torch.rand(6)
    chosen = torch.tensor([True, False, True, False, False, True])
    out = ops.apply_where(x, chosen, ops.brightness, factor)
    assert torch.equal(out, torch.where(chosen.view(-1, 1, 1, 1), ops.brightness(x, factor), x))  # what a GPU computes
    assert torch.equal(ops.apply_where(x, torch.zeros(6, dtype=torch.bool), ops.brightness, factor), x)


def test_fill_beyond_the_border():
    x = pictures(1, 3, 4)
    far = torch.tensor([0]), torch.tensor([0])
    out = ops.shift_flip(x, *far, None, 2, 7)
    assert (out[:, :, :2] == 7).all() and torch.equal(out[:, :, 2:, 2:], x[:, :, :2, :2])
    assert (ops.shift_flip(x, *far, None, 2, 0)[:, :, :2] == 0).all()


# ------------------------------------------------------------------------------------------------ features, the factory


def test_feature_views_have_the_asked_noise_masks_and_swaps():
    x = torch.randn(4000, 5, generator=generator()) * 2 + 3
    augment = FeatureAugmenter([3.0] * 5, [2.0] * 5, generator=generator(), weak_noise=0.1)
    noise = augment.weak(x) - augment.plain(x)
    assert abs(float(noise.std()) - 0.1) < 0.005 and abs(float(noise.mean())) < 0.005
    masked = FeatureAugmenter([3.0] * 5, [2.0] * 5, generator=generator(), strong_noise=0, mix=0, strong_mask=0.3)
    assert abs(float((masked.strong(x) == 0).float().mean()) - 0.3) < 0.01
    swapped = FeatureAugmenter([3.0] * 5, [2.0] * 5, generator=generator(), strong_noise=0, mix=0.25, strong_mask=0)
    view = swapped.strong(x)
    changed = view != augment.plain(x)
    assert abs(float(changed.float().mean()) - 0.25) < 0.01
    assert all(torch.isin(view[:, k], augment.plain(x)[:, k]).all() for k in range(5))  # values of the same feature
    assert torch.equal(swapped.strong(x[:1]), swapped.plain(x[:1]))  # nobody to swap with


def test_factory_measures_moments_and_background():
    rng = np.random.default_rng(0)
    data = ArrayDataset(rng.integers(0, 256, (5000, 3, 4, 4), dtype=np.uint8), np.zeros(5000, int), ("a",))
    augment = make_augmenter(data, seed=1)
    unit = data.x / 255
    assert np.allclose(augment.mean, unit.mean((0, 2, 3)), atol=1e-6) and np.allclose(
        augment.std, unit.std((0, 2, 3)), atol=1e-5
    )
    assert type(augment) is ImageAugmenter and abs(float(augment.plain(torch.from_numpy(data.x)).std()) - 1) < 1e-3
    digits = np.full((10, 1, 8, 8), 255, np.uint8)
    digits[:, :, 3:5, 3:5] = 0
    augment = make_augmenter(ArrayDataset(digits, np.zeros(10, int), ("a",), "digits"))
    assert type(augment) is DigitAugmenter and augment.fill.item() == 1.0  # dark on white
    svhn = make_augmenter(ArrayDataset(np.zeros((4, 3, 8, 8), np.uint8), np.zeros(4, int), ("a",), "digits"))
    assert svhn.border == "mirror" and not svhn.flip and svhn.std.tolist() == [1.0] * 3
    table = ArrayDataset(np.stack([np.arange(9.0), np.ones(9)], 1), np.zeros(9, int), ("a",), "tabular")
    plain = make_augmenter(table).plain(torch.from_numpy(table.x))
    assert torch.allclose(plain.mean(0), torch.zeros(2), atol=1e-6) and (plain[:, 1] == 0).all()
    text = make_augmenter(ArrayDataset(np.eye(6), np.zeros(6, int), ("a",), "text"))
    assert (text.strong(torch.eye(6)) != 0).sum() <= 12  # absent terms stay absent but for swaps


def test_seed_decides_the_views():
    data = ArrayDataset(np.zeros((4, 3), np.float32), np.zeros(4, int), ("a",), "tabular")
    a, b, c = (make_augmenter(data, seed=s).weak(torch.zeros(4, 3)) for s in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ImageAugmenter([0.5], [0.0], generator=generator()), "std must be positive"),
        (lambda: ImageAugmenter([0.5], [1.0], generator=generator(), n_ops=99), "n_ops"),
        (lambda: ImageAugmenter([0.5], [1.0], generator=generator(), border="wrap"), "border"),
        (lambda: FeatureAugmenter([0.0], [1.0], generator=generator(), mix=1.0), "mix"),
    ],
)
def test_wrong_options(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_generator_is_required():
    with pytest.raises(TypeError, match="torch.Generator"):
        ImageAugmenter([0.5], [1.0], generator=None)
