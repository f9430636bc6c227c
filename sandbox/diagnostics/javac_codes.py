"""The resource keys of javac's frequent errors, found by their English texts.

javac prints texts only; the keys are those of its message resources (``-XDrawDiagnostics`` prints them, JDK 25). Keys
that differ only in which details follow share the shortest one.
"""

from __future__ import annotations

import re
from typing import Final

_TEXTS: Final = {
    "cannot find symbol": "cant.resolve",
    "package .+ does not exist": "doesnt.exist",
    "incompatible types: .+": "prob.found.req",
    "incomparable types: .+": "incomparable.types",
    "bad operand types? .+ operator .+": "operator.cant.be.applied",
    ".+ cannot be applied to given types;": "cant.apply.symbol",
    "no suitable .+ found for .+": "cant.apply.symbols",
    "cannot infer type arguments for .+": "cant.apply.diamond",
    "cannot infer type for local variable .+": "cant.infer.local.var.type",
    "reference to .+ is ambiguous": "ref.ambiguous",
    "unreported exception .+; must be caught or declared to be thrown": "unreported.exception.need.to.catch.or.throw",
    "exception .+ is never thrown in body of corresponding try statement": "except.never.thrown.in.try",
    "exception .+ has already been caught": "except.already.caught",
    ".+ is not abstract and does not override abstract method .+": "does.not.override.abstract",
    ".+ is abstract; cannot be instantiated": "abstract.cant.be.instantiated",
    "method does not override or implement a method from a supertype": "method.does.not.override.superclass",
    "non-static .+ cannot be referenced from a static context": "non-static.cant.be.ref",
    "local variables referenced from .+ must be final or effectively final": "cant.ref.non.effectively.final.var",
    "cannot assign a value to .+ variable .+": "cant.assign.val.to.var",
    "variable .+ might not have been initialized": "var.might.not.have.been.initialized",
    "variable .+ might already have been assigned": "var.might.already.be.assigned",
    ".+ is already defined in this compilation unit": "already.defined.this.unit",
    ".+ is already defined in .+": "already.defined",
    "duplicate class: .+": "duplicate.class",
    ".+ is public, should be declared in a file named .+": "class.public.should.be.in.file",
    ".+ has (?:private|protected) access in .+": "report.access",
    ".+ is not public in .+": "not.def.public",
    ".+ cannot be dereferenced": "cant.deref",
    "array required, but .+ found": "array.req.but.found",
    "missing return statement": "missing.ret.stmt",
    "unreachable statement": "unreachable.stmt",
    "not a statement": "not.stmt",
    "illegal start of expression": "illegal.start.of.expr",
    "variable declaration not allowed here": "variable.not.allowed",
    "illegal start of type": "illegal.start.of.type",
    "illegal character: .+": "illegal.char",
    "unmappable character .+ for encoding .+": "illegal.char.for.encoding",
    "invalid method declaration; return type required": "invalid.meth.decl.ret.type.req",
    "class, interface, enum, or record expected": "expected4",
    "reached end of file while parsing": "premature.eof",
    "unclosed string literal": "unclosed.str.lit",
    "unclosed character literal": "unclosed.char.lit",
    "unclosed comment": "unclosed.comment",
    "orphaned .+": "orphaned",
    "'else' without 'if'": "else.without.if",
    "the switch expression does not cover all possible input values": "not.exhaustive",
    "the switch statement does not cover all possible input values": "not.exhaustive.statement",
    "wrong number of type arguments; required .+": "wrong.number.type.args",
    ".+ (?:is a|are) preview features? and (?:is|are) disabled by default\\.": "preview.feature.disabled",
    "cannot inherit from final .+": "cant.inherit.from.final",
    "no source files": "no.source.files",
    "[^,]+, [^,]+, [^,]+, or .+ expected": "expected4",
    "[^,]+, [^,]+, or .+ expected": "expected3",
    ".+ or .+ expected": "expected2",
    ".+ expected": "expected",
}
_PATTERNS: Final = tuple((re.compile(text), f"compiler.err.{key}") for text, key in _TEXTS.items())


def code_of(message: str) -> str | None:
    """Returns javac's key for the first line of an error, ``None`` for a text not known here."""
    return next((key for pattern, key in _PATTERNS if pattern.fullmatch(message)), None)
