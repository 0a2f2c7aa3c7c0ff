"""Types and shapes of results from those of arguments, by the names of the text: also where extents are symbols, as under
torch.compile, and nothing can be compiled yet."""

import re

_name = re.compile(r"[A-Za-z_]\w*$")
_multiple = re.compile(r"(?:(\d+) \* ([A-Za-z_]\w*)|([A-Za-z_]\w*) \* (\d+))$")


def _bind(names, text, extent):
    """What a dimension says of the names in it."""
    if _name.match(text):
        names.setdefault(text, extent)
        return
    match = _multiple.match(text)
    if match:
        factor, name = (match[1], match[2]) if match[1] else (match[4], match[3])
        names.setdefault(name, extent // int(factor))


def _extent(kernel, parameter, text, names):
    """A dimension of a result; Tile divides integers as Python's // does where both are positive."""
    code = re.sub(r"(?<!/)/(?!/)", "//", text)
    try:
        return eval(code, {"__builtins__": {}, "cdiv": lambda a, b: -(-a // b), "min": min, "max": max}, names)
    except NameError as error:
        raise NotImplementedError(f"{kernel.name}: {parameter.name}: the extent {text} follows from no argument that is "
                                  f"given as a plain dimension ({error})") from None


def results(kernel, values):
    """For each `out` parameter its (shape, type): the type is the name of one of the language, or what `values` have as the
    dtype of the argument that decides it. values: of the other parameters, in order."""
    settings = {s.name: s.value for s in kernel.settings if s.value is not None}
    names, types, made = {}, dict(settings), []
    for parameter, value in zip((p for p in kernel.parameters if p.access != "out"), values):
        if parameter.access is None:
            names[parameter.name] = value
            continue
        types.setdefault(parameter.type, value.dtype)
        for text, extent in zip(parameter.dimensions, value.shape):
            _bind(names, text, extent)
    for name, text in settings.items():
        if text.lstrip("-").isdigit():
            names.setdefault(name, int(text))
    for parameter in kernel.parameters:
        if parameter.access == "out":
            made.append(([_extent(kernel, parameter, text, names) for text in parameter.dimensions],
                         parameter.dtype or types.get(parameter.type)))
    return made
