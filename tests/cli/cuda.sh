# GPUs that are not there, drivers that are too old, that do not start, that run out: tests/gpu/fake stands for the driver.
. "$TILE_SOURCE_DIR/tests/cli_common.sh"

run_add() { "$tilec" run "$stdlib/elementwise.tile:add" x=rand:f32[9,100] y=rand:f32[9,100] z=@ --target=cuda; }

old() { LD_LIBRARY_PATH=$TILE_OLD_CUDA FAKE_CUDA=version=11080 "$@"; }
expect 0 'cuda         no   the best GPU target for the NVIDIA GPU of this machine: the CUDA driver is 11.8, and 12.0' \
    old "$tilec" backends
expect 0 'or later is needed: it has no cuKernelGetFunction' old "$tilec" backends
expect 0 'the CUDA driver is 11.8, and 12.0 or later is needed' fake version=11080 "$tilec" backends
expect 0 'the CUDA driver does not start: CUDA_ERROR_NO_DEVICE; may this process use the GPU?' fake devices=0 "$tilec" backends
expect 0 'the CUDA driver does not start: CUDA_ERROR_NOT_INITIALIZED' fake fail=cuInit:1:3 "$tilec" backends
expect 0 'the CUDA driver finds no GPU' fake 'devices=0 lenient' "$tilec" backends
expect 0 'cuda         yes' fake devices=1 "$tilec" backends
expect 0 'sm_90a       no   NVIDIA Hopper (H100, H200): compute capability 9.0: the GPU has another compute capability' \
    fake capability=80 "$tilec" backends
expect 0 'sm_80        yes' fake capability=80 "$tilec" backends
expect 0 'sm_100a      yes  NVIDIA Blackwell (B200)' fake capability=100 "$tilec" backends
expect 0 'sm_120a      no   NVIDIA Blackwell (RTX 50): compute capability 12.0: the GPU has another compute capability' \
    fake capability=121 "$tilec" backends
expect 0 'sm_89        yes' fake capability=121 "$tilec" backends

expect 2 'tilec: error: the CUDA driver is 11.8' fake version=11080 run_add
expect 2 'the GPU is older than compute capability 8.0' fake capability=75 run_add
expect 0 '' fake devices=1 run_add
expect 2 'memory: the CUDA driver (12.8) says CUDA_ERROR_OUT_OF_MEMORY: out of memory' fake memory=1000 run_add
expect 2 'copy: the CUDA driver (12.8) says CUDA_ERROR_ILLEGAL_ADDRESS' fake fail=cuMemcpyDtoH_v2:1:700 run_add
expect 2 'add: the CUDA driver (12.8) says CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES' fake fail=cuLaunchKernel:1:701 run_add
expect 2 'a newer driver is needed for this code' fake fail=cuLibraryLoadData:1:222 run_add
expect 2 'matmul: a block needs' fake shared=1000 "$tilec" run "$stdlib/matmul.tile:matmul" a=rand:f32[64,64] b=rand:f32[64,64] \
    c=@ U=f32 --target=cuda

# The launcher waits for output of kernels; the fake driver's have none.
cd "$work" || exit 2
cat >says.tile <<'END'
kernel says(x: in f32[N]) { grid n in tiles(N, 64) { print("x", x[n]); assert(all(x[n] < 5), "small", N) } }
END
run_says() { "$tilec" run says.tile x=arange:f32[7] --debug --target="$@"; }
expect 0 '' fake devices=1 run_says cuda
expect 2 'says: the CUDA driver (12.8) says CUDA_ERROR_ILLEGAL_ADDRESS' fake fail=cuStreamSynchronize:2:700 run_says cuda
expect 1 'says[0]: x [0, 1, 2, 3, 4, 5, 6, _, ' run_says sm_80 --emulate
expect 1 'says.tile:1:72: error: assertion failed: small, where x[n] = 5 at [5], N = 7 [assertion-failed]' \
    run_says sm_80 --emulate --schedule-seed=1
finish
