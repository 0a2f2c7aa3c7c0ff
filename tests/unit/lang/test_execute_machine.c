/* The executor in machine form: memory, vectors, loop nests, phases. */
#include <criterion/criterion.h>

#include "tests/unit/lang/executing.h"

TestSuite(execute_machine, .init = executing_set_up, .fini = executing_tear_down);

/* Runs @f(%p: ptr<global>, ...) on `bytes` bytes. */
static void expect_run(const char *source, void *data, uint64_t bytes, TileExecution expected, const char *message) {
    TileExecutor *e =
        tile_executor_create(read_func(source, "f"), &(TileExecutorOptions){.vector_scale = 2, .seed = 3});
    tile_executor_bind_pointer(e, 0, data, 0, bytes, true);
    TileExecution state = tile_executor_run(e, 0);
    cr_expect_eq(state, expected, "%s", tile_executor_message(e));
    cr_expect(strstr(tile_executor_message(e), message), "wanted `%s`, got: %s", message, tile_executor_message(e));
    tile_executor_destroy(e);
}

static void expect_body(const char *body, void *data, uint64_t bytes, TileExecution expected, const char *message) {
    static const char head[] = "func phase machine @f(%p: ptr<global>) {\n  %zero = const {value = 0} : i64\n"
                               "  %one = const {value = 1} : i64\n  %four = const {value = 4} : i64\n"
                               "  %three = const {value = 3} : i64\n  %big = const {value = 200} : i64\n";
    expect_run(tile_arena_format(executing.arena, "%s%s  return\n}\n", head, body), data, bytes, expected, message);
}

Test(execute_machine, masked_accesses) {
    int32_t data[4] = {1, 2, 3, 4};
    expect_body("%m = mask_lt %one, %four : vec<4 x bool>\n%f = const {value = 9} : i32\n"
                "%v = load %p, %m, %f {parts = [mask, fill], align = 4} : vec<4 x i32>\n"
                "store %v, %p\n",
                data, 16, TILE_EXECUTION_DONE, "");
    cr_expect_eq(data[2], 3);
    cr_expect_eq(data[3], 9);
    expect_body("%m = mask_lt %one, %four : vec<4 x bool>\n%v = load %p, %m {parts = [mask]} : vec<4 x i32>\n"
                "store %v, %p\n",
                data, 16, TILE_EXECUTION_FAULT, "stores a lane that is poison");
    expect_body("%q = ptr_add %p, %four : ptr<global>\n%v = load %q : vec<4 x i32>\n", data, 16, TILE_EXECUTION_FAULT,
                "accesses bytes 16 .. 20 of a memory object of 16 bytes");
    expect_body("%q = ptr_add %p, %one : ptr<global>\n%v = load %q {align = 4} : i32\n", data, 16, TILE_EXECUTION_FAULT,
                "not aligned to 4 bytes");
    expect_body("%m = mask_lt %zero, %big : vec<[4] x bool>\n%v = load %p, %m {parts = [mask]} : vec<[4] x i32>\n",
                data, 16, TILE_EXECUTION_FAULT, "accesses bytes 16 .. 20");
}

Test(execute_machine, alignment_of_addresses) {
    _Alignas(64) uint8_t data[16];
    for (int64_t offset = -8; offset <= 8; offset++) {
        for (int64_t align = 1; align <= 16; align *= 2) {
            const char *body =
                tile_arena_format(executing.arena,
                                  "%%o = const {value = %lld} : i64\n%%q = ptr_add %%p, %%o : ptr<global>\n"
                                  "%%r = is_aligned %%q {align = %lld} : bool\nstore %%r, %%p\n",
                                  (long long)offset, (long long)align);
            data[0] = 7;
            expect_body(body, data, sizeof data, TILE_EXECUTION_DONE, "");
            cr_expect_eq(data[0], offset % align == 0, "%lld bytes, aligned to %lld", (long long)offset,
                         (long long)align);
        }
    }
    expect_body(
        "%b = buffer {bytes = 8, align = 8} : ptr<scratch>\n%u = load %b : i64\n%q = ptr_add %p, %u : ptr<global>\n"
        "%r = is_aligned %q {align = 4} : bool\nstore %r, %p\n",
        data, sizeof data, TILE_EXECUTION_FAULT, "stores a lane that is poison");
}

