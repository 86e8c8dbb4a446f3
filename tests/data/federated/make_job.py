"""python make_job.py FOLDER NAME ROUNDS RECORD: write the job of a researcher who tries every way around the budget."""

import sys

from job_parts import Recorder, Replacer, Talker
from nvflare import FilterType
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

folder, name, rounds, record = sys.argv[1:]
job = FedJob(name=name, min_clients=1)
job.to_server(FedAvg(num_clients=2, num_rounds=int(rounds)))
job.to_server(NPModelPersistor(model=[0.0] * 4), id="persistor")
job.to_server(Recorder(record), filter_type=FilterType.TASK_RESULT, tasks=["train"])
for site in ("site-1", "site-2"):
    job.to(ScriptRunner(script="train.py", framework=FrameworkType.RAW), site)
    job.to(Replacer(), site, filter_type=FilterType.TASK_RESULT, tasks=["train"])
    job.to(Talker(record), site, id="talker")
job.export_job(folder)
