"""The part of the Dockerfile language that the platform builds, and what it refuses."""

from __future__ import annotations

import pytest
from daytona import Image

from sandbox.local.control.dockerfile import DockerfileError, Entrypoint, Env, Run, Shell, User, Workdir, parse
from sandbox.local.control.variables import Word, expand, words


def runs(text: str) -> list[Run]:
    return [step for step in parse(text).instructions if isinstance(step, Run)]


def test_what_the_sdk_writes_can_be_read() -> None:
    image = (
        Image.debian_slim("3.12")
        .pip_install("pytest", "orjson")
        .run_commands("mkdir -p /opt/x", ["echo", "two words"])
        .env({"GREETING": "it's here", "PLAIN": "1"})
        .workdir("/opt/x")
        .entrypoint(["sleep", "infinity"])
        .cmd(["ignored"])
    )
    definition = parse(image.dockerfile())
    assert definition.image.startswith("python:3.12")
    assert [type(step).__name__ for step in definition.instructions][-3:] == ["Env", "Workdir", "Entrypoint"]
    env = [step for step in definition.instructions if isinstance(step, Env)]
    values = {name: expand(word, {}) for step in env for name, word in step.pairs}
    assert values["GREETING"] == "it's here"
    assert any(isinstance(step, Entrypoint) and step.argv == ("sleep", "infinity") for step in definition.instructions)
    assert any("mkdir -p /opt/x" in step.text for step in runs(image.dockerfile()))


def test_continued_lines_lose_comments_and_keep_their_order() -> None:
    (step,) = runs("FROM a\nRUN one && \\\n# why\n  two && \\\n\n  three\n")
    assert step.text.split() == ["one", "&&", "two", "&&", "three"]
    assert step.line == 2


def test_exec_form_is_a_list_and_shell_form_is_text() -> None:
    exec_form, shell_form, odd = runs('FROM a\nRUN ["echo", "$HOME"]\nRUN echo $HOME\nRUN [ -d /tmp ] && echo yes\n')
    assert exec_form.argv == ("echo", "$HOME")
    assert shell_form.argv is None
    assert shell_form.text == "echo $HOME"
    assert odd.argv is None


def test_here_document_as_the_whole_program() -> None:
    (step,) = runs("FROM a\nRUN <<EOF\necho one \\\n# not a comment\nFROM here\nEOF\n")
    assert step.script == "echo one \\\n# not a comment\nFROM here\n"


def test_here_documents_of_a_command_stay_with_it() -> None:
    first, second = runs(
        "FROM a\nRUN cat <<'EOF' > /a && cat <<-TWO > /b\n$x\nEOF\n\ttabbed\n\tTWO\nRUN echo $((1<<4)) <<< text\n"
    )
    assert first.script is None
    assert first.text == "cat <<'EOF' > /a && cat <<-TWO > /b\n$x\nEOF\n\ttabbed\nTWO"
    assert second.text == "echo $((1<<4)) <<< text"


def test_network_can_be_left_out_of_a_step() -> None:
    without, with_network = runs("FROM a\nRUN --network=none make test\nRUN --network=default make\n")
    assert (without.network, without.text) == (False, "make test")
    assert with_network.network


def test_values_are_expanded_as_docker_does() -> None:
    values = {"A": "1", "EMPTY": ""}
    cases = {
        "$A-${A}": "1-1",
        "${MISSING:-x y}": "x y",
        "${EMPTY:-x}${EMPTY-y}": "x",
        "${A:+set}${EMPTY:+set}${EMPTY+set}": "setset",
        "${MISSING:-${A}}": "1",
        "'$A'\"$A\"": "$A1",
        r"\$A": "$A",
        r'"a\"b\n"': r'a"b\n',
        "100%$": "100%$",
    }
    assert {text: expand(Word(text), values) for text in cases} == cases


def test_words_keep_quoted_spaces() -> None:
    assert [word.text for word in words(r'A=1  B="two words" C=three\ words')] == [
        "A=1",
        'B="two words"',
        r"C=three\ words",
    ]


def test_env_in_both_spellings() -> None:
    one, two = [
        step
        for step in parse('FROM a\nENV A=1 B="x y"\nENV C old style  value\n').instructions
        if isinstance(step, Env)
    ]
    assert [(name, expand(word, {})) for name, word in one.pairs] == [("A", "1"), ("B", "x y")]
    assert [(name, expand(word, {})) for name, word in two.pairs] == [("C", "old style  value")]


def test_other_instructions() -> None:
    text = (
        '# escape=`\nARG TAG=1\nFROM image:$TAG AS base\nSHELL ["/bin/bash", "-c"]\nUSER app\nWORKDIR /w\n'
        "LABEL a=b\nEXPOSE 80\nENTRYPOINT sleep 5\n"
    )
    definition = parse(text)
    assert definition.image == "image:1"
    kinds = [type(step) for step in definition.instructions[1:]]
    assert kinds == [Shell, User, Workdir, Entrypoint]
    assert definition.instructions[-1] == Entrypoint(9, ("sleep 5",))


@pytest.mark.parametrize(
    ("text", "line", "words_in_message"),
    [
        ("FROM a\nCOPY x y\n", 2, "COPY"),
        ("FROM a\nADD x y\n", 2, "ADD"),
        ("FROM a\n\nHEALTHCHECK NONE\n", 3, "HEALTHCHECK"),
        ("FROM a\nRUN --mount=type=cache,target=/x true\n", 2, "--mount"),
        ("FROM a\nRUN <<EOF\ntrue\n", 2, "has no end"),
        ("FROM a\nFROM b\n", 2, "second FROM"),
        ("RUN true\n", 1, "first instruction"),
        ("FROM a\nRUN\n", 2, "argument"),
        ("FROM a\nENV A\n", 2, "value"),
        ("FROM a\nENV A=1 B C=2\n", 2, "'B'"),
        ("FROM a\nARG 1A\n", 2, "name of a variable"),
        ("# only a comment\n", 1, "no FROM"),
        ("FROM a b\n", 1, "FROM must be"),
        ("FROM a\nSHELL bash\n", 2, "JSON"),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_line(text: str, line: int, words_in_message: str) -> None:
    with pytest.raises(DockerfileError) as caught:
        parse(text)
    assert caught.value.line == line
    assert words_in_message in str(caught.value)
