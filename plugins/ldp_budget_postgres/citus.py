"""Ledger on several servers, over which the extension Citus distributes the tables by partition.

All tables of one shard are on one server, its *node*. Every node knows where each shard is, so each host of the URL can
run every statement. A charge's transaction has partitions of one node, and commits there. A transaction with partitions
of several nodes is committed by Citus in two phases.

A client connects to the node that holds the partitions of a charge: that takes two thirds of the processor time of the
way through another host. If it cannot, it uses the hosts of the URL.

A node is checked before the first use of one of its partitions, and again when its last check is `CHECK_SECONDS` old. The
host of the connection runs the queries of the check on the node, as the role that commits there.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import LedgerError
from ldp_budget.ledger.storage import PartitionsFailedError

from . import pool
from .schema import PARTITIONED, Fact, compare_shards, refuse, shard_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import Connection, Error

    from .bulk_writes import Unit
    from .pool import Address

OLDEST = 13
"""The oldest supported version of Citus."""
CHECK_SECONDS = 20.0
"""Largest age of the last check of a node when a transaction uses it."""
DOWN_SECONDS = 2.0
"""Time after a node's failure in which its partitions are refused at once, so that other users do not wait for it."""
SHARDS_OF_NODE, PARTITIONS_OF_SHARD = 2, 16
"""Shards of a new ledger for each of its nodes, and the largest mean number of partitions in one. Charges of one shard share
statements; a shard is on one node, so that a ledger can grow to as many nodes as it has shards."""
DETOUR_SECONDS = 5.0
"""Time for which the hosts of the URL are used in place of a node that this machine cannot connect to; doubled up to 5 times."""
CONNECT_SECONDS = 2.0
"""Longest wait for a connection to a node."""

_VERSION = "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'citus'"
_IS_DISTRIBUTED = (
    "SELECT count(*) > 0 FROM pg_catalog.pg_dist_partition WHERE logicalrelid = 'partitions'::pg_catalog.regclass"
    " AND partmethod = 'h'"
)
_DISTRIBUTE_CREATED = (
    "SELECT create_distributed_table(c.oid, 'partition', colocate_with => %s)"
    " FROM unnest(%s::text[]) AS name JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(name)"
    " WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_dist_partition d WHERE d.logicalrelid = c.oid)"
)
_COUNT_NODES = "SELECT count(*) FROM pg_dist_node WHERE shouldhaveshards AND noderole = 'primary'"
_NODE = "n.nodename || ':' || n.nodeport"
_SHARDS = (
    f"SELECT s.shard, d.groupid, {_NODE} FROM generate_series(0, %s - 1) AS p CROSS JOIN LATERAL"
    " (SELECT get_shard_id_for_distribution_column('partitions'::regclass, p) AS shard) AS s"
    " JOIN pg_dist_placement d ON d.shardid = s.shard"
    " JOIN pg_dist_node n ON n.groupid = d.groupid AND n.noderole = 'primary' ORDER BY p"
)
_PLACED = "SELECT shardid, groupid FROM pg_dist_placement WHERE shardid = ANY(%b::int8[])"
_TABLES_AT = (
    "SELECT c.relname || '_' || s.shardid FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid"
    " JOIN pg_dist_placement d ON d.shardid = s.shardid JOIN pg_dist_node n ON n.groupid = d.groupid"
    f" WHERE c.relnamespace = %s::regnamespace AND c.relname = ANY(%s) AND {_NODE} = %s"
)
_RUN = "SELECT success, result FROM master_run_on_worker(ARRAY[%s], ARRAY[%s::int], ARRAY[%s], false)"
# The nodes take these settings with the first statement that is sent to them.
SETTLE = (
    "SET LOCAL citus.propagate_set_commands TO 'local'",
    f"SET LOCAL lock_timeout TO '{pool.WAIT_SECONDS:g}s'",
    "SET LOCAL synchronous_commit TO 'on'",
)


def is_installed(connection: Connection) -> bool:
    """True if the database has the extension."""
    return connection.execute(_VERSION).fetchone() is not None


def _check_version(connection: Connection, address: Address) -> None:
    found: Any = connection.execute(_VERSION).fetchone()
    if int(found[0].partition(".")[0]) < OLDEST:
        raise LedgerError(address.name, f"its extension Citus must be of version {OLDEST} or newer: got {found[0]}")


