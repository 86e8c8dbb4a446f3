"""A ledger on a Citus cluster: its tables, its checks of each node, nodes that are down, and a cluster that grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ldp_budget
from citus_killer import Killer
from citus_servers import OwnNodes, own_cluster
from command_line import CommandLine
from ldp_budget import Accountant, LedgerError
from ldp_budget_postgres import citus as cluster
from ldp_budget_postgres import pool
from ldp_budget_postgres.schema import PARTITIONED
from postgres_servers import Server

pytestmark = pytest.mark.usefixtures("own_keys")
COIN = ldp_budget.mechanism("rr")(epsilon="0.001")
PARTITIONS = 16


@pytest.fixture(scope="module")
def nodes() -> Iterator[OwnNodes]:
    with own_cluster() as made:
        yield made


@pytest.fixture
def ledger(nodes: OwnNodes) -> str:
    return nodes.new_ledger(PARTITIONS)


@pytest.fixture
def accountant(ledger: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Accountant]:
    monkeypatch.setattr(cluster, "DOWN_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "DETOUR_SECONDS", 0.5)
    with Accountant(ledger) as made:
        made.set_policy("default", ["lifetime=4", "day=1"])
        yield made


def user_on(nodes: OwnNodes, accountant: Accountant, ledger: str, server: Server) -> str:
    """A user whose partition is on a node."""
    inside = accountant._ledger
    those = {*nodes.partitions_at(server, ledger)}
    return next(
        user for user in map(str, range(1000)) if inside.partition_of(inside.key.hash(b"user", user)) in those
    )


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Repeat an action while it raises `LedgerError`, for a bounded time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            holds()
            return
        except LedgerError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


# -- a new ledger ----------------------------------------------------------------------------------------------


def test_init_distributes_every_table_and_any_node_answers(
    nodes: OwnNodes, accountant: Accountant, ledger: str
) -> None:
    schema = ledger.rpartition("%3D")[2]
    rows = nodes.run(
        "SELECT relname, partmethod, colocationid FROM pg_dist_partition JOIN pg_class ON oid = logicalrelid"
        " WHERE relnamespace = %s::regnamespace",
        (schema,),
    )
    assert {name for name, method, _ in rows if method == "h"} == {*PARTITIONED}
    assert {name for name, method, _ in rows if method == "n"} == {"meta"}
    assert len({group for _, method, group in rows if method == "h"}) == 1
    accountant.spend("alice", COIN, key="k")
    for server in nodes.servers:
        with Accountant(ledger.replace(str(nodes.servers[0].port), str(server.port)), create=False) as there:
            assert there.spend("alice", COIN, key="k").repeated
            there.set_policy("default", ["lifetime=4", f"day={server.port}"])
    assert accountant.verify().ok


def test_old_extension_refuses_a_new_ledger_and_no_ledger_on_one_server(
    nodes: OwnNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = nodes.new_ledger(PARTITIONS)
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "is_installed", lambda connection: False)
        Accountant(whole).close()
    monkeypatch.setattr(cluster, "OLDEST", 99)
    Accountant(whole, create=False).close()
    ledger = nodes.new_ledger(PARTITIONS)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"Citus must be of version 99 or newer: got 1"):
            Accountant(ledger)


def test_init_through_a_worker_is_refused(nodes: OwnNodes, ledger: str) -> None:
    with pytest.raises(LedgerError, match="coordinator"):
        Accountant(ledger.replace(str(nodes.servers[0].port), str(nodes.servers[1].port)))


def test_charge_commits_on_the_node_of_its_partition_alone(
    nodes: OwnNodes, accountant: Accountant, ledger: str
) -> None:
    first, second = (user_on(nodes, accountant, ledger, server) for server in nodes.servers[1:])
    accountant.spend(first, COIN)  # its node is checked now, and the other node is not asked again
    accountant.spend(second, COIN)
    nodes.servers[2].stop()
    try:
        for number in range(5):
            accountant.spend(first, COIN, key=f"{number}")
    finally:
        nodes.servers[2].restart()
    until(lambda: accountant.spend(second, COIN))


# -- what each node must promise -------------------------------------------------------------------------------


@contextmanager
def setting(server: Server, name: str, value: str) -> Iterator[None]:
    """A setting of a running node, until the end of the block."""
    server.run(f"ALTER SYSTEM SET {name} = '{value}'")
    server.run("SELECT pg_reload_conf()")
    time.sleep(0.3)
    try:
        yield
    finally:
        server.run(f"ALTER SYSTEM RESET {name}")
        server.run("SELECT pg_reload_conf()")
        time.sleep(0.3)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("fsync", "off", "must have fsync = on: got off"),
        (
            "synchronous_commit",
            "local",
            "must have synchronous_commit = on or synchronous_commit = remote_apply: got local",
        ),
        ("synchronous_standby_names", "other", "has standbys, and the URL has no ha option"),
    ],
)
def test_unsafe_worker_is_refused_by_name_and_others_charge(
    nodes: OwnNodes,
    accountant: Accountant,
    ledger: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    message: str,
) -> None:
    monkeypatch.setattr(cluster, "CHECK_SECONDS", 0.0)
    worker, other = nodes.servers[1:]
    there, elsewhere = (user_on(nodes, accountant, ledger, server) for server in (worker, other))
    with setting(worker, name, value):
        with pytest.raises(LedgerError, match=rf"node 127\.0\.0\.1:{worker.port}: .*{message}"):
            accountant.spend(there, COIN)
        accountant.spend(elsewhere, COIN)
        with pytest.raises(LedgerError, match=f"node 127.0.0.1:{worker.port}: .*{message}"):
            Accountant(ledger, create=False)
    until(lambda: accountant.spend(there, COIN))


def test_unsafe_worker_is_noticed_between_two_checks(nodes: OwnNodes, accountant: Accountant, ledger: str) -> None:
    worker, other = nodes.servers[1:]
    there, elsewhere = (user_on(nodes, accountant, ledger, server) for server in (worker, other))
    accountant.spend(there, COIN)
    with setting(worker, "fsync", "off"):
        with pytest.raises(LedgerError, match=rf"node 127\.0\.0\.1:{worker.port}: its server must have fsync = on"):
            accountant.spend(there, COIN)
        accountant.spend(elsewhere, COIN)
    until(lambda: accountant.spend(there, COIN))


def test_name_of_a_node_that_leads_a_client_elsewhere_is_not_used(
    nodes: OwnNodes, accountant: Accountant, ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Citus calls a cluster of one node localhost, which is another server for each client."""
    elsewhere = pool.at_node
    with own_cluster(workers=1) as strangers:
        port, query = strangers.servers[1].port, ledger.partition("?")[2]
        strangers.run(f"CREATE SCHEMA {ledger.rpartition('%3D')[2]}")
        Accountant(f"{strangers.url}?{query}").close()  # the same tables, which hold another ledger
        monkeypatch.setattr(pool, "at_node", lambda address, node: elsewhere(address, f"127.0.0.1:{port}"))
        user = user_on(nodes, accountant, ledger, nodes.servers[1])
        accountant.spend(user, COIN, key="k")
        monkeypatch.undo()
    with pool.first_connection(pool.read(ledger)) as connection:
        assert connection.execute("SELECT count(*) FROM idempotency_records").fetchall() == [(1,)]


