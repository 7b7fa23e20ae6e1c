"""A public name is there, and says what it promises."""

from __future__ import annotations

import inspect

import retoma

# Name -> why it has no docstring of its own.
PLAIN_VALUES: dict[str, str] = {"__version__": "a string cannot carry one"}


def test_every_public_name_is_there() -> None:
    missing = [name for name in retoma.__all__ if not hasattr(retoma, name)]
    assert not missing


def test_a_public_name_is_listed_once() -> None:
    assert len(retoma.__all__) == len(set(retoma.__all__))


def test_every_public_name_says_what_it_promises() -> None:
    mute = []
    for name in retoma.__all__:
        thing = getattr(retoma, name)
        own = thing.__doc__ if inspect.isclass(thing) else inspect.getdoc(thing)
        # A dataclass or a NamedTuple without a docstring is given its signature in place of one.
        if name not in PLAIN_VALUES and (not own or own.startswith(f"{name}(")):
            mute.append(name)
    assert not mute


def test_the_package_itself_says_what_it_is() -> None:
    assert retoma.__doc__
