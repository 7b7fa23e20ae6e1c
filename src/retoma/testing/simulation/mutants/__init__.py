"""The protocol with one thing left out: faults that the simulation must find.

Each mutant passes a night without faults (as far as its effects go). One that no seed finds shows a
hole in the simulation, or a second lock that makes the first one needless.
"""

from __future__ import annotations

from retoma.testing.simulation.mutants.claims import CLAIMS
from retoma.testing.simulation.mutants.closing import CLOSING
from retoma.testing.simulation.mutants.commits import COMMITS
from retoma.testing.simulation.mutants.takeover import TAKEOVER

MUTANTS = {mutant.name: mutant for mutant in (*CLAIMS, *COMMITS, *TAKEOVER, *CLOSING)}
