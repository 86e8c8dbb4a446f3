"""The pilot: 24 real devices report for 26 weeks to a real service, which is killed in week 14. An observer reads along.

python pilot.py    # in an empty folder: makes pilot.db; needs cargo
"""

import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from truth import ANSWERS, WEEKS, Truth

from ldp_budget import Accountant
from ldp_budget.reports.inbox import Inbox

HERE, DEVICES, KILLED = Path(__file__).parent, 24, (13, 12)


class Wire(socketserver.ThreadingTCPServer):
    """Passes requests on and notes their sizes; it can lose one response and kill the service."""

    daemon_threads, lose = True, False

    def start_service(self):
        command = [sys.executable, "-m", "ldp_budget_cli", "serve", "--port", "0", "--no-request-log"]
        self.service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = next(line for line in self.service.stderr if line.startswith("listening"))
        self.port = int(said.rpartition(":")[2])


class Request(socketserver.StreamRequestHandler):
    def handle(self):
        head = list(iter(self.rfile.readline, b"\r\n"))
        length = next(int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length"))
        request = b"".join([*head, b"\r\n", self.rfile.read(length)])
        try:
            with socket.create_connection(("127.0.0.1", self.server.port)) as service:
                service.sendall(request)
                response = b"".join(iter(lambda: service.recv(65536), b""))
        except OSError:
            return
        self.server.sizes[head[0].split(b"/")[3].decode()].update([(len(request), len(response))])
        if self.server.lose:
            self.server.service.kill()
        else:
            self.wfile.write(response)


def main():
    build = ["cargo", "build", "--quiet", "--release", "--offline", "--manifest-path", HERE / "device" / "Cargo.toml"]
    subprocess.run(build, check=True)
    program = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "device" / "target"), "release", "telemetry-device")
    truth, said, spent = Truth(DEVICES), Counter(), {}
    os.environ["LDP_BUDGET_LEDGER"] = str(Path("pilot.db").resolve())
    subprocess.run(["bash", HERE / "collections.sh"], check=True, stdout=subprocess.DEVNULL)
    with Accountant("pilot.db") as ledger, Wire(("127.0.0.1", 0), Request) as wire:
        for metric in ANSWERS:
            Path(f"{metric}.json").write_text(json.dumps(ledger.collection(metric).definition()))
        wire.sizes = defaultdict(Counter)
        wire.start_service()
        threading.Thread(target=wire.serve_forever, daemon=True).start()
        where = [".", f"127.0.0.1:{wire.server_address[1]}", Path("api-key").read_text().strip()]
        for week in range(WEEKS):
            for device in np.flatnonzero(truth.on[week]):
                words = [program, f"device-{device}", *where, truth.installations[device], f"week-{week + 1:02}"]
                for metric, names in ANSWERS.items():
                    if device in truth.due(metric, week):
                        answer = truth.answers(metric, week, device)
                        chosen = np.flatnonzero(answer) if metric == "features" else [answer]
                        words.append(f"{metric}={','.join(names[place] for place in chosen)}")
                wire.lose = (week, device) == KILLED  # in the middle of a week: from here on, nothing is answered
                printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
                said.update(line.split()[0] for line in printed)
                spent[device] = float(printed[-1].split()[1])
            if wire.service.poll() is not None:
                wire.start_service()
        wire.service.terminate()
        wire.service.wait()
        wire.shutdown()
        kept = sum(len(Inbox(ledger, ledger.collection(metric))) for metric in ANSWERS)
        same = sum(ledger.balance(truth.installations[each]).limits[0].spent.epsilon == spent[each] for each in spent)
        print(f"sent again after the kill   {said['waits']} reports")
        print(f"arrived and kept in ledger  {said['arrived']} and {kept} reports; refused {said['refused']}")
        print(f"budgets that agree          {same} of {len(spent)} devices")
        print(f"ledger verified             {ledger.verify().ok}")
        for metric, sizes in wire.sizes.items():
            requests, responses = (sorted({each[side] for each in sizes}) for side in (0, 1))
            print(f"{metric:10} {sum(sizes.values())} requests of {requests} bytes, responses of {responses}")


if __name__ == "__main__":
    main()
