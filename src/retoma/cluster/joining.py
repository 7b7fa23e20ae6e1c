"""How a worker joins: it registers as a node, and waits for a database that refuses for a while."""

from __future__ import annotations

from retoma.cluster.sweep import Sweep
from retoma.cluster.timing import Timing
from retoma.errors import FailureKind
from retoma.events import EventBus
from retoma.model.records import NodeIdentity
from retoma.store import nodes
from retoma.store.store import Store, is_database_error

_BETWEEN_SECONDS = 0.2
_SLACK_SECONDS = 20.0


def join(store: Store, identity: NodeIdentity, timing: Timing, bus: EventBus) -> int:
    """Register the node; its id.

    On SQLite a frozen process may hold the write lock, and nobody else may be alive who could end
    it: then the newcomer sweeps until the chunk's lease has run out. Raises what the database says
    if it refuses for longer than that.
    """
    sweep = Sweep(store, store.clock, timing, bus, lambda _node, _pid: False)
    until = store.clock.monotonic() + timing.lease + timing.unchanged + _SLACK_SECONDS
    while True:
        session = store.control()
        try:
            return nodes.register(session, identity)
        except Exception as error:
            is_passing = is_database_error(error) and store.kind_of(error) is FailureKind.TRANSIENT
            if not is_passing or store.clock.monotonic() > until:
                raise
            _sweep(sweep, store)
        finally:
            session.close()
        store.clock.sleep(_BETWEEN_SECONDS)


def _sweep(sweep: Sweep, store: Store) -> None:
    session = store.control()
    try:
        sweep.chunks(session)
    except Exception as error:
        if not is_database_error(error):
            raise
        sweep.forget()
    finally:
        session.close()
