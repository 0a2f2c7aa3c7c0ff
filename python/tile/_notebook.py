"""How kernels, modules and measurements show themselves in notebooks, and the cell magic %%tile."""

import html
import math

_STYLE = "font-family:monospace;white-space:pre;text-align:left"


def _table(rows, head):
    cells = "".join(f"<th style='text-align:left'>{html.escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td style='{_STYLE}'>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
                   for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def kernel_html(kernel):
    parts = [f"<div style='{_STYLE}'><b>{html.escape(kernel.signature)}</b></div>"]
    if kernel.doc:
        parts.append(f"<div>{html.escape(kernel.doc)}</div>")
    rows = [(p.name, p.access or "scalar", p.type + (f"[{', '.join(p.dimensions)}]" if p.access else ""))
            for p in kernel.parameters]
    parts.append(_table(rows, ("parameter", "", "type")))
    if kernel.settings:
        rows = [(s.name, s.kind, s.value or s.allowed or s.default or "") for s in kernel.settings]
        parts.append(_table(rows, ("setting", "", "value or choice")))
    return "".join(parts)


def module_html(module):
    rows = [(kernel.signature, kernel.doc.strip().partition("\n")[0]) for kernel in module.kernels.values()]
    return _table(rows, (module.file or "kernels", ""))


def _text(x, y, text, anchor="start"):
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{html.escape(text)}</text>"


def roofline_svg(result):
    """Rate over operations per byte, both logarithmic, where operations are known; else a bar beside that of copying."""
    if not result.flops:
        share = min(result.rate / result.copy_rate, 2)
        return ("<svg xmlns='http://www.w3.org/2000/svg' width='460' height='70' font-family='sans-serif' font-size='12'>"
                f"<rect x='130' y='8' width='{140 * share:.1f}' height='18' fill='#4477aa'/>"
                "<rect x='130' y='38' width='140' height='18' fill='#bbbbbb'/>"
                + _text(120, 22, result.kernel.name, "end") + _text(120, 52, "copying", "end")
                + _text(136 + 140 * share, 22, f"{result.rate * 1e-9:.1f} GB/s")
                + _text(276, 52, f"{result.copy_rate * 1e-9:.1f} GB/s") + "</svg>")
    intensity, ridge = result.flops / result.bytes, result.peak / result.copy_rate
    low, high = min(intensity, ridge) / 8, max(intensity, ridge) * 8
    top, bottom = result.peak * 4, min(result.flop_rate, low * result.copy_rate) / 4
    x = lambda v: 60 + 360 * math.log(v / low) / math.log(high / low)
    y = lambda v: 230 - 200 * math.log(v / bottom) / math.log(top / bottom)
    line = f"{x(low):.1f},{y(low * result.copy_rate):.1f} {x(ridge):.1f},{y(result.peak):.1f} {x(high):.1f},{y(result.peak):.1f}"
    return ("<svg xmlns='http://www.w3.org/2000/svg' width='460' height='270' font-family='sans-serif' font-size='12'>"
            "<rect x='60' y='30' width='360' height='200' fill='none' stroke='#888888'/>"
            f"<polyline points='{line}' fill='none' stroke='#bb5566' stroke-width='2'/>"
            f"<circle cx='{x(intensity):.1f}' cy='{y(result.flop_rate):.1f}' r='5' fill='#4477aa'/>"
            + _text(x(intensity) + 8, y(result.flop_rate) + 14, f"{result.kernel.name}: {result.flop_rate * 1e-9:.1f} GFLOP/s")
            + _text(x(ridge), y(result.peak) - 6, f"{result.peak * 1e-9:.0f} GFLOP/s")
            + _text(64, 245, f"{low:.2g}") + _text(420, 245, f"{high:.3g} operations a byte", "end")
            + _text(64, 46, f"copying {result.copy_rate * 1e-9:.1f} GB/s") + "</svg>")


def install(shell):
    """Adds %%tile to an IPython shell."""

    def tile_cell(line, cell):
        """%%tile [NAME] [SETTING=VALUE ..]: compiles the cell; NAME (else `kernels`) is then the module."""
        import tile

        words = line.split()
        name = words.pop(0) if words and "=" not in words[0] else "kernels"
        settings = dict(word.split("=", 1) for word in words)
        module = tile.compile(cell, file=f"<%%tile {name}>", **settings)
        shell.user_ns[name] = module
        return module

    shell.register_magic_function(tile_cell, "cell", "tile")
