"""Tables of a ledger on PostgreSQL, and the check of the server's catalog against them.

**Tables.** They are those of `sqlite.schema`, but each key begins with its partition. So an engine that stores the
rows of one partition together can hold a ledger.

**Catalog check.** It parses the expected tables from the CREATE statements of this module, so there is no second list
to maintain. A trigger, a rule, a row-security policy, a view in place of a table or a missing unique key can change
the effect of a statement although every stored row is genuine. Each of them is a difference. A trigger on TRUNCATE
alone is not a difference, as the store never truncates.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import LedgerError
from ldp_budget.ledger.hash_chain import counters_mac
from ldp_budget.ledger.keyed_hashing import write_ledger_id
from ldp_budget.ledger.models import PartitionHead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg import Connection, Cursor

    from ldp_budget.ledger.keyed_hashing import Key

    from .bulk_writes import Unit


# -- tables --------------------------------------------------------------------------------------------------

SCHEMA_VERSION = 1
MOST_PARTITIONS = 4096

PARTITIONED = (
    "partitions",
    "users",
    "tombstones",
    "window_sums",
    "account_macs",
    "memoised_counts",
    "quotas",
    "periods",
    "priced_mechanisms",
    "policies",
    "journal",
    "entry_labels",
    "notes",
    "idempotency_records",
    "batch_runs",
    "key_epochs",
    "closings",
    "moved_entries",
    "erased_records",
    "reports",
    "rounds",
    "collections",
    "checkpoints",
    "admin_log",
)
"""Tables whose keys begin with a partition; `meta` is the only other table."""

_AMOUNTS = "epsilon int8, delta int8, rho int8, mu_squared int8"


TABLES = (
    "CREATE TABLE meta (name text PRIMARY KEY, value bytea NOT NULL)",
    # The row of a partition is its write lock and the head of its journal. Half of each page is left free, so that a
    # new version of a row is on the same page and no index changes.
    """CREATE TABLE partitions (
        partition int4 PRIMARY KEY, entry int8 NOT NULL, at int8, chain_hash bytea NOT NULL, accounts int8 NOT NULL,
        priced_mechanisms int8 NOT NULL, policies int8 NOT NULL, collections int8 NOT NULL,
        numbered_rows int8 NOT NULL, checkpoints int8 NOT NULL, periods int8 NOT NULL, state int8 NOT NULL,
        changes int8 NOT NULL, generation int8 NOT NULL, secret int8 NOT NULL, row_mac bytea NOT NULL)
        WITH (fillfactor = 50)""",
    """CREATE TABLE users (
        partition int4, account int8, user_hash bytea, row_mac bytea NOT NULL, PRIMARY KEY (partition, account))""",
    "CREATE UNIQUE INDEX users_by_hash ON users (partition, user_hash)",
    """CREATE TABLE tombstones (
        partition int4, user_hash bytea, row_mac bytea NOT NULL, PRIMARY KEY (partition, user_hash))""",
    f"""CREATE TABLE window_sums (
        partition int4, account int8, window_name text, {_AMOUNTS},
        PRIMARY KEY (partition, account, window_name)) WITH (fillfactor = 80)""",
    """CREATE TABLE account_macs (partition int4, account int8, day int8 NOT NULL, row_mac bytea NOT NULL,
        PRIMARY KEY (partition, account)) WITH (fillfactor = 80)""",
    """CREATE TABLE memoised_counts (
        partition int4, account int8, label bytea, priced_mechanism int8, window_name text, reports int8 NOT NULL,
        PRIMARY KEY (partition, account, label, priced_mechanism, window_name))""",
    """CREATE TABLE quotas (
        partition int4, account int8, plan text, guarantee text, used int8 NOT NULL,
        PRIMARY KEY (partition, account, plan, guarantee))""",
    """CREATE TABLE periods (
        partition int4, period text, since int8 NOT NULL, PRIMARY KEY (partition, period))""",
    f"""CREATE TABLE priced_mechanisms (
        partition int4, priced_mechanism int8, fingerprint text NOT NULL, mechanism text NOT NULL,
        declared text NOT NULL, guarantee text NOT NULL, {_AMOUNTS}, collection text NOT NULL,
        row_mac bytea NOT NULL, PRIMARY KEY (partition, priced_mechanism),
        UNIQUE (partition, fingerprint, guarantee, collection))""",
    """CREATE TABLE policies (
        partition int4, policy int8, name text NOT NULL, version int8 NOT NULL, created_at int8 NOT NULL,
        definition text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, policy),
        UNIQUE (partition, name, version))""",
    f"""CREATE TABLE journal (
        partition int4, entry int8, at int8 NOT NULL, kind text NOT NULL, account int8 NOT NULL,
        priced_mechanism int8 NOT NULL, policy int8 NOT NULL, reports int8 NOT NULL, {_AMOUNTS},
        label_commitment bytea, expires int8, resolves int8, has_record int8 NOT NULL, has_note int8 NOT NULL,
        api_key int8 NOT NULL, sub_limit int8 NOT NULL, period text, chain_hash bytea, PRIMARY KEY (partition, entry))""",
    "CREATE UNIQUE INDEX resolutions ON journal (partition, resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (partition, account, entry)",
    "CREATE INDEX repairs ON journal (partition, entry) WHERE kind = 'clock'",
    """CREATE TABLE notes (
        partition int4, entry int8, note text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, entry))""",
    "CREATE INDEX reservations ON journal (partition, expires) WHERE expires IS NOT NULL",
    """CREATE TABLE entry_labels (
        partition int4, entry int8, label bytea NOT NULL, salt bytea NOT NULL, PRIMARY KEY (partition, entry))""",
    """CREATE TABLE idempotency_records (
        partition int4, user_hash bytea, key_hash bytea, entry int8, number int8, request_digest bytea NOT NULL,
        response text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, user_hash, key_hash))""",
    "CREATE INDEX refusals ON idempotency_records (partition, number) WHERE number IS NOT NULL",
    """CREATE TABLE batch_runs (
        partition int4, number int8, key_hash bytea NOT NULL, request_digest bytea NOT NULL, kind text NOT NULL,
        partitions int8 NOT NULL, response text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, key_hash))""",
    """CREATE TABLE key_epochs (
        partition int4, number int8, generation int8 NOT NULL, of_partition int8 NOT NULL, secret int8 NOT NULL,
        entries int8 NOT NULL, checkpoints int8 NOT NULL, checkpoint_hash bytea NOT NULL, row_mac bytea NOT NULL,
        PRIMARY KEY (partition, number), UNIQUE (partition, generation, of_partition, secret))""",
    """CREATE TABLE closings (
        partition int4, number int8, generation int8 NOT NULL, changes int8 NOT NULL, move text NOT NULL,
        ledger text NOT NULL, identity text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, generation, changes))""",
    """CREATE TABLE moved_entries (
        partition int4, number int8, generation int8 NOT NULL, of_partition int8 NOT NULL, entry int8 NOT NULL,
        to_partition int8 NOT NULL, to_entry int8 NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, generation, of_partition, entry))""",
    """CREATE TABLE erased_records (
        partition int4, number int8, row_mac bytea NOT NULL, PRIMARY KEY (partition, number))""",
    """CREATE TABLE reports (
        partition int4, number int8, entry int8 NOT NULL, collection text NOT NULL, state text NOT NULL,
        report bytea NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number), UNIQUE (partition, entry))""",
    "CREATE INDEX waiting_reports ON reports (partition, collection) WHERE state = 'waiting'",
    """CREATE TABLE rounds (
        partition int4, number int8, collection text NOT NULL, name text NOT NULL, part int8 NOT NULL,
        parts int8 NOT NULL, reports int8 NOT NULL, content bytea NOT NULL, row_mac bytea NOT NULL,
        PRIMARY KEY (partition, number), UNIQUE (partition, collection, name, part))""",
    """CREATE TABLE collections (
        partition int4, number int8, name text NOT NULL, fingerprint text NOT NULL, definition text NOT NULL,
        row_mac bytea NOT NULL, PRIMARY KEY (partition, number), UNIQUE (partition, name))""",
    """CREATE TABLE checkpoints (
        partition int4, number int8, at int8 NOT NULL, heads bytea NOT NULL, chain_hash bytea NOT NULL,
        PRIMARY KEY (partition, number))""",
    """CREATE TABLE admin_log (
        partition int4, number int8, at int8 NOT NULL, kind text NOT NULL, name text NOT NULL, body text NOT NULL,
        api_key int8 NOT NULL, PRIMARY KEY (partition, number))""",
)


def fill(connection: Connection, key: Key, ledger: str, partitions: int, ledger_id: str) -> None:
    """Insert the first rows of a new ledger, and set the id in its key."""
    key.set_ledger_id(ledger_id)
    values = {
        "schema": str(SCHEMA_VERSION).encode(),
        "identity": ledger.encode(),
        "key_check": key_check(key, partitions),
    }
    values["ledger_id"] = write_ledger_id(key, ledger_id)
    for name, value in values.items():
        connection.execute("INSERT INTO meta VALUES (%s, %s)", (name, value))
    end = PartitionHead()
    counters = ", ".join(str(count) for count in end.counters)
    connection.execute(
        f"INSERT INTO partitions SELECT partition, 0, NULL, %s, {counters}, %s FROM generate_series(0, %s) AS partition",
        (end.chain_hash, counters_mac(key, end), partitions - 1),
    )
    connection.execute(
        "INSERT INTO periods SELECT partition, 'lifetime', 0 FROM generate_series(0, %s) AS partition",
        (partitions - 1,),
    )


def key_check(key: Key, partitions: int) -> bytes:
    """Return the stored check value of a key and the number of partitions.

    The number is included because a user's partition depends on it.
    """
    return key.hash(b"check", str(partitions))


def count_partitions(key: Key, stored: bytes) -> int:
    """Return the number of partitions of which there is a stored check value; 0 if it is of no number."""
    return next((number for number in range(1, MOST_PARTITIONS + 1) if key_check(key, number) == stored), 0)


# -- the catalog check ---------------------------------------------------------------------------------------

_TYPES = {"int4": "integer", "int8": "bigint", "bytea": "bytea", "text": "text"}
_TABLE = re.compile(r"CREATE TABLE (\w+) \((.*?)\)(?: WITH \([^)]*\))?", re.DOTALL)
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX \w+ ON (\w+) \(([^)]*)\)(?: WHERE (.+))?")
_KEY = re.compile(r"(PRIMARY KEY|UNIQUE) \(([^)]*)\)")
_COLUMN = re.compile(r"(\w+) (\w+)( NOT NULL| PRIMARY KEY)?")
_PLAIN = "an ordinary, logged table without row security"

_OTHER_TYPES = (
    "EXISTS (SELECT FROM pg_type t WHERE t.oid = ANY({types}) AND t.typnamespace <> 'pg_catalog'::regnamespace)"
)
# A function or operator of the schema may match the values of a statement better than the server's own one of that
# name. PostgreSQL then calls it instead. With exactly the same types the server's own comes first: that is harmless.
_ASK = f"""
WITH ours AS MATERIALIZED (
    SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s::text[]))
