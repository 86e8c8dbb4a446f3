"""Crashes of a server, a connection or an instance: nothing is lost, and nothing is charged twice."""

from __future__ import annotations

import http.client
import random
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from ldp_budget import Accountant
from ledger_inside import ledger_of
from postgres_places import new_ledger as new_postgres
from service_farm import HOST, MECHANISM, Answer, Caller, Farm, new_ledger

CLIENTS = 16
USERS = 5
UNITS = 1_000_000  # ε of MECHANISM, in the ledger's units


class Crowd:
    """Clients that spend one after the other, each until it has an answer, until they are stopped."""

    def __init__(self, secret: str, ports: list[int], clients: int = CLIENTS) -> None:
        self.answers: dict[str, tuple[str, Answer]] = {}
        self._secret, self._ports = secret, ports
        self._stop = threading.Event()
        self._failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._spend, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _spend(self, number: int) -> None:
        caller, count = Caller(self._ports[number % len(self._ports)], self._secret), 0
        try:
            while not self._stop.is_set():
                user, key = f"user-{count % USERS}", f"{number}/{count}"
                self.answers[key] = user, caller.spend_until_answered(user, key, self._ports)
                count += 1
        except BaseException as error:
            self._failed.append(error)
        finally:
            caller.close()

    def stop(self) -> None:
        """Let all clients finish their requests."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert not self._failed, self._failed

    def replays(self) -> int:
        """Return the number of answers that belong to an earlier try."""
        return sum(answer.headers["Idempotency-Replayed"] == "true" for _, answer in self.answers.values())


def check_exactly_once(place: str, crowd: Crowd) -> None:
    """Check that the ledger has every answer once, and nothing else."""
    granted = {key: answer.json()["receipt"] for key, (_, answer) in crowd.answers.items() if answer.status == 200}
    assert len(set(granted.values())) == len(granted)
    by_user = Counter(user for user, answer in crowd.answers.values() if answer.status == 200)
    with Accountant(place, create=False) as accountant:
        assert accountant.verify().ok
        spent = [row for row in accountant.journal() if row["kind"] == "spent"]
        assert len(spent) == len(granted)
        for user, count in by_user.items():
            assert accountant.balance(user).limits[0].spent_units.epsilon == count * UNITS


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_killed_servers_lose_nothing_and_charge_nothing_twice(farm: Farm, tmp_path: Path, kills: int) -> None:
    place = str(tmp_path / "budget.db")
    secret = new_ledger(place, "lifetime=1000000")
    port, moments = farm.listen(), random.Random(kills)
    crowd = Crowd(secret, [port])
    answered = []
    for _ in range(kills):
        server = farm.start(place, port)
        before = len(crowd.answers)
        while len(crowd.answers) == before:  # it works: from here on, at any moment
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.08))
        server.kill()
        answered.append(len(crowd.answers) - before)
    last = farm.start(place, port)
    crowd.stop()
    assert last.end() == 0
    assert sum(answered) > 2 * kills
    if kills > 4:
        assert crowd.replays() > 0  # some were charged, and the answer was lost
    check_exactly_once(place, crowd)


@pytest.mark.exhaustive
def test_spend_during_shutdown_is_answered(farm: Farm, tmp_path: Path) -> None:
    place = str(tmp_path / "budget.db")
    secret = new_ledger(place, "lifetime=1000000")
    server = farm.start(place, notice=0.3)
    answered, begun = [0] * CLIENTS, threading.Barrier(CLIENTS + 1)

    def spend(number: int) -> None:
        caller = Caller(server.port, secret)
        caller.spend(f"user-{number}", "first")
        answered[number] += 1
        begun.wait()
        while True:  # until the port is closed
            try:
                answer = caller.spend(f"user-{number}", str(answered[number]))
            except (OSError, http.client.HTTPException):
                return caller.close()
            assert answer.status == 200, answer.body
            answered[number] += 1

    threads = [threading.Thread(target=spend, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begun.wait()
    time.sleep(0.2)
    assert server.end() == 0
    for thread in threads:
        thread.join(30)
    with Accountant(place, create=False) as accountant:
        assert accountant.verify().ok
        assert sum(row["kind"] == "spent" for row in accountant.journal()) == sum(answered)
    assert sum(answered) > 2 * CLIENTS


@pytest.mark.exhaustive
def test_requests_in_progress_at_shutdown_are_finished(farm: Farm, tmp_path: Path) -> None:
    place = str(tmp_path / "budget.db")
    secret = new_ledger(place, "lifetime=1")
    server = farm.start(place, notice=0.1)
    statuses, go_on = [0] * CLIENTS, threading.Event()
    with Caller(server.port, None) as caller:
        assert caller.ask("GET", "/livez").status == 200  # it has opened the ledger

    def spend(number: int) -> None:
        with Caller(server.port, secret) as caller:
            statuses[number] = caller.spend(f"user-{number}", "k").status

    with Accountant(place, create=False) as accountant:
        # Another process writes to the ledger, and has not finished.
        writer = threading.Thread(target=ledger_of(accountant).run, args=(lambda transaction: go_on.wait(30),))
        writer.start()
        threads = [threading.Thread(target=spend, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        with Caller(server.port, secret) as watcher:
            while watcher.ask("GET", "/readyz").status == 200 and _in_flight(watcher) < CLIENTS:
                time.sleep(0.01)
        server.signal(signal.SIGTERM)
        _wait_until_refused(server.port)
        assert statuses == [0] * CLIENTS
        go_on.set()
        for thread in [writer, *threads]:
            thread.join(30)
    assert statuses == [200] * CLIENTS
    assert server.wait() == 0


def _in_flight(watcher: Caller) -> int:
    """Return the number of requests in progress, without this one."""
    told = watcher.ask("GET", "/metrics").body.decode()
    [line] = [line for line in told.splitlines() if line.startswith("ldp_budget_http_requests_in_flight ")]
    return int(float(line.split()[1])) - 1


def _wait_until_refused(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection((HOST, port)).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.01)
    raise TimeoutError("it still listens")


class Cutter:
    """Stands between caller and server, and cuts the line when the answer comes: so many times."""

    def __init__(self, port: int, cuts: int) -> None:
        self._to, self._cuts = port, cuts
        self.cut = 0
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._pass_on)
        self._thread.start()

    def _pass_on(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            with one, socket.create_connection((HOST, self._to)) as other:
                while asked := one.recv(1 << 16):
                    other.sendall(asked)
                    if b'"user"' not in asked:
                        continue  # the head alone; the body follows
                    answer = other.recv(1 << 16)
                    while not answer.endswith(b"}"):  # the end of the body
                        answer += other.recv(1 << 16)
                    if self.cut < self._cuts:
                        self.cut += 1
                        break
                    one.sendall(answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@pytest.mark.exhaustive
def test_connection_cut_between_charge_and_answer_charges_once(farm: Farm, tmp_path: Path) -> None:
    place = str(tmp_path / "budget.db")
    secret = new_ledger(place, "lifetime=1")
    server = farm.start(place)
    between = Cutter(server.port, cuts=3)
    caller = Caller(between.port, secret, timeout=10)
    answer = caller.spend_until_answered("alice", "monday")
    caller.close()
    between.close()
    assert between.cut == 3
    assert answer.status == 200
    assert answer.headers["Idempotency-Replayed"] == "true"
    assert answer.json()["limits"][0]["spent"]["epsilon"] == float(MECHANISM["epsilon"])
    assert server.end() == 0
    with Accountant(place, create=False) as accountant:
        assert [row["kind"] for row in accountant.journal() if row["kind"] == "spent"] == ["spent"]


@pytest.mark.exhaustive
def test_instances_sharing_a_ledger_never_exceed_a_limit_if_one_is_killed(farm: Farm) -> None:
    place = new_postgres(8)
    most = 40
    secret = new_ledger(place, f"lifetime={most * 0.001:g}")
    one, other = farm.start(place), farm.start(place)
    crowd = Crowd(secret, [one.port, other.port])
    while len(crowd.answers) < most * USERS / 2:
        time.sleep(0.005)
    one.kill()
    at_kill = len(crowd.answers)
    while len(crowd.answers) < max(at_kill, most * USERS) + 5 * CLIENTS:
        time.sleep(0.005)
    crowd.stop()
    assert other.end() == 0
    by_user: Counter[str] = Counter()
    for user, answer in crowd.answers.values():
        by_user[user] += answer.status == 200
    assert by_user == {f"user-{number}": most for number in range(USERS)}
    check_exactly_once(place, crowd)
