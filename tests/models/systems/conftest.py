"""What tests of systems share."""

from pathlib import Path

import pytest

from sureshot.models.layers import gaussian
from sureshot.models.systems import duq_released
from tests.golden.whole import Official, sets, unpacked


@pytest.fixture(
    scope="session",
    params=[pytest.param(source, marks=pytest.mark.golden) for source in sets() or [None]],
    ids=lambda source: getattr(source, "name", "none"),
)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of whole official models."""
    if request.param is None:
        pytest.skip("SURESHOT_GOLDEN names no folder of whole models")
    return unpacked(request.param, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def batch(official: Official):
    """Short videos repeat their last frame; no frame is masked."""
    return official.texts("ids_eot"), official.videos("frames_repeat")


@pytest.fixture
def draws(official: Official, monkeypatch: pytest.MonkeyPatch):
    """Hands the official noise to the next losses: a name, and a number of a step."""

    def use(name: str, step: int | None = None) -> None:
        noise = [official.arrays[f"{name}_eps_{side}"] for side in ("text", "video")]
        waiting = iter(part if step is None else part[step] for part in noise)
        for module in (gaussian, duq_released):
            monkeypatch.setattr(module, "draw_noise", lambda shape, source: next(waiting))

    return use
