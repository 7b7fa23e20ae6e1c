"""Which databases a test runs on in the quick run, and which only in a campaign."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.scene import Scene
from tests.databases import BACKENDS

MakeScene = Callable[..., Scene]


def quick_on(*names: str) -> pytest.MarkDecorator:
    """On these databases in each run, on the others in a campaign."""
    rest = [pytest.param(n, marks=pytest.mark.campaign) for n in BACKENDS if n not in names]
    return pytest.mark.parametrize("backend", [*names, *rest])


def only_on(*names: str) -> pytest.MarkDecorator:
    """On these databases and on no other."""
    return pytest.mark.parametrize("backend", names)
