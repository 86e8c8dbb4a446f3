"""A simulated federation with noise at the server, whose privacy accountant is a ledger; it prints what was spent."""

import os

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyClientSideFixedClipping, FedAvg
from flwr.simulation import run_simulation

from ldp_budget_adapters.flower import LedgerAccountant

app = ClientApp(mods=[fixedclipping_mod])


@app.train()
def train(message, context):
    (given,) = message.content.array_records.values()
    content = {
        "arrays": ArrayRecord({"w": Array(given["w"].numpy() + 1)}),
        "metrics": MetricRecord({"num-examples": 10}),
    }
    return Message(RecordDict(content), reply_to=message)


server = ServerApp()


@server.main()
def main(grid, context):
    backend = LedgerAccountant(ledger=os.environ["LEDGER"], user="cohort")
    inner = FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=2, min_available_nodes=2)
    strategy = DifferentialPrivacyClientSideFixedClipping(
        inner, noise_multiplier=4.0, clipping_norm=1.0, num_sampled_clients=2, accountant=backend
    )
    arrays = ArrayRecord({"w": Array(np.zeros(4, np.float32))})
    try:
        strategy.start(grid=grid, initial_arrays=arrays, num_rounds=int(os.environ["ROUNDS"]))
    finally:
        print("SPENT", backend.num_releases, backend.get_epsilon(1e-6), backend.get_epsilon(1e-9), flush=True)


if __name__ == "__main__":
    run_simulation(server, app, num_supernodes=2, backend_config={"client_resources": {"num_cpus": 1}})
