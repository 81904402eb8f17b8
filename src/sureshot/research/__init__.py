"""What a researcher does: train, evaluate, draw, reproduce, answer questions about videos.

Importing this package is cheap: what needs numpy or torch is imported at its first use.
The names are listed in `__init__.pyi`.
"""

from typing import Any

import lazy_loader

from sureshot.errors import imports_for

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with imports_for(f"`{name}`"):
        return _load(name)
