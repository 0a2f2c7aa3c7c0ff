"""Exceptions. Messages are those of the compiler and the launcher; attributes say the same for programs."""

STATUS = ("OK", "INVALID_ARGUMENT", "INVALID_SOURCE", "UNSUPPORTED", "NOT_FOUND", "IO", "OUT_OF_MEMORY", "UNAVAILABLE",
          "DRIVER", "BACKEND", "INTERNAL")


class Error(Exception):
    """Base of all exceptions of this package. `status` is the C API's, as "UNAVAILABLE"."""

    status = None


class CompileError(Error, SyntaxError):
    """The text of a kernel has errors. `filename`, `lineno`, `offset` and `text` are those of the first one, as Python
    shows those of a SyntaxError; `diagnostics` has all of them as dictionaries, `report` the whole text for people."""

    diagnostics = ()
    report = ""


class ArgumentError(Error, ValueError):
    """An argument does not fit. `argument` is its name (None: it is about no single one), `index` its place in the
    signature, `code` what is wrong, as "RANK", and `kernel` the kernel."""

    kernel = argument = index = code = None


class SettingError(Error, ValueError):
    """A generic, constant or tune value does not fit, or there is none of that name."""


def _first(diagnostics):
    errors = [d for d in diagnostics if d.get("severity") == "error"]
    return errors[0] if errors else {}


def make_compile_error(kernel, status, json_text, text, said=None):
    """The exception for a report: of the compiler, or of a launch, which has said something."""
    import json

    diagnostics = json.loads(json_text)
    first = _first(diagnostics)
    message = first.get("message") or text.strip()
    if message.startswith("error: "):
        message = message[7:]
    if STATUS[status] == "INVALID_ARGUMENT" and kernel is not None and first.get("code") != "wrong-binding":
        error = Error(said)  # an assertion, for instance
    elif STATUS[status] == "INVALID_ARGUMENT":
        error = SettingError(message)
    elif STATUS[status] != "INVALID_SOURCE":
        error = Error(message)
    elif first.get("line"):
        line = None if kernel is None else source_line(kernel.module.source, first["line"])
        error = CompileError(message, (first.get("file"), first["line"], first.get("column"), line))
    else:
        error = CompileError(message)
    error.status = STATUS[status]
    error.diagnostics = diagnostics
    error.report = text
    return error


def source_line(source, number):
    """A line of a text, from 1; None past its end."""
    lines = source.splitlines()
    return lines[number - 1] if number <= len(lines) else None


def make_argument_error(kernel, message, index, code):
    error = ArgumentError(message)
    error.status = "INVALID_ARGUMENT"
    error.kernel, error.code = kernel, code
    if index >= 0:
        error.index = index
        error.argument = kernel.parameters[index].name
    return error


def make_status_error(status, message):
    error = Error(message)
    error.status = STATUS[status]
    return error
