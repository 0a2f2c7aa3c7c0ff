"""Prints ncu's raw table of scripts/gpu_profile.sh, a line for each grid. usage: profile_table.py FILE"""
import csv
import sys

COLUMNS = {
    "us": "gpu__time_duration", "tensor": "sm__pipe_tensor_cycles_active", "xu": "sm__inst_executed_pipe_xu",
    "fma": "sm__inst_executed_pipe_fma", "alu": "sm__inst_executed_pipe_alu", "issue": "smsp__issue_active", "shared": "l1tex__data_pipe_lsu",
    "L2": "lts__throughput", "memory": "dram__throughput", "active": "sm__cycles_active", "elapsed": "sm__cycles_elapsed", "registers": "launch__registers",
    "blocks": "launch__grid_size",
}
MICROSECONDS = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6}


def main(path):
    lines = [line for line in open(path, encoding="utf-8", errors="replace") if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    units, rows = rows[0], rows[1:]
    names = {column: next((name for name in units if name.startswith(start)), None) for column, start in COLUMNS.items()}
    shown = [column for column in COLUMNS if names[column] and column not in ("active", "elapsed")]
    print("".join(f"{column:>14}" for column in [*shown, "at work"]), " grid")
    for row in rows:
        def value(column):
            return float(row[names[column]].replace(",", "")) if names[column] else 0.0
        numbers = [value(column) * (MICROSECONDS.get(units[names[column]], 1) if column == "us" else 1) for column in shown]
        work = 100 * value("active") / max(value("elapsed"), 1)
        print("".join(f"{number:14.1f}" for number in [*numbers, work]), "", row["Kernel Name"])


if __name__ == "__main__":
    main(sys.argv[1])
