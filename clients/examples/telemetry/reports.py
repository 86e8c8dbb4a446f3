"""Write the reports in what PostHog sent as lines for `ldp-budget inbox take`: `python reports.py < sent.txt > reports.ndjson`."""

import json
import sys

for line in sys.stdin:
    body = json.loads(line)
    for event in body.get("batch", [body]):
        if event.get("event") == "ldp_report":
            sent = event["properties"]
            # A name for each report: the ledger does not know the devices, which keep budgets of their own.
            print(json.dumps({"user": sent["key"], "key": sent["key"], "report": sent["report"]}))