Test(execute_machine, scalable_vectors) {
    int64_t data[4] = {0};
    expect_body("%s = vscale : i64\n%v = splat %s : vec<[2] x i64>\n%i = iota : vec<[2] x i64>\n"
                "%w = mul %v, %i : vec<[2] x i64>\nstore %w, %p\n",
                data, sizeof data, TILE_EXECUTION_DONE, "");
    for (int i = 0; i < 4; i++) cr_expect_eq(data[i], 2 * i);
}

Test(execute_machine, vectors) {
    int64_t data[4] = {10, 20, 30, 40};
    expect_body("%v = load %p : vec<4 x i64>\n%s = shuffle %v, %v {axes = [3, 6]} : vec<2 x i64>\n"
                "%e = extract %s {axis = 1} : i64\n%w = insert %v, %e {axis = 0} : vec<4 x i64>\n"
                "%j = iota : vec<4 x i64>\n%k = splat %e : vec<4 x i64>\n%x = add %w, %j : vec<4 x i64>\n"
                "%y = opaque %x : vec<4 x i64>\nstore %y, %p\n",
                data, 32, TILE_EXECUTION_DONE, "");
    static const int64_t expected[] = {30, 21, 32, 43};
    cr_expect_arr_eq(data, expected, sizeof expected);
    expect_body("%j = iota : vec<4 x i64>\n%e = splat %three : vec<4 x i64>\n%r = sub %e, %j : vec<4 x i64>\n"
                "%b = mul %r, %e : vec<4 x i64>\n%c = convert %four : i64\n%i = add %c, %c : i64\n"
                "%s = splat %i : vec<4 x i64>\n%o = mul %r, %s : vec<4 x i64>\n"
                "%g = gather %p, %o : vec<4 x i64>\nscatter %g, %p, %b\n",
                data, 32, TILE_EXECUTION_DONE, "");
    cr_expect_eq(data[0], 30);
}

Test(execute_machine, buffers) {
    float out = 0;
    expect_body("%b = buffer {bytes = 16, align = 64} : ptr<scratch>\n%f = const {value = 1.5} : f32\n"
                "store %f, %b {align = 64}\n%v = load %b : f32\nstore %v, %p\n",
                &out, 4, TILE_EXECUTION_DONE, "");
    cr_expect_eq(out, 1.5f);
    expect_body("%b = buffer {bytes = 16, align = 64} : ptr<scratch>\n%v = load %b : f32\nstore %v, %b\nstore %v, %p\n",
                &out, 4, TILE_EXECUTION_FAULT, "store %v, %p: stores a lane that is poison");
    expect_body("%b = buffer {bytes = 16, align = 64} : ptr<scratch>\n%q = ptr_add %b, %big : ptr<scratch>\n"
                "prefetch %q {cache = l1}\n%v = load %q : f32\n",
                &out, 4, TILE_EXECUTION_FAULT, "of a memory object of 16 bytes");
}

Test(execute_machine, striped_and_serial_reductions) {
    enum { N = 200 };
    static const char body[] =
        "%%zf = const {value = 0.0} : f32\n"
        "%%r = loop %%zero, %%big, %%zf {loop = reduce, extent = 200, combine = [sum], order = %s} : "
        "f32 (%%i: i64, %%a: f32) {\n"
        "%%o = mul %%i, %%four : i64\n%%q = ptr_add %%p, %%o : ptr<global>\n"
        "%%v = load %%q : f32\nyield %%v\n}\nstore %%r, %%p\n";
    float data[N], stripes[64] = {0}, serial = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) data[i] = (float)((i * 7919) % 1000) / 7.0f - 60;
        expect_body(tile_arena_format(executing.arena, body, round ? "stripes" : "serial"), data, sizeof data,
                    TILE_EXECUTION_DONE, "");
        float result = data[0];
        data[0] = -60;
        for (int i = 0; i < N && !round; i++) serial += data[i];
        for (int i = 0; i < N && round; i++) stripes[i % 64] += data[i];
        for (int half = 32; half; half /= 2)
            for (int j = 0; j < half; j++) stripes[j] += stripes[j + half];
        cr_expect_eq(result, round ? stripes[0] : serial);
    }
}

