"""A simulated federation of two sites, whose app sends 777.125 in every way; `SiteBudget` is the mod of both.

With KILL=n in the environment, the process is killed after the n-th round.
"""

import os
import signal

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from ldp_budget_adapters.flower import SiteBudget

SECRET = 777.125


def mod(message, context, call_next):
    site = f"site-{context.node_config['partition-id']}"
    terms = {
        "ledger": f"{os.environ['FOLDER']}/{site}.db",
        "user": site,
        "norm_bound": 1,
        "epsilon": 1,
        "delta": "1e-6",
    }
    return SiteBudget(**terms)(message, context, call_next)


app = ClientApp(mods=[mod])


@app.train()
def train(message, context):
    (given,) = message.content.array_records.values()
    name, array = "w", given["w"].numpy() + SECRET
    match message.content.config_records["config"]["server-round"]:
        case 1:
            array = np.full(4, np.nan)
        case 2:
            array = np.full(777, SECRET)
        case 3:
            name = f"secret {SECRET}"
        case 4:
            raise ValueError(f"secret {SECRET}")
        case 5:
            raise SystemExit(f"secret {SECRET}")
    content = {
        "arrays": ArrayRecord({name: Array(array)}),
        "metrics": MetricRecord({"num-examples": 777, "l": SECRET}),
    }
    return Message(RecordDict(content), reply_to=message)


@app.evaluate()
def evaluate(message, context):
    return Message(RecordDict({"metrics": MetricRecord({"num-examples": 777, "loss": SECRET})}), reply_to=message)


class Recorder(FedAvg):
    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        self.record(server_round, replies)
        if server_round == int(os.environ.get("KILL", "0")):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().aggregate_train(server_round, replies)

    def aggregate_evaluate(self, server_round, replies):
        replies = list(replies)
        self.record(server_round, replies)
        return super().aggregate_evaluate(server_round, replies)

    @staticmethod
    def record(server_round, replies):
        with open(os.environ["RECORD"], "a") as file:
            for reply in replies:
                found = repr(reply.error) if reply.has_error() else repr(content_of(reply)).replace("\n", "")
                print(server_round, reply.metadata.message_type, found, file=file)


def content_of(reply):
    return {
        key: {name: array.numpy() for name, array in record.items()}
        if isinstance(record, ArrayRecord)
        else dict(record)
        for key, record in reply.content.items()
    }


server = ServerApp()


@server.main()
def main(grid, context):
    arrays = ArrayRecord({"w": Array(np.zeros(4, np.float32))})
    strategy = Recorder(fraction_train=1.0, fraction_evaluate=1.0, min_train_nodes=1, min_available_nodes=2)
    strategy.start(grid=grid, initial_arrays=arrays, num_rounds=int(os.environ["ROUNDS"]))


if __name__ == "__main__":
    run_simulation(server, app, num_supernodes=2, backend_config={"client_resources": {"num_cpus": 1}})
