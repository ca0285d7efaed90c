"""What verdicts and methods are called, and the sentence that says what a verdict means."""

from __future__ import annotations

from pepscope.results import Kind

KIND_NAMES = {
    Kind.REGULAR: "regular",
    Kind.SPLIT_TCP: "split-tcp",
    Kind.TCP_PROXY: "tcp-proxy",
    Kind.INCONCLUSIVE: "inconclusive",
}

KIND_SENTENCES = {
    Kind.REGULAR: "This connection is end to end: the two ends speak to each other, and nothing between them answers "
    "in their name.",
    Kind.SPLIT_TCP: "This connection is split: something in the network ends it and passes the data on over a second "
    "connection while the first goes on (Split-TCP).",
    Kind.TCP_PROXY: "This connection is served by a TCP proxy: something in the network takes the data first and hands "
    "it on afterwards (store and forward), or answers from its own store.",
    Kind.INCONCLUSIVE: "These captures do not tell whether this connection is end to end or split.",
}

METHOD_NAMES = {
    "ack_timing": "acknowledgement timing",
    "delayed_ack": "delayed acknowledgements",
    "identity": "packet identity",
    "receive_window": "receive window",
    "progress": "transfer progress",
    "content": "content",
    "teardown": "teardown",
    "single_vantage": "single capture",
}


def method_name(method: str) -> str:
    """The name of a method in prose; one that is not known here keeps its own, without underscores."""
    return METHOD_NAMES.get(method, method.replace("_", " "))
