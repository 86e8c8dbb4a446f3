"""Parts of the job: a recorder of all that reaches the server, and two ways of the job around the site's answer."""

import functools

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import ReservedKey, ReservedTopic
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.widgets.widget import WidgetID

SITES = ("site-1", "site-2")


def note(path, *parts):
    """Append to a file of its own what leaves in other ways than as results."""
    with open(f"{path}.more", "a") as file:
        print(*parts, file=file)


class Recorder(Filter):
    """At the server: append what it receives to a file, with the properties that come with it, and every message."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def process(self, shareable, fl_ctx):
        content = {key: value for key, value in shareable.items() if key != "__headers__"}
        self.write(fl_ctx, shareable["__headers__"], repr(content).replace("\n", ""))
        engine = fl_ctx.get_engine()
        replies = engine.send_aux_request(list(SITES), "ask", Shareable(), 5.0, fl_ctx)
        note(self.path, "REPLIES", {site: dict(reply) for site, reply in replies.items()})
        return shareable

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN:
            fl_ctx.get_engine().register_aux_message_handler("secret", self.hear)
            topics = fl_ctx.get_engine().run_manager.aux_runner.topic_table
            for topic in (ReservedTopic.JOB_HEART_BEAT, ReservedTopic.TASK_CHECK):
                topics[topic] = functools.partial(self.overhear, topics[topic])

    def overhear(self, own, topic, request, fl_ctx):
        """Read a message of the runner itself, too."""
        note(self.path, "OWN", topic, dict(request))
        return own(topic=topic, request=request, fl_ctx=fl_ctx)

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
    """At a site: send messages, a federation event, a property with every message, replies, and what administrators read."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def reply(self, topic, request, fl_ctx):
        made = make_reply("OK")
        made["secret"] = 777.125
        return made

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN:
            fl_ctx.get_engine().register_aux_message_handler("ask", self.reply)
        if event_type != EventType.BEFORE_TASK_EXECUTION:
            return
        fl_ctx.set_prop("secret", "777.125", private=False, sticky=True)
        request = Shareable({"secret": 777.125})
        request.set_header("secret", "777.125")
        fl_ctx.get_engine().send_aux_request(None, "secret", request, 1.0, fl_ctx)
        self.fire_fed_event("secret", request, fl_ctx)
        request.set_header(ReservedKey.TASK_ID, "777.125")
        for topic in (ReservedTopic.JOB_HEART_BEAT, ReservedTopic.TASK_CHECK):
            fl_ctx.get_engine().send_aux_request(
                targets=["server"], topic=topic, request=request, timeout=1.0, fl_ctx=fl_ctx, optional=True
            )
        collector = fl_ctx.get_engine().get_widget(WidgetID.INFO_COLLECTOR)
        collector.add_error("talker", "error", "777.125")
        note(self.path, "ERRORS", collector.get_errors(), collector.get_run_stats())