def distribute(connection: Connection, address: Address) -> None:
    """Distribute the empty tables, in the transaction that has created them."""
    _check_version(connection, address)
    connection.execute("SET LOCAL citus.shard_replication_factor TO 1")
    connection.execute("SELECT create_reference_table('meta')")
    first, *others = PARTITIONED
    (nodes,) = connection.execute(_COUNT_NODES).fetchone() or (0,)
    most = max(SHARDS_OF_NODE * max(nodes, 1), address.partitions // PARTITIONS_OF_SHARD)
    create = "SELECT create_distributed_table(%s, 'partition', colocate_with => 'none', shard_count => %s)"
    connection.execute(create, (first, min(address.partitions, most)))
    for table in others:
        connection.execute("SELECT create_distributed_table(%s, 'partition', colocate_with => %s)", (table, first))


def distribute_created(connection: Connection) -> None:
    """Distribute the tables that a migration has created and not distributed yet."""
    connection.execute("SET LOCAL citus.shard_replication_factor TO 1")
    connection.execute(_DISTRIBUTE_CREATED, (PARTITIONED[0], [*PARTITIONED]))


def is_distributed(connection: Connection) -> bool:
    """True if the tables, which are found by the search path, are distributed."""
    found: Any = connection.execute(_IS_DISTRIBUTED).fetchone()
    return bool(found[0])


class Cluster:
    """The nodes of one ledger, and the partitions on each."""

    def __init__(self, address: Address, schema: str, partitions: int, aside: frozenset[Fact]) -> None:
        self._address = address
        self._schema = schema
        self._partitions = partitions
        self._aside = aside
        self.shards: Sequence[int] = ()
        """The shard of each partition."""
        self._groups: dict[int, int] = {}
        self._nodes: Sequence[str] = ()
        self._ids: dict[str, str] = {}
        self._checked: dict[str, float] = {}
        self._down: dict[str, float] = {}
        self._detours: dict[str, float] = {}
        self._failures: Counter[str] = Counter()

    def locate(self, connection: Connection) -> None:
        """Read where each partition is, in a transaction that looks up names in the ledger's schema."""
        _check_version(connection, self._address)
        rows = connection.execute(_SHARDS, (self._partitions,)).fetchall()
        if len(rows) != self._partitions:
            why = f"Citus must have one placement of each of {self._partitions} partitions: got {len(rows)}"
            raise LedgerError(self._address.name, why, hint="Set citus.shard_replication_factor to 1.")
        self.shards, _, self._nodes = zip(*rows, strict=True)
        self._groups = {shard: group for shard, group, _ in rows}

    def together(self, partitions: Sequence[int]) -> list[int]:
        """Return those of `partitions` that are on the node of the first one."""
        node = self._nodes[partitions[0]]
        return [each for each in partitions if self._nodes[each] == node]

    def by_shard(self, partitions: Iterable[int]) -> list[list[int]]:
        """Return partitions by shard, all in ascending order: the order in which every transaction waits for locks."""
        found: dict[int, list[int]] = {}
        for each in sorted(partitions):
            found.setdefault(self.shards[each], []).append(each)
        return [found[shard] for shard in sorted(found)]

    def nodes_of(self, partitions: Iterable[int]) -> list[str]:
        """Return the nodes of partitions, each once."""
        return list(dict.fromkeys(self._nodes[each] for each in partitions))

    # -- routes -------------------------------------------------------------------------------------------

    def route(self, partitions: Iterable[int]) -> Address | None:
        """Return the address of the node that holds partitions; None if there are several, or a client cannot reach it.

        It is also None before a host of the URL has told the id of the node.
        """
        node, *others = self.nodes_of(partitions)
        if others or node not in self._ids or time.monotonic() < self._detours.get(node, 0.0):
            return None
        return pool.at_node(self._address, node)

    def check_identity(self, connection: Connection, address: Address) -> None:
        """Raise `LedgerError` unless a server is a node: the same name may lead a client elsewhere, as localhost does."""
        found: Any = connection.execute(pool.ASK_NODE).fetchone()
        if found[0][-1] != self._ids[address.name.rpartition(" ")[2]]:
            raise LedgerError(address.name, "it is another server than the one that the cluster knows by this name")

    def detour(self, partitions: Iterable[int]) -> None:
        """Use the hosts of the URL for a while in place of a node, which is checked before its next use."""
        (node,) = self.nodes_of(partitions)
        self._failures[node] += 1
        self._detours[node] = time.monotonic() + DETOUR_SECONDS * 2 ** min(self._failures[node] - 1, 5)
        self._checked.pop(node, None)

    # -- transactions -------------------------------------------------------------------------------------

    def ask_places(self, unit: Unit, partitions: Iterable[int]) -> Any:
        """Ask which nodes hold partitions that are locked: a shard with a lock is not moved."""
        return unit.run(_PLACED, (sorted({self.shards[each] for each in partitions}),))

    def has_moved(self, places: Any, partitions: Iterable[int]) -> bool:
        """True if shards are on other nodes than those that were checked, or were split."""
        return dict(places) != {self.shards[each]: self._groups[self.shards[each]] for each in partitions}

    def due(self, partitions: Iterable[int]) -> list[str]:
        """Return the nodes of partitions that must be checked now. Raises an error for one that has just failed."""
        now = time.monotonic()
        nodes = self.nodes_of(partitions)
        for node in nodes:
            if now < self._down.get(node, now):
                raise self.failure(node, " does not answer")
        return [node for node in nodes if now - self._checked.get(node, -CHECK_SECONDS) >= CHECK_SECONDS]

    def has_failed(self, partitions: Iterable[int], why: str) -> LedgerError:
        """Return the error for the failure of a node. Partitions of one node are refused for a while, and checked then."""
        node, *others = self.nodes_of(partitions)
        if others:  # the message of the failure names the node
            return LedgerError(self._address.name, f"{why}. Nothing was charged.")
        self._down[node] = time.monotonic() + DOWN_SECONDS
        self._checked.pop(node, None)
        return self.failure(node, f" failed: {why}")

    def failure(self, node: str, why: str, hint: str = "") -> PartitionsFailedError:
        """Return the error for the users on a node."""
        those = [each for each, at in enumerate(self._nodes) if at == node]
        said = f"its node {node}{why}. Nothing was charged."
        return PartitionsFailedError(self._address.name, said, those, hint=hint)

    # -- the checks of a node -----------------------------------------------------------------------------

    def check(self, connection: Connection, node: str, asked_at: Address) -> None:
        """Raise `PartitionsFailedError` unless a node keeps every promise. Any host can ask it, so `asked_at` is one."""
        named = self._address._replace(name=f"{self._address.name}, node {node}")
        tables = [each for (each,) in connection.execute(_TABLES_AT, (self._schema, [*PARTITIONED], node))]
        asked = time.time()
        settings, answered = self._ask(connection, node, pool.ASK_NODE), time.time()
        found = self._ask(connection, node, shard_query(self._schema, tables))
        try:
            pool.judge_node(settings, named, asked, answered)
            refuse(compare_shards(found, tables, self._aside), named.name)
            with pool.first_connection(asked_at) as other:
                pool.check_isolation(connection, other, self._schema, named, self._nodes.index(node))
        except LedgerError as error:
            why = error.completed("").removeprefix(f"ledger {named.name}").removesuffix(".")
            raise self.failure(node, why, error.hint) from None
        self._ids[node] = settings[-1]
        self._checked[node] = time.monotonic()
        self._down.pop(node, None)

    def check_all(self, connection: Connection, asked_at: Address) -> None:
        """Raise `LedgerError` unless every node that answers keeps every promise."""
        for node in dict.fromkeys(self._nodes):
            try:
                self.check(connection, node, asked_at)
            except PartitionsFailedError:
                if node not in self._down:
                    raise

    def _ask(self, connection: Connection, node: str, query: str) -> Any:
        host, _, port = node.rpartition(":")
        done, result = connection.execute(_RUN, (host, port, query)).fetchone() or (False, "")
        if not done:
            raise self.has_failed([self._nodes.index(node)], result)
        return json.loads(result)


def is_of_node(error: Error) -> bool:
    """True if a node has failed, and the session with the server that reports it goes on."""
    code = error.sqlstate or ""
    return code.startswith(("08", "57P")) and error.diag.severity_nonlocalized == "ERROR"
