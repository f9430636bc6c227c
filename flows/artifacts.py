"""What a finished run shows in the Prefect UI: summary, findings, result, comparison.

The live console is ``flows.console``; artifacts of translations are ``flows.translation_artifacts``.
"""

from __future__ import annotations

import json
from uuid import UUID

from flows.artifact_keys import artifact_key
from flows.publisher import PUBLISHER, Artifact, Render
from flows.result_tables import diagnostics_table, differences_markdown, result_markdown, results_table
from flows.summary import Link, failure_markdown, summary_markdown
from sandbox.errors import SandboxError
from sandbox.models import ValidationResult


def publish_verdict(result: ValidationResult, *, flow_run_id: UUID) -> None:
    """Queues the artifacts of a finished run; returns at once. The summary comes last: it links to the others."""
    names = (result.profile, result.framework)
    published: list[tuple[str, Artifact]] = []

    def publish(role: str, type_: str, description: str, render: Render) -> None:
        artifact = Artifact(
            key=artifact_key(role, *names), type=type_, description=description, flow_run_id=flow_run_id
        )
        published.append((role, artifact))
        PUBLISHER.publish(artifact, render)

    found, value, compared = result.diagnostics, result.result, result.comparison
    if found:
        text = "Findings of compilers and runtimes"
        publish("diagnostics", "table", text, lambda: json.dumps(diagnostics_table(found)))
    if value is not None:
        publish("results", "table", "Result by query", lambda: json.dumps(results_table(value)))
        path = result.result_path
        publish("result", "markdown", "What the program computed", lambda: result_markdown(value, path=path))
    if compared is not None and not compared.equal:
        text, total = "Where the result is not the expected one", compared.total_differences
        publish("comparison", "markdown", text, lambda: differences_markdown(compared.differences, total=total))
    others = tuple(published)
    publish(
        "summary",
        "markdown",
        "Verdict of the validation",
        lambda: summary_markdown(result, links=links_of(flow_run_id, others)),
    )


def publish_failure(error: SandboxError, *, profile: str, framework: str, flow_run_id: UUID) -> None:
    """Queues the summary of a run that ended without a verdict; returns at once.

    Args:
        error: Why there is none.
        profile: Name of the profile.
        framework: Name of the project template.
        flow_run_id: The run.
    """
    artifact = Artifact(
        key=artifact_key("summary", profile, framework),
        type="markdown",
        description="Why there is no verdict",
        flow_run_id=flow_run_id,
    )
    PUBLISHER.publish(artifact, lambda: failure_markdown(error, links=links_of(flow_run_id, ())))


def links_of(flow_run_id: UUID, artifacts: tuple[tuple[str, Artifact], ...]) -> list[Link]:
    """Returns links from the page of an artifact to its run, the run's log and other artifacts that were stored.

    They are relative to that page, since nobody knows under which address and path the UI is read.

    Args:
        flow_run_id: The run.
        artifacts: Name and artifact.
    """
    run = f"../../runs/flow-run/{flow_run_id}"
    links = [("run", run), ("log", f"{run}?tab=Logs"), ("all artifacts", f"{run}?tab=Artifacts")]
    return links + [
        (name, f"../../artifacts/artifact/{artifact.id}") for name, artifact in artifacts if artifact.id is not None
    ]
