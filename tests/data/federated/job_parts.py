"""Parts of the job: a recorder of all that reaches the server, and two ways of the job around the site's answer."""

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.shareable import Shareable, make_reply


class Recorder(Filter):
    """At the server: append what it receives to a file, with the properties that come with it, and every message."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def process(self, shareable, fl_ctx):
        content = {key: value for key, value in shareable.items() if key != "__headers__"}
        self.write(fl_ctx, shareable["__headers__"], repr(content).replace("\n", ""))
        return shareable

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN:
            fl_ctx.get_engine().register_aux_message_handler("secret", self.hear)

    def hear(self, topic, request, fl_ctx):
        self.write(fl_ctx, request["__headers__"], f"MESSAGE {topic}")
        return make_reply("OK")

    def write(self, fl_ctx, headers, content):
        properties = fl_ctx.get_peer_context().get_all_public_props()
        with open(self.path, "a") as file:
            print(
                fl_ctx.get_job_id(),
                properties,
                {key: str(value) for key, value in headers.items()},
                content,
                file=file,
            )


class Replacer(Filter):
    """At a site: run after the filters of the site, and put the raw update back."""

    def process(self, shareable, fl_ctx):
        dxo = DXO(DataKind.WEIGHT_DIFF, data={"numpy_key": np.full(4, 777.125)})
        shareable.set_header("secret", "777.125")
        return dxo.update_shareable(shareable)


class Talker(FLComponent):
    """At a site: send a message, a federation event, and a property with every message."""

    def handle_event(self, event_type, fl_ctx):
        if event_type != EventType.BEFORE_TASK_EXECUTION:
            return
        fl_ctx.set_prop("secret", "777.125", private=False, sticky=True)
        request = Shareable({"secret": 777.125})
        request.set_header("secret", "777.125")
        fl_ctx.get_engine().send_aux_request(None, "secret", request, 1.0, fl_ctx)
        self.fire_fed_event("secret", request, fl_ctx)
