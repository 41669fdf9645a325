import numpy as np
import pytest

from loaders._batch import Batch
from models import two_layer

FRAMEWORKS = {"torch_nn": "torch", "tf_function": "tensorflow"}


@pytest.fixture(params=FRAMEWORKS)
def build(request):
    """The network of each implementation, small."""
    framework = FRAMEWORKS[request.param]
    pytest.importorskip(framework, reason=f"{request.param} needs {framework}: pip install 'stallscope[{framework}]'")

    def build(**options):
        return two_layer.build((8, 8, 3), 3, "cpu", 0, **({"hidden": 32, "implementation": request.param} | options))

    return build


def batch(n=32, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = np.clip(rng.normal(60 + 60 * y[:, None, None, None], 20, (n, 8, 8, 3)), 0, 255).astype(np.uint8)
    return Batch(np.arange(n), x, y)


def test_it_learns(build):
    model = build()
    for i in range(60):
        model.step(batch(seed=i))
    first, last = model.losses()
    assert last < 0.5 * first


def test_the_same_seed_gives_the_same_losses(build):
    losses = []
    for _ in range(2):
        model = build()
        for i in range(5):
            model.step(batch(seed=i))
        losses.append(model.losses())
    assert losses[0] == losses[1]


def test_on_a_cpu_each_step_is_one_busy_span(build):
    model = build()
    for i in range(3):
        model.step(batch(seed=i))
    spans = model.drain()
    assert [(what, step) for what, step, _, _ in spans] == [("busy", 0), ("busy", 1), ("busy", 2)]
    assert sum(end - start for _, _, start, end in spans) == model.busy_ns()
    assert model.drain() == []
    assert model.device["kind"] == "cpu"


def test_a_batch_of_any_length_is_a_step(build):
    model = build()
    model.step(batch(1))
    model.step(batch(7))
    assert len(model.drain()) == 2


def test_no_step_no_loss(build):
    assert build().losses() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"implementation": "jax"}, r"implementation: no implementation 'jax'. It can be: tf_function, torch_nn"),
        ({"hidden": 0}, "hidden=0: must be"),
        ({"hidden": 10**11}, r"hidden=100000000000: a first layer of 192 x .* does not fit"),
    ],
)
def test_values_that_it_cannot_take_are_named(options, message):
    pytest.importorskip("torch", reason="torch_nn needs torch: pip install 'stallscope[torch]'")
    with pytest.raises(ValueError, match=message):
        two_layer.build((8, 8, 3), 3, "cpu", 0, **options)


def test_a_network_that_does_not_fit_is_refused(build):
    with pytest.raises(ValueError, match=r"hidden=100000000000: .* does not fit"):
        build(hidden=10**11)


def test_a_device_that_is_not_there_is_named():
    torch = pytest.importorskip("torch", reason="torch_nn needs torch: pip install 'stallscope[torch]'")

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(ValueError, match=r"device: this torch sees no cuda here. Available: .*cpu"):
        two_layer.build((8, 8, 3), 3, "cuda", 0)


def test_tensorflows_gpu_stays_unmeasured_and_keeps_nothing():
    pytest.importorskip("tensorflow", reason="tf_function needs tensorflow: pip install 'stallscope[tensorflow]'")
    from models.two_layer import tf_function

    device = tf_function.GpuDevice("GPU:0")
    for _ in range(3):
        with device.copying():
            pass
        with device.computing():
            pass
    assert (device.busy_ns, list(device.drain())) == (None, [])
