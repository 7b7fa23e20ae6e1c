"""Puts a mutation on, in each Python process that has this folder on its PYTHONPATH.

``RETOMA_MUTANT`` names it; ``none`` loads the same modules and changes nothing. Fresh control tables
are changed as the mutant wants them as well.
"""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack

from retoma.store import migrate
from retoma.store.store import Store
from retoma.testing.simulation.mutants import MUTANTS

if os.environ["RETOMA_MUTANT"] != "none":
    mutant = MUTANTS[os.environ["RETOMA_MUTANT"]]
    upgrade = migrate.upgrade

    def upgrade_and_change(store: Store) -> None:
        upgrade(store)
        if store.dialect.name == mutant.database:
            mutant.prepare(store.engine)

    migrate.upgrade = upgrade_and_change
    stack = ExitStack()
    stack.enter_context(mutant())
    atexit.register(stack.close)
