"""Makes the table and the plot of scripts/latency.sh.

usage: latency_table.py TILE TORCH PLOT.svg     (TORCH: "-" where there is none)"""
import sys

NS = [1, 5, 10, 15, 20, 25, 30]
COLOURS = ["#d62728", "#ff7f0e", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b"]


def read(tile, torch):
    """Microseconds by column name and N, and compiles of Tile by N."""
    columns, compiles = {}, {}
    for line in open(tile):
        n, kind, time, count = line.split()[:4]
        columns.setdefault("Tile, " + kind, {})[int(n)] = float(time)
        compiles[(int(n), kind)] = int(count)
    for line in open(torch) if torch != "-" else []:
        peer, n, kind, time = line.split()
        columns.setdefault("PyTorch %s, %s" % (peer.replace("-", " "), kind), {})[int(n)] = float(time)
    return columns, compiles


def table(columns, compiles):
    names = list(columns)
    print("| N | " + " | ".join(names) + " | compiles, varying |")
    print("|---" * (len(names) + 2) + "|")
    for n in NS:
        cells = ["%.2f" % columns[name][n] if n in columns[name] else "" for name in names]
        print("| %d | %s | %s |" % (n, " | ".join(cells), compiles.get((n, "varying"), "")))


def plot(columns, path):
    """Microseconds a call on a logarithmic axis over N."""
    width, height, left, bottom = 680, 400, 60, 350
    low, high = 0.1, 1000.0
    import math
    x = lambda n: left + (n - NS[0]) / (NS[-1] - NS[0]) * 360
    y = lambda t: bottom - (math.log10(min(max(t, low), high)) + 1) / 4 * 310
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">'
           % (width, height), '<rect width="100%" height="100%" fill="white"/>']
    for power in range(-1, 4):
        at = y(10.0 ** power)
        out.append('<line x1="%d" y1="%.1f" x2="420" y2="%.1f" stroke="#ddd"/>' % (left, at, at))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (left - 6, at + 4, 10.0 ** power))
    for n in NS:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (x(n), bottom + 18, n))
    out.append('<text x="240" y="385" text-anchor="middle">N: elementwise statements, then a sum</text>')
    out.append('<text x="16" y="195" text-anchor="middle" transform="rotate(-90 16 195)">microseconds a call</text>')
    for i, (name, times) in enumerate(columns.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join("%.1f,%.1f" % (x(n), y(times[n])) for n in NS if n in times)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (points, colour))
        out.append('<line x1="430" y1="%d" x2="450" y2="%d" stroke="%s" stroke-width="2"/>'
                   % (50 + 20 * i, 50 + 20 * i, colour))
        out.append('<text x="456" y="%d">%s</text>' % (54 + 20 * i, name))
    out.append("</svg>\n")
    with open(path, "w") as file:
        file.write("\n".join(out))


if __name__ == "__main__":
    found, counts = read(sys.argv[1], sys.argv[2])
    table(found, counts)
    plot(found, sys.argv[3])
