"""A LangGraph stream writer is an event sink as it is: the graph's front end sees the program's output live."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import StreamWriter

from flows import validate
from sandbox.connection import Credentials
from sandbox.models import ValidationRequest


class Conversation(TypedDict):
    source: str
    outcome: str


async def test_a_graph_streams_the_output_of_a_validation(prefect_server: str, credentials: Credentials) -> None:
    async def check(state: Conversation, writer: StreamWriter) -> dict[str, str]:
        request = ValidationRequest(profile="python", files={"main.py": state["source"]})
        result = await validate(request, on_event=writer, credentials=credentials)
        return {"outcome": result.outcome.value}

    graph = StateGraph(Conversation)
    graph.add_node("check", check)
    graph.add_edge(START, "check")
    graph.add_edge("check", END)
    source = "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n"

    chunks: list[tuple[str, Any]] = [
        (mode, chunk)
        async for mode, chunk in graph.compile().astream(
            Conversation(source=source, outcome=""), stream_mode=["custom", "updates"]
        )
    ]

    streamed = [chunk for mode, chunk in chunks if mode == "custom"]
    assert text_of(streamed, "python_sandbox_command_execution_stdout") == "to stdout\n"
    assert text_of(streamed, "python_sandbox_command_execution_stderr") == "to stderr\n"
    assert [chunk["seq"] for chunk in streamed] == list(range(1, len(streamed) + 1))
    assert chunks[-1] == ("updates", {"check": {"outcome": "passed"}})


def text_of(streamed: list[Any], type_: str) -> str:
    """Output comes in pieces of any size."""
    return "".join(chunk["data"] for chunk in streamed if chunk["type"] == type_)
