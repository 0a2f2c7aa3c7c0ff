#!/usr/bin/env python3
"""Puts faults into passes, lowerings and the launcher, and looks whether the tests that CI runs find them.

usage: mutate.py [--list] [--seed=TEXT] [--count=40] [--least=N] [--only=N,N] [--tests=REGEX] [--out=build/mutants]
  --list    only says which faults are drawn, and which were not taken, with the reason
  --seed    another draw; else the hash of the last commit, so that nobody picks the faults
  --least   how many have to be found for success (nine of ten)
  --only    only these faults of the draw
  --tests   only tests whose name (build/name) has this in it
  --out     the folder of the copy that is mutated, and of what is known so far: an interrupted run goes on from there

The sources are those of the last commit, in a copy of the repository: nothing happens to the checkout. All faults are
compiled into the two builds that CI makes (scripts/mutation_sites.py), and TILE_MUTANT=N switches one on. Each test runs
once without any, and tells which faults would have made a difference in it; then with each of those that was not found
so far, until its first failure, the short tests first. The kernel matrix is run kernel by kernel, the golden tests pass
by pass. A test that fails without a fault, as those do that read the
sources, finds none. A hang is a failure. So that a slow machine is none, the test then has to end in the same time
without a fault; short tests have to pass once more after any failure.

A fault that changes nothing is no fault, and the next is drawn. That needs a proof: the C compiler makes the same object
code of both texts, or the reason stands in tests/harmless_mutants.txt, whose lines are, with tabs between them: file and
function, operator, text, text with the fault, reason. That code is slower with a fault, not wrong, is no such reason:
what a pass decides is tested too (golden, interior, cli.explain).

Needs clang-22 for its syntax trees (scripts/install_packages.sh test), git, and what scripts/test.sh needs."""
import hashlib
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutation_sites  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILDS = ["dev", "release"]
SHORT = 60  # seconds: tests that are run again after failures, to see that it was the faults
KNOWN = {"ENVIRONMENT", "TIMEOUT", "WORKING_DIRECTORY", "PROCESSORS", "SKIP_RETURN_CODE", "COST"}
# Where nothing is known of a test's time.
GUESSES = [(r"golden\(", 8), (r"kernels\(", 50), (r"unit\.(base|lang|lowering|cpu|ptx|cuda)", 5),
           (r"unit|regressions", 15), (r"check\.|fuzz\.[pf]", 20), (r"cli\.|example", 30),
           (r"interior|guards|threads|cache", 60), (r"random|grant", 150), (r"", 300)]

RUNTIME = r"""/* One of the faults in these sources at a time: the one that TILE_MUTANT names. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#else
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wenum-compare"
#pragma GCC diagnostic ignored "-Waddress"
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wnonnull-compare"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wduplicated-branches"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#pragma GCC diagnostic ignored "-Wshift-count-overflow"
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int tile_mutant_active = -1;
static char tile_mutant_noted[4096];

/* Which faults a process met, and where one would have made a difference, in one write each: the process may be killed. */
__attribute__((unused, noinline)) static void tile_mutant_note(int id, int differs) {
    const char *path = getenv("TILE_MUTANT_TRACE");
    if (__atomic_exchange_n(&tile_mutant_noted[2 * id + differs], 1, __ATOMIC_RELAXED) || !path) return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    char line[16] = {differs ? 'd' : 'r', ' ', (char)('0' + id / 1000 % 10), (char)('0' + id / 100 % 10),
                     (char)('0' + id / 10 % 10), (char)('0' + id % 10), '\n'};
    if (file < 0 || write(file, line, 7) != 7) return;
    close(file);
}

__attribute__((unused)) static int tile_mutant(int id, int differs) {
    int active = __atomic_load_n(&tile_mutant_active, __ATOMIC_RELAXED);
    if (active < 0) {
        const char *text = getenv("TILE_MUTANT");
        active = text ? atoi(text) : 0;
        __atomic_store_n(&tile_mutant_active, active, __ATOMIC_RELAXED);
    }
    if (!active && !__atomic_load_n(&tile_mutant_noted[2 * id + differs], __ATOMIC_RELAXED))
        tile_mutant_note(id, differs);
    return active == id;
}
#define TILE_MUTANT(id, differs) tile_mutant(id, !!(differs))
"""


def die(message):
    sys.exit(f"mutate.py: {message}")


