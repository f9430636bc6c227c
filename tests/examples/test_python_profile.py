"""What a caller of the python profile may send, and what comes back."""

from __future__ import annotations

from sandbox.models import Outcome, ValidationRequest, ValidationResult
from tests.examples.workbench import Workbench

TEXT = "žluťoučký 日本語 😀"


async def python(workbench: Workbench, files: dict[str, str | bytes], **fields: object) -> ValidationResult:
    return await workbench.validate(ValidationRequest.model_validate({"profile": "python", "files": files, **fields}))


async def test_text_of_every_script_survives_source_output_file_and_name(workbench: Workbench) -> None:
    source = f"""
import json, os, pathlib
print("{TEXT}")
pathlib.Path("{TEXT}.txt").write_text("{TEXT}")
print([path.name for path in pathlib.Path(".").glob("*.txt")])
json.dump({{"text": "{TEXT}"}}, open(os.environ["UOM_RESULT_FILE"], "w"), ensure_ascii=False)
"""
    result = await python(workbench, {"main.py": source})
    assert result.outcome is Outcome.PASSED, result.message
    assert result.phases[-1].stdout.text == f"{TEXT}\n['{TEXT}.txt']\n"
    assert result.result == {"text": TEXT}


async def test_modules_beside_the_program_are_imported(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "app/main.py": "from shop.orders import total\nprint(total([1, 2]))",
        "app/shop/orders.py": "def total(lines):\n    return sum(lines)",
    }
    result = await python(workbench, files, entry_point="app/main.py")
    assert result.phases[-1].stdout.text == "3\n", result.message


async def test_every_broken_source_is_told_before_anything_runs(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "main.py": 'print("must not run")\n',
        "shop/a.py": "def f(:\n    pass\n",
        "shop/b.py": "if True:\nprint(1)\n",
        "shop/c.py": b"x = '\xff'\n",
        "shop/d.py": b"x = 1\x00\n",
    }
    result = await python(workbench, files, entry_point="main.py")
    assert result.outcome is Outcome.COMPILE_ERROR
    assert [phase.name for phase in result.phases] == ["build"]
    assert [(found.path, found.code) for found in result.diagnostics] == [
        ("shop/a.py", "SyntaxError"),
        ("shop/b.py", "IndentationError"),
        ("shop/c.py", "SyntaxError"),
        ("shop/d.py", "SyntaxError"),
    ]
    assert result.diagnostics[0].line == 1
    assert result.diagnostics[1].excerpt == "print(1)"


async def test_output_is_live_although_it_goes_to_a_pipe(workbench: Workbench) -> None:
    source = 'import os\nprint("before the end")\nos._exit(0)\n'
    result = await python(workbench, {"main.py": source})
    assert result.phases[-1].stdout.text == "before the end\n"
