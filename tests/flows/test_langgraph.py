"""Real LangGraph graphs: events in the graph's stream, the verdict in its state."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import StreamWriter

from flows import validate
from flows.langgraph import translation_node, validation_node
from sandbox.connection import Credentials
from sandbox.errors import ConfigurationError
from sandbox.events import (
    DOTNET_SANDBOX_COMMAND_EXECUTION_STDERR,
    DOTNET_SANDBOX_COMMAND_EXECUTION_STDOUT,
    JAVA_SANDBOX_COMMAND_EXECUTION_STDERR,
    JAVA_SANDBOX_COMMAND_EXECUTION_STDOUT,
    JAVA_SANDBOX_SNAPSHOT_CREATION,
    OUTCOME,
)
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Profile, builtin_profile
from sandbox.translation import TranslationResult
from tests.examples.workbench import Workbench

EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph" / "repair.py"
MADE = "made for a graph"


class Conversation(TypedDict, total=False):
    source: str
    outcome: str
    feedback: str
    verdict: dict[str, Any]


def request_of(state: Conversation) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": state["source"]})


def graph_of(node: Any, **options: Any) -> Any:
    graph = StateGraph(Conversation)
    graph.add_node("check", node)
    graph.add_edge(START, "check")
    graph.add_edge("check", END)
    return graph.compile(**options)


def text_of(streamed: list[Any], type_: str) -> str:
    """Output comes in pieces of any size."""
    return "".join(chunk["data"] for chunk in streamed if chunk["type"] == type_)


async def test_a_stream_writer_is_a_sink_as_it_is(prefect_server: str, credentials: Credentials) -> None:
    async def check(state: Conversation, writer: StreamWriter) -> dict[str, str]:
        result = await validate(request_of(state), on_event=writer, credentials=credentials)
        return {"outcome": result.outcome.value}

    source = "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n"
    chunks: list[tuple[str, Any]] = [
        (mode, chunk)
        async for mode, chunk in graph_of(check).astream(Conversation(source=source), stream_mode=["custom", "updates"])
    ]
    streamed = [chunk for mode, chunk in chunks if mode == "custom"]
    assert text_of(streamed, "python_sandbox_command_execution_stdout") == "to stdout\n"
    assert text_of(streamed, "python_sandbox_command_execution_stderr") == "to stderr\n"
    assert [chunk["seq"] for chunk in streamed] == list(range(1, len(streamed) + 1))
    assert chunks[-1] == ("updates", {"check": {"outcome": "passed"}})


async def test_a_node_belongs_to_the_graphs_thread_and_its_verdict_survives_a_checkpoint(
    prefect_server: str, credentials: Credentials
) -> None:
    graph = graph_of(
        validation_node(request_of, feedback_chars=300, credentials=credentials), checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "conversation-7"}}
    source = "print('x' * 5000)\nraise SystemExit('the reason')\n"
    streamed = [chunk async for chunk in graph.astream({"source": source}, config, stream_mode="custom")]
    assert {chunk["thread_id"] for chunk in streamed} == {"conversation-7"}
    assert streamed[-1]["type"] == OUTCOME
    kept = (await graph.aget_state(config)).values
    assert kept["outcome"] == "runtime_error"
    assert len(kept["feedback"]) <= 300
    assert "the reason" in kept["feedback"]
    verdict = ValidationResult.model_validate(kept["verdict"])
    assert verdict.thread_id == "conversation-7"
    assert verdict.feedback(300) == kept["feedback"]
    with pytest.raises(ConfigurationError, match="thread_id"):
        await graph.ainvoke({"source": source}, {"configurable": {"thread_id": "../elsewhere"}})


async def test_a_node_compares_a_translation(prefect_server: str, credentials: Credentials) -> None:
    def program(text: str) -> ValidationRequest:
        source = f"import json, os\njson.dump({{'q': [{text}]}}, open(os.environ['UOM_RESULT_FILE'], 'w'))\n"
        return ValidationRequest(profile="python", files={"main.py": source})

    def sides_of(state: Conversation) -> tuple[ValidationRequest, ValidationRequest]:
        return program("1"), program(state["source"])

    node = translation_node(sides_of, credentials=credentials)
    sides: set[str] = set()
    last: Any = {}
    async for mode, chunk in graph_of(node).astream(Conversation(source="2"), stream_mode=["custom", "values"]):
        if mode == "custom":
            sides.add(chunk["side"])
        else:
            last = chunk
    assert sides == {"source", "target"}
    assert last["outcome"] == "different"
    assert "$.q[0]: source 1, target 2" in last["feedback"]
    assert not TranslationResult.model_validate(last["verdict"]).equivalent


async def repaired(name: str, *, credentials: Credentials, profile: Profile | None = None) -> tuple[list[Any], str]:
    """Runs the worked example; returns what it streamed, and what its model was told."""
    specification = importlib.util.spec_from_file_location("uom_examples_repair", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    example = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = example
    specification.loader.exec_module(example)

    agent = example.agent(example.stand_in, profile=profile, credentials=credentials)
    state = {"task": f"Add the totals, in {name}.", "profile": name}
    streamed, checks = [], []
    async for mode, chunk in agent.astream(state, stream_mode=["custom", "updates"]):
        if mode == "custom":
            streamed.append(chunk)
        elif "check" in chunk:
            checks.append(chunk["check"])
    assert checks[-1]["outcome"] == "passed", checks
    assert len(checks) == 2
    return streamed, checks[0]["feedback"]


def of_its_own(name: str) -> Profile:
    """The profile with a snapshot of its own, so that its making is seen in the stream."""
    profile = builtin_profile(name)
    return profile.model_copy(update={"type": f"{name}-langgraph", "setup": (*profile.setup, f"echo {MADE}")})


async def test_the_worked_example_repairs_its_program_with_the_feedback(
    prefect_server: str, credentials: Credentials
) -> None:
    streamed, told = await repaired("python", credentials=credentials, profile=of_its_own("python"))
    assert "NameError" in told
    assert MADE in text_of(streamed, "python_sandbox_snapshot_creation")
    assert text_of(streamed, "python_sandbox_command_execution_stdout") == "12\n"


@pytest.mark.slow
async def test_the_worked_example_in_java(prefect_server: str, workbench: Workbench) -> None:
    await workbench.profile("java")
    streamed, told = await repaired("java", credentials=workbench.credentials, profile=of_its_own("java"))
    assert "cannot find symbol" in told
    assert MADE in text_of(streamed, JAVA_SANDBOX_SNAPSHOT_CREATION)
    assert text_of(streamed, JAVA_SANDBOX_COMMAND_EXECUTION_STDOUT).endswith("12\n")
    assert text_of(streamed, JAVA_SANDBOX_COMMAND_EXECUTION_STDERR).endswith("adding\n")


@pytest.mark.slow
@pytest.mark.timeout(300)  # the first test that needs .NET's snapshot waits for it
async def test_the_worked_example_in_csharp(prefect_server: str, workbench: Workbench) -> None:
    await workbench.profile("dotnet")
    streamed, told = await repaired("dotnet", credentials=workbench.credentials)
    assert "CS1061" in told
    assert text_of(streamed, DOTNET_SANDBOX_COMMAND_EXECUTION_STDOUT).endswith("12\n")
    assert text_of(streamed, DOTNET_SANDBOX_COMMAND_EXECUTION_STDERR).endswith("adding\n")