def test_changed_table_of_a_shard_is_refused(
    nodes: OwnNodes, accountant: Accountant, ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CHECK_SECONDS", 0.0)
    worker = nodes.servers[1]
    user, schema = user_on(nodes, accountant, ledger, worker), ledger.rpartition("%3D")[2]
    [(shard,)] = nodes.run(
        "SELECT shardid FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)"
        f" WHERE logicalrelid = '{schema}.journal'::regclass AND nodeport = {worker.port} LIMIT 1"
    )
    at = worker.url("ledger")
    nodes.run(
        "SET citus.enable_ddl_propagation TO off; SET citus.enable_manual_changes_to_shards TO on;"
        f"CREATE RULE lose AS ON INSERT TO {schema}.journal_{shard} DO INSTEAD NOTHING",
        url=at,
    )
    with pytest.raises(
        LedgerError, match=f"node 127.0.0.1:{worker.port}: its tables were changed: .*journal_{shard} has rule lose"
    ):
        accountant.spend(user, COIN)


def test_clock_of_a_node_more_than_five_seconds_away_is_refused(
    nodes: OwnNodes, ledger: str, accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = pool.ASK_NODE

    def shift(seconds: float) -> None:
        shifted = usual.replace("clock_timestamp()", f"clock_timestamp() + interval '{seconds} s'")
        monkeypatch.setattr(pool, "ASK_NODE", shifted)

    for seconds in (-4.0, 4.0):
        shift(seconds)
        Accountant(ledger, create=False).close()
    for seconds in (-9.0, 9.0):
        shift(seconds)
        with pytest.raises(LedgerError, match=r"node 127\.0\.0\.1:\d+: its clock differs by \d+\.\d s"):
            Accountant(ledger, create=False)


# -- nodes that are down ---------------------------------------------------------------------------------------


def test_users_of_a_dead_node_are_refused_and_no_other_user_is(
    nodes: OwnNodes, accountant: Accountant, ledger: str
) -> None:
    worker, other = nodes.servers[1:]
    there, elsewhere = (user_on(nodes, accountant, ledger, server) for server in (worker, other))
    accountant.spend(there, COIN, key="before")
    worker.kill()
    outcomes: dict[str, list[object]] = {there: [], elsewhere: []}

    def charge(user: str) -> None:
        for number in range(6):
            try:
                outcomes[user].append(accountant.spend(user, COIN, key=f"{number}").status)
            except LedgerError as error:
                outcomes[user].append(error)

    try:
        threads = [threading.Thread(target=charge, args=(user,)) for user in (there, elsewhere)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        worker.restart()
    assert [str(each) for each in outcomes[elsewhere]] == ["spent"] * 6
    for error in outcomes[there]:
        assert isinstance(error, LedgerError)
        assert not error.unknown
        assert f"node 127.0.0.1:{worker.port} " in str(error)
    until(lambda: accountant.spend(there, COIN, key="after"))
    assert accountant.spend(there, COIN, key="before").repeated
    assert accountant.verify().ok


def test_open_ledger_charges_while_the_coordinator_is_down(
    nodes: OwnNodes, accountant: Accountant, ledger: str
) -> None:
    users = [user_on(nodes, accountant, ledger, server) for server in nodes.servers[1:]]
    nodes.servers[0].kill()
    try:
        for user in users:
            assert accountant.spend(user, COIN, key="down").status == "spent"
    finally:
        nodes.servers[0].restart()
    until(lambda: accountant.set_policy("default", ["lifetime=4"]))


def test_ledger_opens_on_another_host_while_the_coordinator_is_down(
    nodes: OwnNodes, accountant: Accountant, ledger: str
) -> None:
    query = ledger.partition("?")[2]
    nodes.servers[0].kill()
    try:
        with Accountant(f"{nodes.every_url()}&{query}", create=False) as there:
            assert there.spend("alice", COIN).status == "spent"
            assert there.balance("alice").limits
    finally:
        nodes.servers[0].restart()


def test_ledger_opens_while_a_worker_is_down(nodes: OwnNodes, accountant: Accountant, ledger: str) -> None:
    first, second = sorted(nodes.servers[1:], key=lambda server: 0 not in nodes.partitions_at(server, ledger))
    there, elsewhere = (user_on(nodes, accountant, ledger, server) for server in (first, second))
    second.kill()
    try:
        with Accountant(ledger, create=False) as opened:
            assert opened.spend(there, COIN).status == "spent"
            with pytest.raises(LedgerError, match=f"node 127.0.0.1:{second.port}"):
                opened.spend(elsewhere, COIN)
    finally:
        second.restart()
    until(lambda: accountant.spend(elsewhere, COIN))


def test_killed_policy_change_is_complete_or_absent_everywhere(
    nodes: OwnNodes, accountant: Accountant, ledger: str
) -> None:
    for number, server in enumerate(nodes.servers):
        victim = threading.Timer(0.02 * number, server.kill)
        victim.start()
        try:
            accountant.set_policy("default", ["lifetime=4", f"day={2 + number}"])
        except LedgerError:
            pass
        finally:
            victim.join()
            server.restart()
        until(lambda: accountant.spend("alice", COIN))
        # The nodes commit or roll back what was prepared there by then.
        until(lambda: accountant.set_policy("default", ["lifetime=4", "day=1"]))
        assert accountant.verify().ok


def test_few_kills_of_nodes_lose_no_charge_and_double_none(nodes: OwnNodes) -> None:
    tally = Killer(nodes, seed=42).run(5)
    assert tally.acknowledged > 0
    assert tally.verified == tally.kills
    assert (tally.lost, tally.wrong_sums, tally.overdrawn) == (0, [], [])


# -- a cluster that grows --------------------------------------------------------------------------------------


def test_node_is_added_and_shards_move_while_users_are_charged() -> None:
    with own_cluster() as nodes:
        ledger = nodes.new_ledger(PARTITIONS)
        with Accountant(ledger) as accountant:
            accountant.set_policy("default", ["lifetime=100"])
            charged, failed, done = [], list[str](), threading.Event()

            def charge(number: int) -> None:
                count = 0
                while not done.is_set():
                    try:
                        accountant.spend(f"{number}-{count % 5}", COIN, key=f"{count}")
                        charged.append((f"{number}-{count % 5}", f"{count}"))
                    except LedgerError as error:
                        failed.append(str(error))
                    count += 1

            threads = [threading.Thread(target=charge, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            try:
                added = nodes.add_worker()
                nodes.run("SELECT rebalance_table_shards()")
            finally:
                done.set()
                for thread in threads:
                    thread.join(60)
            assert failed == []
            assert nodes.partitions_at(added, ledger)
            assert all(accountant.spend(user, COIN, key=key).repeated for user, key in charged)
            assert accountant.verify().ok


def test_node_with_another_address_is_used_again() -> None:
    with own_cluster(workers=1) as nodes:
        ledger = nodes.new_ledger(PARTITIONS)
        with Accountant(ledger) as accountant:
            accountant.set_policy("default", ["lifetime=100"])
            accountant.spend("alice", COIN, key="k")
            worker = nodes.servers[1]
            worker.stop()
            worker.port = None
            worker.restart()
            nodes.run(
                f"SELECT citus_update_node(nodeid, '127.0.0.1', {worker.port}) FROM pg_dist_node WHERE groupid = 1"
            )
            until(lambda: accountant.spend("bob", COIN))
            assert accountant.spend("alice", COIN, key="k").repeated
            assert accountant.verify().ok


def test_moved_partition_is_refused_on_an_unsafe_node() -> None:
    with own_cluster() as nodes:
        ledger = nodes.new_ledger(PARTITIONS)
        with Accountant(ledger) as accountant:
            accountant.set_policy("default", ["lifetime=100"])
            users = [f"{number}" for number in range(50)]
            accountant.spend_many(users, COIN)
            added = nodes.add_worker()
            with setting(added, "fsync", "off"):
                nodes.run("SELECT rebalance_table_shards()")
                moved = user_on(nodes, accountant, ledger, added)
                with pytest.raises(LedgerError, match=f"node 127.0.0.1:{added.port}: .*fsync"):
                    accountant.spend(moved, COIN)
            until(lambda: accountant.spend(moved, COIN))


def test_ledger_moves_into_a_cluster_and_back(nodes: OwnNodes, command: CommandLine, tmp_path: Path) -> None:
    first, last, there = str(tmp_path / "first.db"), str(tmp_path / "last.db"), nodes.new_ledger(PARTITIONS)
    with Accountant(first) as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.spend_many([f"{number}" for number in range(30)], COIN)
        accountant.spend("alice", COIN, key="k")
        accountant.erase("7")
    for source, target in ((first, there), (there, last)):
        command("ledger", "move", source, target, "--yes")
        with Accountant(target, create=False) as accountant:
            assert accountant.spend("alice", COIN, key="k").repeated
            assert accountant.verify().ok


def test_key_of_a_ledger_on_nodes_is_rotated(nodes: OwnNodes, accountant: Accountant, ledger: str) -> None:
    accountant.spend("alice", COIN, key="k")
    accountant.close()
    CommandLine(ledger)("ledger", "rotate-key", "--yes")
    with Accountant(ledger, create=False) as again:
        assert again.spend("alice", COIN, key="k").repeated
        assert again.verify().ok