SELECT relname::text, 'kind', CASE
    WHEN relkind = 'r' AND relpersistence = 'p' AND NOT relispartition AND reloftype = 0
        AND NOT relrowsecurity AND NOT relforcerowsecurity THEN '{_PLAIN}'
    ELSE CASE relkind WHEN 'r' THEN 'a table' WHEN 'v' THEN 'a view' ELSE 'of kind ' || relkind::text END
        || CASE relpersistence WHEN 'u' THEN ', unlogged' WHEN 't' THEN ', temporary' ELSE '' END
        || CASE WHEN relrowsecurity OR relforcerowsecurity THEN ', with row security' ELSE '' END
        || CASE WHEN relispartition THEN ', a partition' ELSE '' END
        || CASE WHEN reloftype <> 0 THEN ', of a type' ELSE '' END END FROM ours
UNION ALL SELECT relname::text, 'owner', relowner::text FROM ours
UNION ALL SELECT relname::text, 'column', row_number() OVER (PARTITION BY attrelid ORDER BY attnum)::text || ' '
    || attname::text || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
    || CASE WHEN atthasdef OR attidentity <> '' OR attgenerated <> '' THEN ' with a default' ELSE '' END
    || CASE WHEN attcollation <> typcollation THEN ' of another collation' ELSE '' END
    FROM ours JOIN pg_attribute ON attrelid = ours.oid JOIN pg_type ON pg_type.oid = atttypid
    WHERE attnum > 0 AND NOT attisdropped
