#!/usr/bin/env python3
"""Milliseconds from text to PTX in a warm process, by libtile's tile_emit_stage: the median and the least of many
compilations of each instance, which take turns so that seconds in which the processor is slower fall on all of them; the
first turn, which also starts LLVM, does not count. One thread; no GPU is needed.

usage: compile_time.py [--library=PATH] [--stdlib=DIR] [--target=NAME] [--repeat=N]
"""
import argparse
import ctypes
import statistics
import time

import tile_api as api

BF16 = {"T": "bf16"}
KERNELS = [("softmax", "softmax", {"T": "f32"}), ("softmax", "softmax_row", {"T": "f32", "N": 4096}),
           ("softmax", "softmax_wide", BF16), ("matmul", "matmul", {"T": "bf16", "U": "bf16"}),
           ("attention", "attention", {**BF16, "D": 128, "causal": "false"}),
           ("attention", "attention", {**BF16, "D": 128, "causal": "true"}),
           ("elementwise", "map", {"T": "f32", "f": "chain30_approx"})]


def stage_number(library, name):
    number = 0
    while library.tile_stage_name(number) != name:
        number += 1
    return number


def compile_once(library, compiler, text, options, emit):
    output, report = ctypes.c_char_p(), ctypes.c_void_p()
    begin = time.perf_counter()
    status = library.tile_emit_stage(compiler, text, ctypes.c_size_t(len(text)), ctypes.byref(options),
                                     ctypes.byref(emit), ctypes.byref(output), ctypes.byref(report))
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(library.tile_report_text(report, False).decode() or f"status {status}")
    library.tile_report_destroy(report)
    library.tile_string_destroy(output)
    return 1e3 * seconds


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--library", default="build/release/lib/libtile.so")
    parser.add_argument("--stdlib", default="stdlib")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--repeat", type=int, default=15)
    given = parser.parse_args()
    library = api.open_library(given.library)
    compiler, stage = api.create_compiler(library), stage_number(library, b"ptx")
    instances, texts = [], []
    for file, kernel, values in KERNELS:
        path = f"{given.stdlib}/{file}.tile"
        options = api.compile_options(given.target, values)
        options.file = path.encode()
        emit = api.EmitOptions(struct_size=ctypes.sizeof(api.EmitOptions), stage=stage, kernel=kernel.encode())
        with open(path, "rb") as source:
            texts.append(source.read())
        instances.append((options, emit))
    turns = [[compile_once(library, compiler, text, options, emit) for text, (options, emit) in zip(texts, instances)]
             for _ in range(given.repeat + 1)][1:]
    print(f"{'text to PTX for ' + given.target + ', warm process':52} {'median':>8} {'least':>8}")
    for (_, kernel, values), times in zip(KERNELS, zip(*turns)):
        title = f"{kernel} " + " ".join(f"{name}={value}" for name, value in values.items())
        print(f"{title:52} {statistics.median(times):5.1f} ms {min(times):5.1f} ms")


if __name__ == "__main__":
    main()
