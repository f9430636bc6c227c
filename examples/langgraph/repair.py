"""A LangGraph agent that writes a program, has it checked in a sandbox, and corrects it with the verdict's feedback.

    pip install 'uom-sandbox[local,langgraph]'
    python examples/langgraph/repair.py java      # or dotnet, python

Its model is a stand-in that makes a mistake and corrects it once it is told; put your own in its place.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from flows.langgraph import validation_node

ATTEMPTS = 3
Model = Callable[[str], Awaitable[str]]


class Conversation(TypedDict, total=False):
    task: str
    profile: str
    source: str
    attempts: int
    # Given by the node that checks:
    outcome: str
    feedback: str
    verdict: dict[str, Any]


NAMES = {"java": "Main.java", "dotnet": "Program.cs", "python": "main.py"}


def request_of(state: Conversation) -> dict[str, Any]:
    profile = state["profile"]
    return {"profile": profile, "files": {NAMES[profile]: state["source"]}}


def agent(model: Model, **options: Any) -> CompiledStateGraph[Conversation, None, Conversation, Conversation]:
    """The graph: write, check, and write again until it passes; ``options`` are those of ``flows.validate``."""

    async def write(state: Conversation) -> Conversation:
        prompt = state["task"]
        if "source" in state:
            prompt += f"\n\nYour program:\n{state['source']}\n\nIts verdict:\n{state['feedback']}"
        return {"source": await model(prompt), "attempts": state.get("attempts", 0) + 1}

    def next_step(state: Conversation) -> str:
        return END if state["outcome"] == "passed" or state["attempts"] >= ATTEMPTS else "write"

    graph = StateGraph(Conversation)
    graph.add_node("write", write)
    graph.add_node("check", validation_node(request_of, **options))
    graph.add_edge(START, "write")
    graph.add_edge("write", "check")
    graph.add_conditional_edges("check", next_step)
    return graph.compile()


PROGRAMS = {
    "java": """\
import java.util.List;

public class Main {
    public static void main(String[] args) {
        var totals = List.of(3, 4, 5);
        System.err.println("adding");
        System.out.println(totals.stream().mapToInt(Integer::intValue).MISTAKE());
    }
}
""",
    "dotnet": """\
int[] totals = [3, 4, 5];
Console.Error.WriteLine("adding");
Console.WriteLine(totals.MISTAKE());
""",
    "python": """\
import sys
totals = [3, 4, 5]
print("adding", file=sys.stderr)
print(MISTAKE(totals))
""",
}


async def stand_in(prompt: str) -> str:
    """Writes ``summ``, and ``sum`` once the tools' message about it is in the prompt."""
    profile = next(name for name in PROGRAMS if f"in {name}" in prompt)
    right = {"java": "sum", "dotnet": "Sum", "python": "sum"}[profile]
    told = "verdict" in prompt and f"{right}m" in prompt.partition("Its verdict:")[2]
    return PROGRAMS[profile].replace("MISTAKE", right if told else f"{right}m")


async def main(profile: str) -> int:
    state = Conversation(task=f"Add the totals, in {profile}.", profile=profile)
    outcome = ""
    async for mode, chunk in agent(stand_in).astream(state, stream_mode=["custom", "updates"]):
        if mode == "custom" and isinstance(chunk["data"], str):
            print(f"{chunk['type']}: {chunk['data'].rstrip()}")
        elif mode == "updates" and "check" in chunk:
            outcome = chunk["check"]["outcome"]
            print(f"--- {chunk['check']['feedback']}")
    return 0 if outcome == "passed" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "python")))
