"""Systems by name: that of the file each is in.

A module of this package that defines a `System` with a ``Config`` is one more system; nothing else
lists them.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

from sureshot.errors import SureshotError
from sureshot.models import systems
from sureshot.models.systems.system import System
from sureshot.models.tokens import Sizes


def known_systems() -> dict[str, type[System]]:
    """Class of every system by its name."""
    found = {}
    for module in pkgutil.iter_modules(systems.__path__):
        defined = importlib.import_module(f"{systems.__name__}.{module.name}")
        for value in vars(defined).values():
            own = inspect.isclass(value) and value.__module__ == defined.__name__
            if own and issubclass(value, System) and hasattr(value, "Config"):
                found[module.name] = value
    return found


def load_system(settings: Mapping[str, Any], sizes: Sizes, at: str = "system") -> System:
    """The system of these settings, its weights fresh.

    Args:
        settings: its ``name`` and its own settings, as in the table ``[system]`` of a recipe.
        sizes: sizes of the features it reads.
        at: dotted path of the settings, for errors.

    Raises:
        SureshotError: no such system, or a setting it does not have or cannot take.
    """
    values = dict(settings)
    name = values.pop("name", None)
    known = known_systems()
    if name not in known:
        raise SureshotError(f"{at}.name is {name!r}; known: {', '.join(known)}.")
    return known[name].from_settings(values, sizes, at)