Test(execute_machine, position_of_the_greatest) {
    static const char body[] =
        "%%low = const {value = -inf} : f32\n%%hundred = const {value = 100} : i64\n"
        "%%r, %%at = loop %%zero, %%hundred, %%low, %%zero {loop = reduce, extent = 0, combine = [arg_max, with], "
        "order = %s} "
        ": f32, i64 (%%i: i64, %%a: f32, %%n: i64) {\n"
        "%%o = mul %%i, %%four : i64\n%%q = ptr_add %%p, %%o : ptr<global>\n%%v = load %%q : f32\nyield %%v, %%i\n}\n"
        "store %%at, %%p\n";
    for (int round = 0; round < 4; round++) {
        float data[100];
        for (int i = 0; i < 100; i++) data[i] = (float)(i % 70);
        if (round & 1) data[80] = data[90] = __builtin_nanf("");
        expect_body(tile_arena_format(executing.arena, body, round & 2 ? "stripes" : "serial"), data, sizeof data,
                    TILE_EXECUTION_DONE, "");
        int64_t at;
        memcpy(&at, data, sizeof at);
        cr_expect_eq(at, round & 1 ? 80 : 69);
    }
}

Test(execute_machine, parallel_and_sequential_loops) {
    int64_t data[5] = {0};
    expect_body("%five = add %four, %one : i64\n"
                "loop %zero, %five {loop = parallel, extent = 5} (%i: i64) {\n"
                "%o = mul %i, %four : i64\n%o2 = add %o, %o : i64\n%q = ptr_add %p, %o2 : ptr<global>\n"
                "store %i, %q\nyield\n}\n"
                "%s = loop %zero, %five, %one {loop = sequential, extent = 5} : i64 (%i: i64, %a: i64) {\n"
                "%b = add %a, %a : i64\nyield %b\n}\nstore %s, %p\n",
                data, sizeof data, TILE_EXECUTION_DONE, "");
    static const int64_t expected[] = {32, 1, 2, 3, 4};
    cr_expect_arr_eq(data, expected, sizeof expected);
    expect_body("loop %zero, %four {loop = parallel, extent = 3} (%i: i64) {\nyield\n}\n", data, sizeof data,
                TILE_EXECUTION_FAULT, "runs from 0 to 4, beyond its extent of 3");
    expect_body(
        "%r = loop %zero, %four, %zero {loop = reduce, extent = 4, combine = [sum]} : i64 (%i: i64, %a: i64) {\n"
        "yield %a\n}\nstore %r, %p\n",
        data, sizeof data, TILE_EXECUTION_FAULT, "stores a lane that is poison");
}

Test(execute_machine, dot_blocks) {
    /* a: 2 x 3, b: 3 x 2, c: 2 x 2, contiguous. */
    float data[16] = {1, 2, 3, 4, 5, 6, 1, 0, 0, 1, 1, 1, 100, 200, 300, 400};
    expect_body("%two = add %one, %one : i64\n%eight = add %four, %four : i64\n%twelve = add %eight, %four : i64\n"
                "%c24 = add %twelve, %twelve : i64\n%c48 = add %c24, %c24 : i64\n"
                "%b = ptr_add %p, %c24 : ptr<global>\n%c = ptr_add %p, %c48 : ptr<global>\n"
                "dot_block %p, %twelve, %four, %b, %eight, %four, %c, %eight, %two, %two, %three, %zero, %zero, %zero "
                "{types = [f32, f32, f32], extents = [2, 2, 3]}\n",
                data, sizeof data, TILE_EXECUTION_DONE, "");
    cr_expect_eq(data[12], 104);
    cr_expect_eq(data[13], 205);
    cr_expect_eq(data[14], 310);
    cr_expect_eq(data[15], 411);
}