UNION ALL SELECT relname::text, 'constraint', pg_get_constraintdef(k.oid) FROM ours
    JOIN pg_constraint k ON k.conrelid = ours.oid WHERE k.contype <> 'n'
UNION ALL SELECT relname::text, CASE WHEN indisvalid AND indisready THEN 'index' ELSE 'unfinished index' END,
    CASE WHEN indisunique THEN 'UNIQUE ' ELSE '' END || substring(pg_get_indexdef(indexrelid) from ' USING (.*)')
    FROM ours JOIN pg_index ON indrelid = ours.oid
UNION ALL SELECT relname::text, 'trigger', tgname::text FROM ours JOIN pg_trigger ON tgrelid = ours.oid
    WHERE (tgtype::int4 & 28) <> 0
UNION ALL SELECT relname::text, 'rule', rulename::text FROM ours JOIN pg_rewrite ON ev_class = ours.oid
UNION ALL SELECT relname::text, 'policy', polname::text FROM ours JOIN pg_policy ON polrelid = ours.oid
UNION ALL SELECT relname::text, 'inheritance', coalesce(nullif(inhparent, ours.oid), inhrelid)::regclass::text
    FROM ours JOIN pg_inherits ON ours.oid IN (inhparent, inhrelid)
UNION ALL SELECT 'database', 'event trigger', evtname::text FROM pg_event_trigger
    WHERE evtevent = 'login' AND evtenabled <> 'D'