def git(*words, folder=ROOT):
    done = subprocess.run(["git", "-C", folder, *words], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        die(f"git {words[0]} has failed")
    return done.stdout.strip()


# ---- the copy ----

class Copy:
    """The repository at a commit, in a folder of its own, and its two builds."""

    def __init__(self, out, commit):
        self.root = os.path.join(out, "tree")
        if not os.path.isdir(os.path.join(self.root, ".git")):
            os.makedirs(out, exist_ok=True)
            git("clone", "-q", "--no-checkout", "--shared", ROOT, self.root)
        self.commit, self.originals = commit, {}
        git("fetch", "-q", "origin", commit, folder=self.root)
        built = os.path.exists(f"{self.root}/build/release/CMakeCache.txt")
        if not built or git("rev-parse", "HEAD", folder=self.root) != commit:
            self.clean()
        for build in BUILDS:
            self.run(build, "configuring", ["cmake", "--preset", build, "-DTILE_REQUIRE_TESTS=ON"])
        with open(f"{self.root}/build/release/compile_commands.json") as file:
            self.commands = {os.path.relpath(entry["file"], self.root): entry for entry in json.load(file)}
        self.header = os.path.join(self.root, "tile_mutant.h")
        self.write(self.header, RUNTIME.encode())

    def clean(self):
        git("checkout", "-q", "--force", "--detach", self.commit, folder=self.root)

    def write(self, path, text):
        """What is there already keeps its date, for the build."""
        path = os.path.join(self.root, path)
        if os.path.exists(path):
            with open(path, "rb") as file:
                if file.read() == text:
                    return
        with open(path, "wb") as file:
            file.write(text)

    def run(self, build, what, command):
        log = os.path.join(os.path.dirname(self.root), f"{build}.log")
        with open(log, "w") as file:
            if subprocess.run(command, cwd=self.root, stdout=file, stderr=subprocess.STDOUT).returncode:
                die(f"{what} {build} has failed: {log}")

    def read(self, path):
        if path not in self.originals:
            shown = ["git", "-C", self.root, "show", f"{self.commit}:{path}"]
            self.originals[path] = subprocess.run(shown, stdout=subprocess.PIPE, check=True).stdout
        return self.originals[path]

    def mutate(self, faults):
        """All of these, chosen when programs run; other files become what they were."""
        files = {}
        for number, site in faults.items():
            files.setdefault(site.path, []).append((number, site))
        for path in git("diff", "--name-only", folder=self.root).split():
            if path not in files:
                self.write(path, self.read(path))
        for path, sites in files.items():
            self.write(path, with_runtime(self.read(path), sites, self.header))

    def object_code(self, path, text):
        """What the release's compiler makes of another text of the file; None: it refuses."""
        entry = self.commands[path]
        words = re.sub(r" -o \S+ -c \S+$", "", entry["command"]).split()
        with tempfile.TemporaryDirectory() as folder:
            # One name for all texts, since messages of the compiler's own have it.
            source, code = os.path.join(folder, "source.c"), os.path.join(folder, "code.o")
            with open(source, "wb") as file:
                file.write(text)
            words = [re.sub(r'^(-D\w+=)\\"(.*)\\"$', r'\1"\2"', word) for word in words]
            done = subprocess.run(words + ["-frandom-seed=0", "-c", "source.c", "-o", "code.o"], cwd=folder,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode:
                return None
            with open(code, "rb") as file:
                return file.read()

    def build(self):
        for build in BUILDS:
            self.run(build, "building", ["cmake", "--build", "--preset", build])


def with_runtime(text, sites, header):
    """The text with these faults, each chosen when it runs."""
    for number, site in sorted(sites, key=lambda pair: -pair[1].begin):
        switched = site.switched.replace(mutation_sites.STANDIN, str(number)).encode()
        lines = b"\n" * (text.count(b"\n", site.begin, site.end) - switched.count(b"\n"))
        text = text[:site.begin] + switched + lines + text[site.end:]
    start = min(site.start for _, site in sites)
    line = text.count(b"\n", 0, start) + 1
    return text[:start] + f'#include "{header}"\n#line {line}\n'.encode() + text[start:]


# ---- the draw ----

def read_harmless(root):
    reasons = {}
    with open(os.path.join(root, "tests/harmless_mutants.txt")) as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 5:
                reasons[tuple(fields[:4])] = fields[4]
            elif line.strip() and not line.startswith("#"):
                die(f"tests/harmless_mutants.txt: no four tabs in: {line.strip()}")
    return reasons


class Draw:
    """An operator by lot, then one of its places; again for each that is not taken."""

    def __init__(self, copy, seed, count):
        self.copy, self.taken, self.refused = copy, [], []
        self.codes, self.harmless = {}, read_harmless(copy.root)
        self.sites = {}
        for path in mutation_sites.sources(copy.root):
            for site in mutation_sites.find_sites(copy.root, path):
                self.sites.setdefault(site.operator, []).append(site)
        self.total = sum(map(len, self.sites.values()))
        self.check_harmless()
        lots = random.Random(seed)
        operators = sorted(self.sites)
        while len(self.taken) < count:
            operator = lots.choice(operators)
            site = lots.choice(self.sites[operator])
            why = self.objection(site)
            if why:
                self.refused.append((site, why))
            else:
                self.taken.append(site)

    def check_harmless(self):
        known = {site.key() for sites in self.sites.values() for site in sites}
        for key in self.harmless:
            if key not in known:
                die(f"tests/harmless_mutants.txt has what is not in the sources: {' | '.join(key)}")

    def objection(self, site):
        for other in self.taken:
            if other.path == site.path and other.begin < site.end and site.begin < other.end:
                return "its place has a fault already"
        if site.key() in self.harmless:
            return "changes nothing: " + self.harmless[site.key()]
        text = self.copy.read(site.path)
        if site.path not in self.codes:
            self.codes[site.path] = self.copy.object_code(site.path, text)
            if self.codes[site.path] is None:
                die(f"{site.path} does not compile")
        lines = b"\n" * (text.count(b"\n", site.begin, site.end) - site.plain.count("\n"))
        plain = self.copy.object_code(site.path, text[:site.begin] + site.plain.encode() + lines + text[site.end:])
        if plain == self.codes[site.path]:
            return "changes nothing: the C compiler makes the same object code of it"
        if plain is None:
            return "does not compile, or not without warnings"
        if self.copy.object_code(site.path, with_runtime(text, [(1, site)], self.copy.header)) is None:
            return "does not compile"
        return None


def draw_once(copy, out, seed, count):
    """The draw, which takes a minute, is kept for the next time."""
    key = hashlib.sha256(f"{copy.commit} {seed} {count}".encode())
    for path in (__file__, mutation_sites.__file__):
        with open(path, "rb") as file:
            key.update(file.read())
    kept = os.path.join(out, f"draw-{key.hexdigest()[:16]}")
    if os.path.exists(kept):
        with open(kept, "rb") as file:
            taken, refused, total = pickle.load(file)
    else:
        copy.clean()
        draw = Draw(copy, seed, count)
        taken, refused, total = draw.taken, draw.refused, draw.total
        with open(kept, "wb") as file:
            pickle.dump((taken, refused, total), file)
    return taken, refused, total


def describe(number, site):
    return (f"{number:3} {site.path}:{site.line} {site.function}, {site.operator}: "
            f"{' '.join(site.original.split())}  =>  {' '.join(site.plain.split())}")


# ---- tests ----

def give_up(*_):
    raise TimeoutError


class Test:
    def __init__(self, build, entry):
        self.name, self.command = f"{build}/{entry['name']}", entry["command"]
        properties = {one["name"]: one["value"] for one in entry["properties"]}
        if set(properties) - KNOWN:
            die(f"the test {self.name} has a property that is not understood: {set(properties) - KNOWN}")
        self.environment = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
        self.limit, self.folder = properties.get("TIMEOUT", 1500), properties["WORKING_DIRECTORY"]
        self.skip = properties.get("SKIP_RETURN_CODE")

    def guess(self):
        return next(seconds for words, seconds in GUESSES if re.search(words, self.name))

    def run(self, limit, stop_early, **variables):
        """How it ended ("passed", "skipped", "failed", "hung"), its output, and the seconds it took. With stop_early a
        line that begins with FAIL is the end."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache, **self.environment, **variables}
            for name in ("TILE_MUTANT", "TILE_MUTANT_TRACE"):
                if name not in variables:
                    environment.pop(name, None)
            begin, lines, state = time.time(), [], None
            process = subprocess.Popen(self.command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            previous = signal.signal(signal.SIGALRM, give_up)
            signal.alarm(max(1, int(limit)))
            try:
                for line in process.stdout:
                    lines.append(line.decode(errors="replace").rstrip())
                    if stop_early and lines[-1].startswith("FAIL"):
                        state = "failed"
                        break
                if not state:
                    process.wait()
            except TimeoutError:
                state = "hung"
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)
            self.end(process)
            seconds = time.time() - begin
        if not state:
            state = {0: "passed", self.skip: "skipped"}.get(process.returncode, "failed")
        return state, lines, seconds

    @staticmethod
    def end(process):
        """Also what it has started and left behind."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()


def pieces_of(build, entry):
    """The kernel matrix kernel by kernel, and the golden tests pass by pass, so that a fault is tried with those in which
    it makes a difference."""
    command = entry["command"]
    program = os.path.basename(command[0])
    if program == "tile_kernel_tests" and len(command) == 3:
        with open(command[1]) as file:
            pieces = {line.split("\t")[0] for line in file if not line.startswith("#")}
        commands = {piece: command + [f"{piece} "] for piece in pieces}
    elif program == "golden_runner":
        commands = {piece: [command[0], os.path.join(command[1], piece)] for piece in os.listdir(command[1])}
    else:
        return [Test(build, entry)]
    return [Test(build, {**entry, "name": f"{entry['name']}({piece})", "command": commands[piece]})
            for piece in sorted(commands)]


def find_tests(copy):
    tests = []
    for build in BUILDS:
        shown = subprocess.run(["ctest", "--test-dir", f"{copy.root}/build/{build}", "--show-only=json-v1"],
                               stdout=subprocess.PIPE, check=True)
        for entry in json.loads(shown.stdout)["tests"]:
            tests += pieces_of(build, entry)
    return tests


# ---- the campaign ----

class Campaign:
    def __init__(self, copy, out, sites, only):
        self.copy, self.sites = copy, {i + 1: site for i, site in enumerate(sites)}
        self.only = only or set(self.sites)
        self.path = os.path.join(out, "results.json")
        key = [copy.commit, [site.key() for site in sites]]
        self.key = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        self.state = {"key": self.key, "tests": {}, "found": {}, "passed": {}}
        if os.path.exists(self.path):
            with open(self.path) as file:
                before = json.load(file)
            if before["key"] == self.key:
                self.state = before
            else:  # the times are still good to know
                self.state["times"] = {**before.get("times", {}),
                                       **{name: one["seconds"] for name, one in before["tests"].items()}}

    def save(self):
        with open(self.path + ".new", "w") as file:
            json.dump(self.state, file, indent=1)
        os.replace(self.path + ".new", self.path)

    def alive(self):
        return [i for i in sorted(self.only) if str(i) not in self.state["found"]]

    def baseline(self, test):
        """Runs the test without a fault, once: which ones it meets, and which would have made a difference."""
        known = self.state["tests"].get(test.name)
        if known:
            return known
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            state, lines, seconds = test.run(4 * test.limit, False, TILE_MUTANT_TRACE=trace)
            met = {"r": set(), "d": set()}
            if os.path.exists(trace):
                with open(trace) as file:
                    for line in file:
                        met[line[0]].add(int(line[2:]))
        known = {"state": state, "seconds": round(seconds, 1), "differs": sorted(met["d"]),
                 "reached": sorted(met["r"] | met["d"]), "says_fail": any(x.startswith("FAIL") for x in lines)}
        self.state["tests"][test.name] = known
        self.save()
        note = "" if state == "passed" else f" ({state} without a fault: {(lines or [''])[-1][:150]})"
        print(f"{test.name}: {seconds:.0f} s, meets {len(known['reached'])} faults, {len(known['differs'])} differ{note}")
        return known

    def try_fault(self, test, number, known):
        """How the test ends with the fault, and what it says."""
        state, lines, seconds = test.run(self.limit(known), not known["says_fail"], TILE_MUTANT=str(number),
                                         CRITERION_FAIL_FAST="1")
        telling = [x for x in lines if re.search(r"FAIL|rror|\[----\]", x)] or lines or ["(no output)"]
        says = "no end" if state == "hung" else telling[0].strip()[:200]
        return {"test": test.name, "state": state, "seconds": round(seconds, 1), "says": says}

    @staticmethod
    def limit(known):
        return max(60, 5 * known["seconds"])

    def try_test(self, test, known):
        """The faults that the test finds. So that nothing else makes it fail, it has to pass without them afterwards."""
        passed, found = self.state["passed"].setdefault(test.name, []), {}
        for number in self.alive():
            if number not in known["differs"] or number in passed:
                continue
            ended = self.try_fault(test, number, known)
            if ended["state"] in ("passed", "skipped"):
                passed.append(number)
            else:
                found[number] = ended
                print(f"  {test.name} finds {number} in {ended['seconds']:.0f} s: {ended['says']}")
            self.save()
        hung = any(ended["state"] == "hung" for ended in found.values())
        if found and (hung or known["seconds"] <= SHORT):
            again = test.run(self.limit(known), False)[0]
            if again != "passed":
                print(f"  but then it has {again} without any fault: that says nothing")
                return
        self.state["found"].update({str(number): ended for number, ended in found.items()})
        self.save()

    def run(self, tests):
        times = self.state.get("times", {})

        def seconds(test):
            known = self.state["tests"].get(test.name)
            return known["seconds"] if known else times.get(test.name, test.guess())

        for test in sorted(tests, key=lambda test: (seconds(test), test.name)):
            if not self.alive():
                break
            known = self.baseline(test)
            if known["state"] == "passed":
                self.try_test(test, known)


def emitted(copy, number, instance):
    """Machine form of a kernel, the fault being there."""
    done = subprocess.run(["build/release/bin/tilec", "emit", "machine", *instance], cwd=copy.root,
                          env={**os.environ, "TILE_MUTANT": str(number), "TILE_CACHE_DIR": ""}, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return hashlib.sha256(done.stdout).hexdigest()


def instances(copy):
    script = """. tests/instances.sh
    for file in stdlib/*.tile tests/programs/*.tile examples/*/*.tile; do for kernel in $(kernels_of $file); do
    echo $file:$kernel $(instance $file $kernel f32); done; done"""
    listed = subprocess.run(["sh", "-c", script], cwd=copy.root, stdout=subprocess.PIPE, text=True, check=True)
    for line in listed.stdout.splitlines():
        for target in ("avx2", "avx512", "sve", "sm_80", "sm_90a"):
            yield line.split() + [f"--target={target}"]


def what_it_changes(copy, number, reference):
    for instance in instances(copy):
        word = " ".join(instance)
        if word not in reference:
            reference[word] = emitted(copy, 0, instance)
        try:
            if emitted(copy, number, instance) != reference[word]:
                return f"other code for {word}"
        except subprocess.TimeoutExpired:
            return f"no end with {word}"
    return f"the same machine form in {len(reference)} instances of kernels"


def report(campaign, refused, total, least):
    met = {number: [0, 0] for number in campaign.sites}
    for known in campaign.state["tests"].values():
        for number in known["reached"]:
            met[number][0] += 1
        for number in known["differs"]:
            met[number][1] += 1
    print()
    reference = {}
    for number in sorted(campaign.only):
        found = campaign.state["found"].get(str(number))
        print(f"{'found   ' if found else 'SURVIVED'} {describe(number, campaign.sites[number])}")
        if found:
            print(f"             {found['test']}: {found['says']}")
        else:
            print(f"             {met[number][0]} tests meet it, it would differ in {met[number][1]}; "
                  f"{what_it_changes(campaign.copy, number, reference)}")
    say_refused(refused)
    found = len(campaign.only) - len(campaign.alive())
    harmless = sum(why.startswith("changes nothing") for _, why in refused)
    print(f"mutants: {found} of {len(campaign.only)} faults found, at least {least} have to be; "
          f"{harmless} that change nothing were replaced; {total} could have been drawn")
    return found >= least


def say_refused(refused):
    for site, why in refused:
        print(f"replaced {describe(0, site)[4:]}\n             {why}")


def options_of(words):
    options = {"seed": None, "count": "40", "least": None, "only": "", "tests": "", "out": "build/mutants", "list": None}
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in options or (name == "list") != ("=" not in word):
            sys.exit(__doc__)
        options[name] = value or "yes"
    return options


def main():
    options = options_of(sys.argv[1:])
    sys.setrecursionlimit(10000)
    commit = git("rev-parse", "HEAD")
    out = os.path.abspath(os.path.join(ROOT, options["out"]))
    copy = Copy(out, commit)
    seed = options["seed"] or commit
    taken, refused, total = draw_once(copy, out, seed, int(options["count"]))
    sys.stdout.reconfigure(line_buffering=True)
    print(f"{len(taken)} faults of {total}, seed {seed}:")
    for number, site in enumerate(taken, 1):
        print(describe(number, site))
    if options["list"]:
        say_refused(refused)
        return 0
    only = {int(number) for number in options["only"].split(",") if number}
    campaign = Campaign(copy, out, taken, only)
    least = int(options["least"] or len(campaign.only) * 9 // 10)
    copy.mutate(campaign.sites)
    copy.build()
    tests = [test for test in find_tests(copy) if re.search(options["tests"], test.name)]
    campaign.run(tests)
    return 0 if report(campaign, refused, total, least) else 1


if __name__ == "__main__":
    sys.exit(main())