/* Poison in a row makes the row of the result poison, and is reported if that is not in scratch memory. */
Test(execute_machine, dot_blocks_carry_poison) {
    float data[4] = {1, 2, 3, 4};
    static const char body[] =
        "%%a = buffer {bytes = 8, align = 64} : ptr<scratch>\n%%c = buffer {bytes = 16, align = 64} : ptr<scratch>\n"
        "%%f = const {value = 2.0} : f32\nstore %%f, %%a\n%%v = const {value = 0.0} : vec<4 x f32>\nstore %%v, %%c\n"
        "%%two = add %%one, %%one : i64\n%%eight = add %%four, %%four : i64\n"
        "dot_block %%a, %%four, %%four, %%p, %%eight, %%four, %%c, %%eight, %%two, %%two, %%one, %%zero, %%zero, "
        "%%zero "
        "{types = [f32, f32, f32], extents = [2, 2, 1]}\n"
        "%%q = ptr_add %%c, %%%s : ptr<scratch>\n%%r = load %%q : vec<2 x f32>\nstore %%r, %%p\n";
    expect_body(tile_arena_format(executing.arena, body, "eight"), data, sizeof data, TILE_EXECUTION_FAULT,
                "stores a lane that is poison");
    expect_body(tile_arena_format(executing.arena, body, "zero"), data, sizeof data, TILE_EXECUTION_DONE, "");
    cr_expect_eq(data[0], 2);
    cr_expect_eq(data[1], 4);
}

/* A kernel whose grid runs as a phase in machine form, in random ranges. */
static const char phase_source[] =
    "func kernel tile @k(%x: tensor<f32, 1, in>, %s: f32, %y: tensor<f32, 1, out>) {\n"
    "  %n = dim %x {axis = 0} : i64\n  %t = temp %n : tensor<f32, 1, temp>\n"
    "  grid %n (%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @k.0(%x: ptr<global>, %x.dim0: i64, %x.stride0: i64, %s: f32, %y: ptr<global>, %y.dim0: i64, "
    "%y.stride0: i64, %t: ptr<global>, %t.dim0: i64, %t.stride0: i64, %begin: i64, %end: i64, %scratch: ptr<scratch>) kernel = @k phase = 0 "
    "scratch_bytes = 4 {\n"
    "  %one = const {value = 1} : i64\n"
    "  for %begin, %end, %one (%i: i64) {\n"
    "    %o = mul %i, %x.stride0 : i64\n    %p = ptr_add %x, %o : ptr<global>\n    %v = load %p : f32\n"
    "    %w = mul %v, %s : f32\n    store %w, %scratch\n    %z = load %scratch : f32\n"
    "    %o2 = mul %i, %t.stride0 : i64\n    %q = ptr_add %t, %o2 : ptr<global>\n    store %z, %q\n"
    "    %u = load %q : f32\n"
    "    %o3 = mul %i, %y.stride0 : i64\n    %r = ptr_add %y, %o3 : ptr<global>\n    store %u, %r\n    yield\n  }\n"
    "  return\n}\n";

Test(execute_machine, phases) {
    float x[2 * 37], y[37] = {0};
    for (int i = 0; i < 74; i++) x[i] = (float)i;
    TileExecutorTensor strided = matrix(x, 37, 1);
    strided.stride[0] = 8;
    strided.above = sizeof x;
    TileExecutorArgument arguments[] = {{.tensor = strided}, {.bits = float_bits(0.5f)}, {.tensor = matrix(y, 37, 1)}};
    TileFunc *kernel = read_func(phase_source, "k");
    for (uint64_t seed = 0; seed < 3; seed++) {
        memset(y, 0, sizeof y);
        TileText text = {.arena = executing.arena};
        TileExecutorOptions options = {.seed = seed, .chunks = 5, .phases = true};
        cr_expect_eq(tile_execute_kernel(kernel, arguments, &options, &text), TILE_EXECUTION_DONE, "%s",
                     tile_text_get(&text));
        for (int i = 0; i < 37; i++) cr_expect_eq(y[i], (float)i);
    }
    TileFunc *phase = tile_func_find(executing.module, "k.0");
    TileText text = {.arena = executing.arena};
    tile_func_remove(phase);
    TileExecutorOptions options = {.phases = true};
    cr_expect_eq(tile_execute_kernel(kernel, arguments, &options, &text), TILE_EXECUTION_FAULT);
    cr_expect(strstr(tile_text_get(&text), "there is no phase 0 of k"), "%s", tile_text_get(&text));
}

Test(execute_machine, buffers_die_with_their_function) {
    float out = 0;
    expect_run("func phase machine @g() -> ptr<scratch> {\n  %b = buffer {bytes = 16, align = 64} : ptr<scratch>\n"
               "  return %b\n}\n"
               "func phase machine @f(%p: ptr<global>) {\n  %b = call {callee = \"g\"} : ptr<scratch>\n"
               "  %v = load %b : f32\n  return\n}\n",
               &out, 4, TILE_EXECUTION_FAULT, "accesses memory that is no more");
}