UNION ALL SELECT 'schema', 'function', p.oid::regprocedure::text FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %(schema)s
    AND EXISTS (SELECT FROM pg_proc q WHERE q.proname = p.proname AND q.pronamespace = 'pg_catalog'::regnamespace)
    AND NOT EXISTS (SELECT FROM pg_proc q WHERE q.proname = p.proname AND q.proargtypes = p.proargtypes
        AND q.pronamespace = 'pg_catalog'::regnamespace)
    AND NOT {_OTHER_TYPES.format(types="p.proargtypes::oid[]")}
UNION ALL SELECT 'schema', 'operator', o.oid::regoperator::text FROM pg_operator o
    JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE n.nspname = %(schema)s
    AND o.oprname IN ('=', '<>', '<', '>', '<=', '>=', '+', '-', '*')
    AND NOT EXISTS (SELECT FROM pg_operator q WHERE q.oprname = o.oprname AND q.oprleft = o.oprleft
        AND q.oprright = o.oprright AND q.oprnamespace = 'pg_catalog'::regnamespace)
    AND NOT {_OTHER_TYPES.format(types="ARRAY[o.oprleft, o.oprright]")}
"""
# Look up names in the server's own catalog only: a function elsewhere must not answer this query.
_OWN_PATH = "SET LOCAL search_path = pg_catalog, pg_temp"
_SHOWN = 5


class Fact(NamedTuple):
    """One fact of the catalog about a table."""

    table: str
    kind: str
    detail: str


def expect_facts(statements: Iterable[str] = TABLES) -> frozenset[Fact]:
    """Return the facts that follow from the statements that create the tables.

    Raises `ValueError` for a statement that it cannot parse: extend the parser then.
    """
    return frozenset(fact for statement in statements for fact in _facts_of(statement))


def _facts_of(statement: str) -> Iterator[Fact]:
    text = " ".join(statement.split())
    index = _INDEX.fullmatch(text)
    if index is not None:
        unique, table, columns, where = index.groups()
        yield Fact(table, "index", f"{unique or ''}btree ({columns}){_where(where)}")
        return
    found = _TABLE.fullmatch(text)
    if found is None:
        raise ValueError(f"the catalogue cannot be compared with: {text}")
    table, body = found.groups()
    yield Fact(table, "kind", _PLAIN)
    keys = _KEY.findall(body)
    columns = [_COLUMN.fullmatch(each.strip()) for each in _KEY.sub("", body).split(",") if each.strip()]
    keys += [("PRIMARY KEY", each[1]) for each in columns if each is not None and each[3] == " PRIMARY KEY"]
    primary = {name for kind, names in keys if kind == "PRIMARY KEY" for name in names.split(", ")}
    for place, column in enumerate(columns, 1):
        if column is None or column[2] not in _TYPES:
            raise ValueError(f"the catalogue cannot be compared with: {text}")
        filled = " NOT NULL" if column[3] or column[1] in primary else ""
        yield Fact(table, "column", f"{place} {column[1]} {_TYPES[column[2]]}{filled}")
    for kind, names in keys:
        yield Fact(table, "constraint", f"{kind} ({names})")
        yield Fact(table, "index", f"UNIQUE btree ({names})")


def _where(condition: str | None) -> str:
    """Return the condition of an index as the server formats it."""
    if condition is None:
        return ""
    typed = re.sub(r"('\w+')$", r"\1::text", condition)
    return f" WHERE ({typed})"


_EXPECTED = expect_facts()
_TABLES = sorted({fact.table for fact in _EXPECTED})


def ask_catalog(unit: Unit) -> Cursor[Any]:
    """Query, in a transaction, the catalog that `compare_catalog` checks."""
    unit.run(_OWN_PATH)
    answer = unit.run(_ASK, {"schema": unit.schema, "tables": _TABLES})
    unit.run(set_path(unit.schema))
    return answer


def shard_query(schema: str, tables: Sequence[str]) -> str:
    """Return the query of the same facts about tables of shards on their node, as one JSON value."""
    listed = ", ".join(map(_literal, tables))
    values = {"schema": _literal(schema), "tables": f"ARRAY[{listed}]"}
    return f"SELECT coalesce(json_agg(json_build_array(a, b, c)), '[]') FROM ({_ASK % values}) AS facts(a, b, c)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def compare_shards(answer: Iterable[Sequence[str]], tables: Iterable[str], aside: frozenset[Fact]) -> list[str]:
    """Return a message for each difference between facts about tables of shards, named TABLE_NUMBER, and the expected ones.

    Facts `aside`, and their tables, are not compared.
    """
    named = {table: name for table in tables if (name := table.rpartition("_")[0]) not in created_tables(aside)}
    expected = {
        fact._replace(table=table)
        for table, name in named.items()
        for fact in _EXPECTED - aside
        if fact.table == name
    }
    found = [Fact._make(row) for row in answer if row[0] in named]
    return compare_facts(
        [fact for fact in found if fact._replace(table=named[fact.table]) not in aside], frozenset(expected)
    )


def created_tables(aside: frozenset[Fact]) -> frozenset[str]:
    """Return the tables that facts of pending migrations create."""
    return frozenset(fact.table for fact in aside if fact.kind == "kind")


def set_path(schema: str) -> str:
    """Return SQL after which names are looked up in the server's own catalog first, then in the ledger's schema."""
    return f"SET LOCAL search_path = {path_of(schema)}"


def path_of(schema: str) -> str:
    """Return the search path of a ledger's transactions: no setting of a role or database may select other tables."""
    quoted = schema.replace('"', '""')
    return f'"{quoted}", pg_temp'


