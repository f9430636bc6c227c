"""Validation as a node of a LangGraph graph: events go to the graph's stream, the verdict into its state.

graph.add_node("check", validation_node(lambda state: {"profile": "java", "files": state["files"]}))
…
async for event in graph.compile().astream(state, stream_mode="custom"):
print(event["type"], event["data"])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from flows.api import validate
from flows.parameters import checked_request
from flows.translation_api import validate_translation
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.translation import TranslationResult

try:
    from langgraph.config import get_config, get_stream_writer
except ImportError as error:
    raise ImportError("flows.langgraph needs LangGraph: pip install 'uom-sandbox[langgraph]'") from error

State = TypeVar("State")
Request = ValidationRequest | Mapping[str, Any]
FEEDBACK_CHARACTERS: Final = 4000


def validation_node(
    request_of: Callable[[State], Request], *, feedback_chars: int = FEEDBACK_CHARACTERS, **options: Any
) -> Callable[[State], Awaitable[dict[str, Any]]]:
    """Returns a node that validates a program.

    It gives the state ``outcome``, the verdict's word; ``feedback``, a text for a language model; and ``verdict``, the
    whole result as JSON, so that any checkpointer can keep it: ``ValidationResult.model_validate(state["verdict"])``.
    Members that the graph's state does not have are left out by LangGraph. The run belongs to the thread of the graph
    unless the request names one.

    Args:
        request_of: Returns the program to validate, from the graph's state.
        feedback_chars: The longest feedback, in characters.
        options: Further arguments of ``flows.validate``, such as ``connection_blocks``.
    """

    async def check(state: State) -> dict[str, Any]:
        request = _in_thread(request_of(state))
        return _update(await validate(request, on_event=get_stream_writer(), **options), feedback_chars)

    return check


def translation_node(
    sides_of: Callable[[State], tuple[Request, Request]],
    *,
    feedback_chars: int = FEEDBACK_CHARACTERS,
    **options: Any,
) -> Callable[[State], Awaitable[dict[str, Any]]]:
    """Returns a node that runs a program and its translation and compares what they compute.

    It gives the state what ``validation_node`` does; ``verdict`` is that of a ``TranslationResult``, and each event has
    a member ``side``.

    Args:
        sides_of: Returns the program and its translation, from the graph's state.
        feedback_chars: The longest feedback, in characters.
        options: Further arguments of ``flows.validate_translation``, such as ``rules``.
    """

    async def compare(state: State) -> dict[str, Any]:
        source, target = (_in_thread(side) for side in sides_of(state))
        result = await validate_translation(source, target, on_event=get_stream_writer(), **options)
        return _update(result, feedback_chars)

    return compare


def _update(result: ValidationResult | TranslationResult, feedback_chars: int) -> dict[str, Any]:
    return {
        "outcome": result.outcome.value,
        "feedback": result.feedback(feedback_chars),
        "verdict": result.model_dump(mode="json"),
    }


def _in_thread(request: Request) -> Request:
    thread = get_config().get("configurable", {}).get("thread_id")
    if thread is None:
        return request
    if isinstance(request, ValidationRequest):
        request = {name: getattr(request, name) for name in ValidationRequest.model_fields}
    return checked_request({**request, "thread_id": request.get("thread_id") or str(thread)})
