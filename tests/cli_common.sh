# Read by tests/cli/*.sh: a temporary directory $work, and commands that say what they expect.
set -u
tilec=${TILEC:?names the compiler}
source_directory=${TILE_SOURCE_DIR:?names the source tree}
stdlib=$source_directory/stdlib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
checks=0

complain() {
    failed=$((failed + 1))
    echo "FAIL $1"
    sed 's/^/     /' "$work/output"
}

# expect STATUS 'text' COMMAND..: the command ends with STATUS (0: success, 1: user, 2: environment) and prints the text.
expect() {
    wanted=$1
    text=$2
    shift 2
    checks=$((checks + 1))
    "$@" >"$work/output" 2>&1
    got=$?
    [ $got = "$wanted" ] || { complain "status $got instead of $wanted: $*"; return; }
    [ -z "$text" ] || grep -qF -e "$text" "$work/output" || complain "no '$text' in what this prints: $*"
}

# absent FILE: it does not exist, nor is there a partial file in its directory.
absent() {
    checks=$((checks + 1))
    ls -A "$(dirname "$1")" 2>/dev/null >"$work/output"
    [ ! -e "$1" ] || complain "$1 exists"
    grep -q "^\.\{0,1\}$(basename "$1")" "$work/output" && complain "something of $1 is left behind"
    return 0
}

# fake CONFIGURATION COMMAND..: the command finds the CUDA driver of tests/gpu/fake, with these devices.
fake() {
    FAKE_CUDA=$1 LD_LIBRARY_PATH=$TILE_FAKE_CUDA
    export FAKE_CUDA LD_LIBRARY_PATH
    shift
    "$@"
    status=$?
    unset FAKE_CUDA LD_LIBRARY_PATH
    return $status
}

finish() {
    echo "$checks checks, $failed failed"
    [ $failed = 0 ]
}

# kernel_of_two_grids: its text.
kernel_of_two_grids() {
    cat <<'TEXT'

/// Two grids and a temporary.
kernel centred(x: in f32[M, N], y: out f32[M, N]) {
    temp mean: f32[M]
    grid m in tiles(M, 4) {
        var total = zeros[4](f32)
        for n in tiles(N, 64) { total = total + sum(x[m, n], axis = 1) }
        mean[m] = total / f32(N)
    }
    grid (m, n) in (tiles(M, 4), tiles(N, 64)) { y[m, n] = x[m, n] - mean[m][:, _] }
}

TEXT
}
