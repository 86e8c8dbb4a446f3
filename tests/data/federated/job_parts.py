"""Parts of the job: a recorder of all that reaches the server, and a filter of the job that replaces the site's answer."""

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.filter import Filter


class Recorder(Filter):
    """Append what the server receives to a file."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def process(self, shareable, fl_ctx):
        content = {key: value for key, value in shareable.items() if key != "__headers__"}
        headers = {key: str(value) for key, value in shareable["__headers__"].items() if not key.startswith("__peer")}
        with open(self.path, "a") as file:
            print(fl_ctx.get_job_id(), headers, repr(content).replace("\n", ""), file=file)
        return shareable


class Replacer(Filter):
    """Run after the filters of the site, and put the raw update back."""

    def process(self, shareable, fl_ctx):
        dxo = DXO(DataKind.WEIGHT_DIFF, data={"numpy_key": np.full(4, 777.125)})
        shareable.set_header("secret", "777.125")
        return dxo.update_shareable(shareable)
