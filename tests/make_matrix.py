#!/usr/bin/env python3
"""Writes matrix.tsv: for each kernel a set of configurations in which every pair of values of two factors occurs
(types, sizes, views, data, placement, tune constants), and each configuration on every target. Machine code for SVE
runs under an emulator, which is slow: every eighth configuration. So is the executor on the threads of a GPU's blocks:
it gets small sizes. The target cuda, which needs a GPU, gets every third configuration. Most of the time goes into
generating machine code, and AVX2 and AVX-512 share all but its last step: they take the configurations in turn,
and both get those in which a value occurs that one of them would not have otherwise.

usage: make_matrix.py [SEED [EVERY]] > matrix.tsv     with a seed, other configurations, each on AVX2 and on AVX-512;
                                                      SVE code for every EVERYth
"""
import itertools
import random
import sys

from matrix_forms import FORMS
from matrix_kernels import KERNELS, LARGE, VECTOR_BITS
from matrix_programs import EXAMPLES, PROGRAMS


def pairs(configuration):
    return {pair for pair in itertools.combinations(sorted(configuration.items(), key=lambda item: item[0]), 2)}


def configurations(kernel, rng):
    """Greedily: of some random configurations, each holding a pair not seen yet, the one with the most new pairs."""
    factors = kernel.factors()
    missing = set()
    for (a, values_a), (b, values_b) in itertools.combinations(sorted(factors.items()), 2):
        missing |= {((a, u), (b, v)) for u in values_a for v in values_b}
    unseen = {(name, value) for name, values in factors.items() for value in values}
    made = 0
    while missing and (kernel.budget is None or made < kernel.budget or unseen):
        best, gain = None, 0
        seeds = sorted(missing, key=str)
        for _ in range(60):
            candidate = {name: rng.choice(values) for name, values in factors.items()}
            candidate.update(dict(rng.choice(seeds)))
            new = len(pairs(candidate) & missing) if kernel.keep(kernel.sizes(candidate)) else 0
            if kernel.budget is not None and new:
                new += 100 * len(set(candidate.items()) & unseen)
            if new > gain:
                best, gain = candidate, new
        if best is None:  # what is left contradicts `keep`
            return
        missing -= pairs(best)
        unseen -= set(best.items())
        made += 1
        yield best


EMULATED = 4  # rows of each kernel and type
EMULATED_ELEMENTS = 30000
SLOW = ("matmul", "attention", "conv", "pool")  # what their default tiles cost does not depend on the sizes


def is_emulated(kernel, sizes, tune):
    """Is the executor done with the threads of all blocks in about a second?"""
    elements = 1
    for setting in sizes.split():
        size = int(setting.split("=")[1])
        elements *= size if 0 < size < LARGE else 1
    return elements <= EMULATED_ELEMENTS and not (tune == "-" and kernel.name.split(":")[0] in SLOW)


def emulated_numbers(kernel, chosen):
    """Configurations for the executor, from all over the list."""
    possible = [number for number, (sizes, _, _, _, tune) in enumerate(chosen) if is_emulated(kernel, sizes, tune)]
    step = max(1, -(-len(possible) // EMULATED))
    return set(possible[::step])


def native_targets(kernel, chosen):
    """Of each configuration the targets of its machine code: the one that has had fewest of its values, alternately where
    both had as many; and the other one if it would have a value nowhere else."""
    had = {"avx2": set(), "avx512": set()}
    values = {(types, number): {types, tune, data, placement, *sizes.split(), *views.split()}
              for types in kernel.types
              for number, (sizes, views, data, placement, tune) in enumerate(chosen[types])}
    targets = {}
    for key, own in values.items():
        first = ["avx2", "avx512"][len(targets) % 2]
        turn = max(had, key=lambda target: (len(own - had[target]), target == first))
        had[turn] |= own
        targets[key] = [turn]
    for key, own in values.items():
        for target in had.keys() - targets[key]:
            if own - had[target]:
                had[target] |= own
                targets[key] = ["avx2", "avx512"]
    return targets


def rows(kernel, seed, guest_every):
    rng = random.Random(kernel.name + seed)
    chosen = {}
    for configuration in configurations(kernel, rng):
        sizes = " ".join(f"{name}={size}" for name, size in kernel.sizes(configuration).items())
        views = " ".join(f"{tensor}={configuration['view ' + tensor]}" for tensor, _ in kernel.tensors)
        chosen.setdefault(configuration["types"], []).append(
            (sizes, views, configuration["data"], configuration["placement"], configuration["tune"]))
    chosen = {types: list(dict.fromkeys(chosen[types])) for types in kernel.types}
    native = native_targets(kernel, chosen)
    runs = 0
    guests = len(kernel.name)  # vector lengths in turn, beginning with another one for each kernel
    for types in kernel.types:
        emulated = emulated_numbers(kernel, chosen[types])
        for number, (sizes, views, data, placement, tune) in enumerate(chosen[types]):
            targets = ["interp", ["machine.avx2", "machine.avx512"][number % 2]]
            targets += ["avx2", "avx512"] if seed else native[types, number]
            targets.append(f"machine.sve.{VECTOR_BITS[number % 4]}")
            if number % guest_every == guest_every - 1:
                targets.append(f"sve.{VECTOR_BITS[guests % 4]}")
                guests += 1
            if number in emulated:
                targets.append("machine." + kernel.gpus[runs % len(kernel.gpus)])
                runs += 1
            targets += ["cuda"] if number % 3 == 0 else []
            if kernel.is_by_words(types):
                name = ["amx", "avx512bf16", "avx512vnni"][number % 3]
                targets += ["machine." + name, name]
            for target in targets:
                yield "\t".join([kernel.name, types, target, sizes, views, data, placement, tune])


def main():
    print("# Made by make_matrix.py; fields are separated by tabs.")
    print("# kernel\ttypes\ttarget\tsizes\tviews\tdata\tplacement\ttune")
    seed = sys.argv[1] if len(sys.argv) > 1 else ""
    guest_every = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    for kernel in KERNELS + EXAMPLES + PROGRAMS + FORMS:
        for row in rows(kernel, seed, guest_every):
            print(row)


if __name__ == "__main__":
    main()
