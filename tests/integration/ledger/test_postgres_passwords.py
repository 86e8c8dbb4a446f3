"""Passwords in the URL of a ledger on PostgreSQL: they are parsed, and no message shows them."""

from __future__ import annotations

import re
import traceback

import pytest

from contract.acts import coin
from ldp_budget import Accountant, InvalidParameter, LedgerError
from postgres_faults import signal_backends, with_port
from postgres_servers import HOST, Server

pytestmark = pytest.mark.usefixtures("own_keys")


def database_of_joe(server: Server, password: str) -> str:
    """The name of a new database, which belongs to joe, who is let in by a password."""
    (name,) = re.findall(r"/(\w+)$", server.create_database())
    server.run(f"CREATE ROLE joe LOGIN PASSWORD '{password}'")
    server.run(f"ALTER DATABASE {name} OWNER TO joe")
    hba = server.data / "pg_hba.conf"
    hba.write_text(f"host all joe 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")
    server.run("SELECT pg_reload_conf()")
    return name


def told_of(error: BaseException) -> str:
    """All that is shown of an error, and of those it came from."""
    shown = "".join(traceback.format_exception(type(error), error, None))
    return shown + repr(error) + repr(vars(error))


@pytest.mark.exhaustive
def test_password_is_in_no_message(server: Server, short_patience: None, caplog: pytest.LogCaptureFixture) -> None:
    name = database_of_joe(server, "right-one")
    address = server.url(name).replace("postgres@", "joe:PASSWORD@")

    def refused(text: str, create: bool = True) -> None:
        for each in (f"{text}?partitions=4", f"{text}?partitions=4&application_name=x"):
            with pytest.raises((LedgerError, InvalidParameter)) as told:
                Accountant(each, create=create)
            assert "s3cret" not in told_of(told.value)

    wrong = address.replace("PASSWORD", "s3cret")
    with pytest.raises(LedgerError, match="password authentication failed"):
        Accountant(f"{wrong}?partitions=4")
    refused(wrong)
    refused(wrong, create=False)
    refused(with_port(wrong, 1))  # no server is there
    refused(wrong.replace(HOST, "nowhere.invalid"))
    refused(re.sub(r":\d+/", ":s99/", wrong))
    refused(f"{wrong}?partitions=0")
    refused(f"{wrong}?ha=maybe")
    refused(f"{wrong}?no_such_option=1")
    refused(address.replace("joe:PASSWORD@", "joe@") + "?password=s3cret")
    # Characters that ought to have been escaped.
    for password in ("s3cret#x", "x#s3cret", "s3cret?x", "x?s3cret", "s3cret/x", "x/s3cret", "x@s3cret", "x[s3cret"):
        refused(address.replace("PASSWORD", password))
        refused(address.replace("PASSWORD", password + "@x/y"))
    # And where it was right, until it was changed.
    server.run("ALTER ROLE joe PASSWORD 's3cret'")
    with Accountant(f"{wrong}?partitions=4") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", coin(1))
        server.run("ALTER ROLE joe PASSWORD 'other'")
        signal_backends(server.url(name), "pg_terminate_backend")
        with pytest.raises(LedgerError, match="password authentication failed") as told:
            accountant.spend("alice", coin(1))
        assert "s3cret" not in told_of(told.value)
        with pytest.raises(LedgerError) as told:
            accountant.balance("alice")
        assert "s3cret" not in told_of(told.value)
        with pytest.raises(Exception, match="pg_basebackup") as backed:
            accountant.backup("x")
        assert "s3cret" not in told_of(backed.value)
    assert "s3cret" not in caplog.text


@pytest.mark.exhaustive
def test_escaped_password_is_decoded(server: Server) -> None:
    """All other parameters of libpq in the URL are parsed, too."""
    address = server.url(database_of_joe(server, "a b+c/d@e#f?g%h"))
    escaped = "a%20b+c%2Fd%40e%23f%3Fg%25h"
    for text in (
        address.replace("postgres@", f"joe:{escaped}@") + "?partitions=4",
        address.replace("postgres@", "joe@") + f"?partitions=4&password={escaped}&application_name=a%20b",
    ):
        with Accountant(text) as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            assert accountant.spend("alice", coin(1), key=text)
