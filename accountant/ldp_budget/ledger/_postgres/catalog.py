"""The server's catalogue compared with the tables that the ledger makes.

The expected tables are read from the statements of `schema`, so there is no second list to keep. A trigger, a rule,
a row-security policy, a view in a table's place or a missing unique key can change what a statement does although
every stored row is genuine. Each of them is a difference. A trigger on TRUNCATE alone is not one, as nothing here
truncates.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import LedgerError
from .schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from psycopg import Connection, Cursor

    from .unit import Unit

_TYPES = {"int4": "integer", "int8": "bigint", "bytea": "bytea", "text": "text"}
_TABLE = re.compile(r"CREATE TABLE (\w+) \((.*?)\)(?: WITH \([^)]*\))?", re.DOTALL)
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX \w+ ON (\w+) \(([^)]*)\)(?: WHERE (.+))?")
_KEY = re.compile(r"(PRIMARY KEY|UNIQUE) \(([^)]*)\)")
_COLUMN = re.compile(r"(\w+) (\w+)( NOT NULL| PRIMARY KEY)?")
_PLAIN = "an ordinary, logged table without row security"

_OTHER_TYPES = (
    "EXISTS (SELECT FROM pg_type t WHERE t.oid = ANY({types}) AND t.typnamespace <> 'pg_catalog'::regnamespace)"
)
# A function or an operator of the schema may fit the values of a statement better than the server's own one of that
# name, and is then called in its place. One with the very same types is not: the server's own comes first.
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
# Names are looked up in the server's own catalogue alone: a function elsewhere must not answer this question.
_OWN_PATH = "SET LOCAL search_path = pg_catalog, pg_temp"
_SHOWN = 5


class Fact(NamedTuple):
    """One thing that the catalogue says of a table."""

    table: str
    kind: str
    detail: str


def expect_facts(statements: Iterable[str] = TABLES) -> frozenset[Fact]:
    """The facts that follow from the statements which make the tables.

    Raises `ValueError` for a statement that cannot be read: then this module has to learn it.
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
    """A condition of an index, as the server writes it."""
    if condition is None:
        return ""
    typed = re.sub(r"('\w+')$", r"\1::text", condition)
    return f" WHERE ({typed})"


_EXPECTED = expect_facts()
_TABLES = sorted({fact.table for fact in _EXPECTED})


def ask_catalog(unit: Unit) -> Cursor[Any]:
    """Ask, in a transaction, for what `compare_catalog` judges."""
    unit.run(_OWN_PATH)
    answer = unit.run(_ASK, {"schema": unit.schema, "tables": _TABLES})
    unit.run(set_path(unit.schema))
    return answer


def set_path(schema: str) -> str:
    """SQL after which names are looked up in the server's own catalogue first, then where the ledger is."""
    return f"SET LOCAL search_path = {path_of(schema)}"


def path_of(schema: str) -> str:
    """The search path of a ledger's transactions: no setting of a role or a database may choose other tables."""
    quoted = schema.replace('"', '""')
    return f'"{quoted}", pg_temp'


def find_schema(connection: Connection) -> str:
    """The schema in which a ledger's tables are, or are to be made."""
    found: Any = connection.execute(
        "SELECT coalesce((SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass('partitions')), pg_catalog.current_schema(), '')"
    ).fetchone()
    return str(found[0])


def compare_catalog(answer: Cursor[Any]) -> list[str]:
    """Every difference between the catalogue and the tables that the ledger makes, in words."""
    rows = {Fact._make(row) for row in answer.fetchall()}
    owners = {fact.table: fact.detail for fact in rows if fact.kind == "owner"}
    found = {fact for fact in rows if fact.kind != "owner" and not _is_rebuilt(fact)}
    missing, strange = _EXPECTED - found, found - _EXPECTED
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
    # In the order of how much each explains.
    return [*sorted(replaced), *sorted(others), *sorted(more), *sorted(less)]


def _is_rebuilt(fact: Fact) -> bool:
    """Whether an index is shown twice because it is rebuilt concurrently."""
    return fact.kind == "unfinished index" and fact._replace(kind="index") in _EXPECTED


def check_catalog(answer: Cursor[Any], ledger: str, then: str = "") -> None:
    """Raise `LedgerError` where the catalogue differs."""
    differences = compare_catalog(answer)
    if differences:
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        listed = "; ".join(differences[:_SHOWN]) + more
        why = f"its tables were changed: {listed}. Find out who did that, and undo it in the database"
        raise LedgerError(ledger, f"{why}{then}")