def find_schema(connection: Connection) -> str:
    """Return the schema in which a ledger's tables are, or are to be created."""
    found: Any = connection.execute(
        "SELECT coalesce((SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass('partitions')), pg_catalog.current_schema(), '')"
    ).fetchone()
    return str(found[0])


def compare_catalog(answer: Cursor[Any], aside: frozenset[Fact] = frozenset()) -> list[str]:
    """Return a message for each difference between the catalog and the tables that the ledger creates.

    Facts `aside` are not compared.
    """
    found = [row for row in answer.fetchall() if Fact._make(row) not in aside]
    return compare_facts([row for row in found if row[0] not in created_tables(aside)], _EXPECTED - aside)


def compare_facts(answer: Iterable[Sequence[str]], expected: frozenset[Fact]) -> list[str]:
    """Return a message for each difference between facts of a catalog and the expected ones."""
    rows = {Fact._make(row) for row in answer}
    owners = {fact.table: fact.detail for fact in rows if fact.kind == "owner"}
    found = {fact for fact in rows if fact.kind != "owner" and not _is_rebuilt(fact, expected)}
    missing, strange = expected - found, found - expected
    kinds = {fact.table: fact.detail for fact in strange if fact.kind == "kind"}
    replaced = [
        f"schema: {fact.table} is {kinds.get(fact.table, 'missing')}" for fact in missing if fact.kind == "kind"
    ]
    more = [
        f"schema: {table} has {kind} {detail}, which does not belong there"
        for table, kind, detail in strange
        if kind != "kind"
    ]
    less = [f"schema: {table} has no {kind} {detail}" for table, kind, detail in missing if kind != "kind"]
    usual = max(owners.values(), key=[*owners.values()].count, default="")
    strangers = [table for table, owner in owners.items() if owner != usual]
    others = [f"schema: {table} has another owner than the other tables" for table in strangers]
    # The differences that explain the most come first.
    return [*sorted(replaced), *sorted(others), *sorted(more), *sorted(less)]


def _is_rebuilt(fact: Fact, expected: frozenset[Fact]) -> bool:
    """True if an index appears twice because it is being rebuilt concurrently."""
    return fact.kind == "unfinished index" and fact._replace(kind="index") in expected


def check_catalog(answer: Cursor[Any], ledger: str, then: str = "", aside: frozenset[Fact] = frozenset()) -> None:
    """Raise `LedgerError` if the catalog differs."""
    refuse(compare_catalog(answer, aside), ledger, then)


def refuse(differences: Sequence[str], ledger: str, then: str = "") -> None:
    """Raise `LedgerError` if there are differences."""
    if differences:
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        listed = "; ".join(differences[:_SHOWN]) + more
        hint = "Find out who changed them, and undo the change in the database."
        raise LedgerError(ledger, f"its tables were changed: {listed}{then}", hint=hint)
