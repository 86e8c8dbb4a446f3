"""python submit.py KIT FOLDER…: submit jobs at once, wait for all, and print the status of each."""

import sys

from nvflare.fuel.flare_api.flare_api import new_secure_session

session = new_secure_session("admin@nvidia.com", sys.argv[1])
jobs = [session.submit_job(folder) for folder in sys.argv[2:]]
for job in jobs:
    session.monitor_job(job, timeout=240, poll_interval=1.0)
    print(session.get_job_meta(job)["status"])
session.close()
