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


def find_system(name: str) -> type[System] | None:
    """The class of the system of this name; None if there is none. No other system is imported."""
    if name not in _modules():
        return None
    module = importlib.import_module(f"{systems.__name__}.{name}")
    for value in vars(module).values():
        defined_here = inspect.isclass(value) and value.__module__ == module.__name__
        if defined_here and issubclass(value, System) and hasattr(value, "Config"):
            return value
    return None


def known_systems() -> dict[str, type[System]]:
    """Class of every system by its name; all of them are imported."""
    classes = {name: find_system(name) for name in _modules()}
    return {name: system for name, system in classes.items() if system is not None}


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
    system = find_system(name) if isinstance(name, str) else None
    if system is None:
        raise SureshotError(f"{at}.name is {name!r:.80}; known: {', '.join(known_systems())}.")
    return system.from_settings(values, sizes, at)


def _modules() -> list[str]:
    """Names of the modules of the package, without importing them."""
    return [module.name for module in pkgutil.iter_modules(systems.__path__)]
