/* Kinds of output, and errors that must give a status and a message instead of ending the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const char add_text[] = "func phase machine @\"add.0\"(%x: ptr<global>, %y: ptr<global>, " PARAMETERS ") {\n"
                               "  %a = load %x : vec<8 x f32>\n"
                               "  %b = add %a, %a : vec<8 x f32>\n"
                               "  store %b, %y\n"
                               "  return\n}\n";

static void expect_words(TileCodeKind kind, const char *const *words) {
    TileCode code = emit_text(add_text, &avx2, NULL, kind);
    for (; *words; words++) cr_expect(strstr(code.data, *words), "no %s in %s", *words, code.data);
    cr_expect_eq(strlen(code.data), code.size);
    tile_code_release(&code);
    cr_expect_null(code.data);
}

Test(emit, every_kind_of_text) {
    expect_words(TILE_CODE_MLIR, (const char *[]){"llvm.func", "llvm.fadd", "vector<8xf32>", NULL});
    expect_words(TILE_CODE_MLIR_LLVM, (const char *[]){"llvm.func", "llvm.fadd", NULL});
    expect_words(TILE_CODE_LLVM, (const char *[]){"define", "fadd <8 x float>", "target triple", NULL});
    expect_words(TILE_CODE_ASSEMBLY, (const char *[]){"vaddps", "add.0:", NULL});
}

/* Scalable vectors: for a target that need not be this machine. */
Test(emit, sve) {
    static const TileTarget sve = {.name = "sve",
                                   .architecture = TILE_ARCHITECTURE_AARCH64,
                                   .triple = "aarch64-unknown-linux-gnu",
                                   .llvm_cpu = "generic",
                                   .llvm_features = "+v8.2a,+sve",
                                   .vector_bytes = 16,
                                   .scalable = true};
    static const char text[] = "func phase machine @\"scale.0\"(%x: ptr<global>, %n: i64, " PARAMETERS ") {\n"
                               "  %zero = const {value = 0} : i64\n  %four = const {value = 4} : i64\n"
                               "  %scale = vscale : i64\n  %step = mul %scale, %four : i64\n"
                               "  for %zero, %n, %step (%i: i64) {\n"
                               "    %m = mask_lt %i, %n : vec<[4] x bool>\n    %o = mul %i, %four : i64\n"
                               "    %p = ptr_add %x, %o : ptr<global>\n"
                               "    %v = load %p, %m {parts = [mask]} : vec<[4] x f32>\n"
                               "    %w = mul %v, %v : vec<[4] x f32>\n"
                               "    store %w, %p, %m {parts = [mask]}\n    yield\n  }\n  return\n}\n";
    static const char *const words[] = {"whilelo", "ld1w", "fmul", "st1w", "cntw", NULL};
    TileCode code = emit_text(text, &sve, NULL, TILE_CODE_ASSEMBLY);
    for (const char *const *word = words; *word; word++)
        cr_expect(strstr(code.data, *word), "no %s in %s", *word, code.data);
    tile_code_release(&code);
}

/* A loop over rows of 400 bytes, which squares each of eight elements of a row `count` times. */
static TileCode emit_loop(unsigned count, const TileTarget *target) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "func phase machine @f(%%x: ptr<global>, %%n: i64, %s) {\n", PARAMETERS);
    fprintf(out, "  %%zero = const {value = 0} : i64\n  %%one = const {value = 1} : i64\n");
    fprintf(out, "  %%bytes = const {value = 400} : i64\n  %%four = const {value = 4} : i64\n  for %%zero, %%n, %%one (%%i: i64) {\n");
    fprintf(out, "    %%o = mul %%i, %%bytes : i64\n    %%p0 = ptr_add %%x, %%o : ptr<global>\n");
    for (unsigned e = 0; e < 8; e++) {
        fprintf(out, "    %%a%u_0 = load %%p%u : f32\n", e, e);
        for (unsigned k = 0; k < count; k++) fprintf(out, "    %%a%u_%u = mul %%a%u_%u, %%a%u_%u : f32\n", e, k + 1, e, k, e, k);
        fprintf(out, "    store %%a%u_%u, %%p%u\n    %%p%u = ptr_add %%p%u, %%four : ptr<global>\n", e, count, e, e + 1, e);
    }
    fprintf(out, "    yield\n  }\n  return\n}\n");
    fclose(out);
    TileCode code = emit_text(text, target, NULL, TILE_CODE_ASSEMBLY);
    free(text);
    return code;
}

/* Loops of small modules add to pointers; those of large ones, whose strength LLVM would reduce for long, multiply. */
Test(emit, strength_of_large_modules_is_not_reduced) {
    TileCode small = emit_loop(1, &avx2), large = emit_loop(100, &avx2);
    cr_expect_null(strstr(small.data, "imulq\t$400"), "%s", (const char *)small.data);
    cr_expect(strstr(small.data, "addq\t$400"));
    cr_expect(strstr(large.data, "imulq\t$400"));
    cr_expect_null(strstr(large.data, "addq\t$400"));
    tile_code_release(&small);
    tile_code_release(&large);
}

Test(emit, no_fast_math) {
    TileCode code = emit_text(add_text, &avx512, NULL, TILE_CODE_LLVM);
    cr_expect_null(strstr(code.data, "fast"));
    cr_expect_null(strstr(code.data, "reassoc"));
    cr_expect_null(strstr(code.data, "nnan"));
    tile_code_release(&code);
}

Test(emit, parameter_facts) {
    static const char text[] =
        "func phase machine @f(%x: ptr<global>, %y: ptr<global>, " PARAMETERS ") {\n  return\n}\n";
    TileContext *context = tile_ir_context_create();
    TileModule *module = read_module(context, text);
    TileParameter *x = &module->first->parameters[0];
    x->noalias = x->readonly = true;
    x->facts.align = x->used_align = 64;
    TileBridge *bridge;
    cr_assert_eq(tile_bridge_create(&bridge), TILE_OK);
    TileCode code;
    cr_assert_eq(tile_bridge_emit(bridge, module, &avx2, NULL, TILE_CODE_MLIR, &code), TILE_OK);
    cr_expect(strstr(code.data, "%arg0: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias, llvm.readonly}"), "%s",
              code.data);
    cr_expect(strstr(code.data, "%arg1: !llvm.ptr,"), "%s", code.data);
    tile_code_release(&code);
    tile_bridge_destroy(bridge);
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
}

Test(emit, line_info) {
    TileContext *context = tile_ir_context_create();
    TileModule *module = read_module(context, add_text);
    tile_list_push(context->arena, &context->files, "add.tile");
    TileLocation at = {.file = (uint32_t)context->files.count - 1, .line = 7, .column = 3};
    module->first->location = at;
    for (TileOp *op = module->first->body.first; op; op = op->next) op->location = at;
    TileBridge *bridge;
    cr_assert_eq(tile_bridge_create(&bridge), TILE_OK);
    TileBridgeOptions options = {.struct_size = sizeof options, .line_info = true};
    TileCode code;
    tile_status status = tile_bridge_emit(bridge, module, &avx2, &options, TILE_CODE_ASSEMBLY, &code);
    cr_assert(status == TILE_OK, "%s", tile_bridge_message(bridge));
    cr_expect(strstr(code.data, "add.tile"), "%s", code.data);
    cr_expect(strstr(code.data, ".loc\t1 7 3"), "%s", code.data);
    cr_expect(strstr(code.data, ".debug_line"));
    tile_code_release(&code);
    tile_bridge_destroy(bridge);
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
}

Test(emit, left_over_ops_are_our_bug) {
    expect_failure("func phase machine @f(%x: f32, %y: ptr<global>, " PARAMETERS ") {\n"
                   "  %e = exp %x : f32\n  store %e, %y\n  return\n}\n",
                   &avx2, TILE_INTERNAL, "math");
    expect_failure("func phase machine @f(%x: f32, %y: ptr<global>, " PARAMETERS ") {\n"
                   "  %e = max %x, %x : f32\n  store %e, %y\n  return\n}\n",
                   &avx2, TILE_INTERNAL, "`max`");
    expect_failure("func phase machine @f(%x: bf16, %y: ptr<global>, " PARAMETERS ") {\n"
                   "  %e = add %x, %x : bf16\n  store %e, %y\n  return\n}\n",
                   &avx2, TILE_INTERNAL, "bf16");
    expect_failure("func phase machine @f(%x: f16, %y: ptr<global>, " PARAMETERS ") {\n"
                   "  %e = fma %x, %x, %x : f16\n  store %e, %y\n  return\n}\n",
                   &avx2, TILE_INTERNAL, "f16");
    expect_failure("func phase machine @f(%x: ptr<global>, " PARAMETERS ") {\n"
                   "  %v = load %x : vec<2 x f32>\n  %o = opaque %v : vec<2 x f32>\n  store %o, %x\n  return\n}\n",
                   &avx2, TILE_INTERNAL, "register");
    expect_failure("func phase machine @f(%x: ptr<global>) {\n  return\n}\n", &avx2, TILE_INTERNAL, "scratch");
}

Test(emit, unknown_targets) {
    TileTarget target = avx2;
    target.llvm_cpu = "no-such-cpu";
    expect_failure(add_text, &target, TILE_UNSUPPORTED, "no-such-cpu");
    target = avx2;
    target.llvm_features = "+avx512bf16,+warp-drive";
    expect_failure(add_text, &target, TILE_UNSUPPORTED, "warp-drive");
    target = avx2;
    target.triple = "pdp11-unknown-none";
    expect_failure(add_text, &target, TILE_UNSUPPORTED, "pdp11");
}

Test(emit, what_a_gpu_does_not_have) {
    static const char text[] = "func phase machine @f(%x: ptr<global>, %begin: i64, %end: i64, %shared: ptr<shared>) "
                               "threads = 32 scratch_bytes = 512 {\n"
                               "  %v = load %x : vec<8 x f16>\n  store_matrix %v, %shared {transposed = 1}\n"
                               "  %w = load %x : i32\n  store_matrix %w, %shared\n  return\n}\n";
    TileTarget target = {.name = "sm_80",
                         .kind = TILE_TARGET_GPU,
                         .architecture = TILE_ARCHITECTURE_NVPTX,
                         .triple = "nvptx64-nvidia-cuda",
                         .llvm_cpu = "sm_80",
                         .llvm_features = "+ptx80"};
    expect_failure(text, &target, TILE_UNSUPPORTED, "sm_80 has no matrices that a warp stores");
    target = (TileTarget){.name = "sm_90a",
                          .kind = TILE_TARGET_GPU,
                          .architecture = TILE_ARCHITECTURE_NVPTX,
                          .triple = "nvptx64-nvidia-cuda",
                          .llvm_cpu = "sm_90a",
                          .llvm_features = "+ptx87",
                          .has_stmatrix = true};
    TileCode code = emit_text(text, &target, NULL, TILE_CODE_ASSEMBLY);
    cr_expect(strstr(code.data, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16"));
    cr_expect(strstr(code.data, "stmatrix.sync.aligned.m8n8.x1.shared.b16"));
    tile_code_release(&code);
}

static unsigned count_of(const char *text, const char *part) {
    unsigned count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) count++;
    return count;
}

/* Sums are in the same registers from one product to the next, and no asm is copied into a branch. */
Test(emit, products_of_warpgroups) {
    static const char text[] =
        "func phase machine @f(%x: ptr<global>, %begin: i64, %end: i64, %shared: ptr<shared>) threads = 256 "
        "registers = 168 scratch_bytes = 1024 {\n"
        "  %d = wgmma_descriptor %shared {swizzle = 64, stride = 512, leading = 32} : i64\n  fence_async\n"
        "  set_registers {registers = 40, release = 1}\n  barrier {number = 3, threads = 128}\n  wgmma_fence\n"
        "  %a = load %x : vec<8 x bf16>\n"
        "  %p = wgmma %d, %d {types = [bf16, bf16], transposed_ab = [0, 1]} : vec<4 x f32>\n"
        "  %q = wgmma %a, %d, %p {types = [bf16, bf16], parts = [init]} : vec<4 x f32>\n  wgmma_commit\n"
        "  %r = wgmma_wait %q {pending = 1} : vec<4 x f32>\n  store %r, %x\n"
        "  %i = wgmma %d, %d {types = [i8, u8]} : vec<8 x i32>\n"
        "  %j = wgmma_wait %i {pending = 0} : vec<8 x i32>\n  store %j, %x\n  return\n}\n";
    TileTarget target = {.name = "sm_90a",
                         .kind = TILE_TARGET_GPU,
                         .architecture = TILE_ARCHITECTURE_NVPTX,
                         .triple = "nvptx64-nvidia-cuda",
                         .llvm_cpu = "sm_90a",
                         .llvm_features = "+ptx87",
                         .has_tma = true};
    expect_failure(text, &target, TILE_UNSUPPORTED, "sm_90a has no registers that warpgroups pass to one another");
    target.has_wgmma = true;
    TileCode code = emit_text(text, &target, NULL, TILE_CODE_ASSEMBLY);
    cr_expect(strstr(code.data, ".maxnreg 168"));
    cr_expect(strstr(code.data, "fence.proxy.async.shared::cta;"));
    cr_expect(strstr(code.data, "setmaxnreg.dec.sync.aligned.u32 40;"));
    cr_expect(strstr(code.data, "bar.sync \t3, 128;"));
    cr_expect(strstr(code.data, "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {"));
    cr_expect(strstr(code.data, ", add, 1, 1, 0, 1; }"), "adds to nothing, and b is transposed");
    cr_expect(strstr(code.data, ", 1, 1, 1, 0;"), "adds, and `a` has no transposition");
    cr_expect(strstr(code.data, "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.u8 {"));
    cr_expect(strstr(code.data, "wgmma.wait_group.sync.aligned 1;"));
    cr_expect_eq(count_of(code.data, "mov.b32"), 0, "%s", (const char *)code.data);
    tile_code_release(&code);
    code = emit_text(text, &target, NULL, TILE_CODE_LLVM);
    cr_expect(strstr(code.data, "convergent"));
    tile_code_release(&code);
}

/* So many blocks of the first phase a multiprocessor has room for: the assembler gives threads no more registers. The second one's are as it likes. */
Test(emit, blocks_together) {
    static const char text[] = "func phase machine @k.0(%x: ptr<global> {role = data}, %shared: ptr<shared>) blocks_together = 4 threads = 256 {\n  return\n}\n"
                               "func phase machine @k.1(%x: ptr<global> {role = data}, %shared: ptr<shared>) threads = 256 {\n  return\n}\n";
    TileTarget target = {.name = "sm_90a", .kind = TILE_TARGET_GPU, .architecture = TILE_ARCHITECTURE_NVPTX, .triple = "nvptx64-nvidia-cuda", .llvm_cpu = "sm_90a", .llvm_features = "+ptx87"};
    TileCode code = emit_text(text, &target, NULL, TILE_CODE_ASSEMBLY);
    cr_expect(strstr(code.data, ".minnctapersm 4"));
    cr_expect_eq(count_of(code.data, ".minnctapersm"), 1, "%s", (const char *)code.data);
    tile_code_release(&code);
}

/* A fatal error in LLVM gives a status, and LLVM is not called again. */
Test(emit, fatal_errors) {
    TileTarget target = avx2;
    target.llvm_features = "-64bit";
    expect_failure(add_text, &target, TILE_BACKEND, "64-bit code requested");
    expect_failure(add_text, &avx2, TILE_BACKEND, "earlier in this process");
}

Test(emit, features_are_used) {
    TileTarget target = avx2;
    target.llvm_features = "+avx512f,+avx512vl";
    TileCode code = emit_text(add_text, &target, NULL, TILE_CODE_LLVM);
    cr_expect(strstr(code.data, "\"target-features\"=\"+avx512f,+avx512vl\""));
    tile_code_release(&code);
}

/* A bridge changes its target, fails, and works again. */
Test(emit, one_bridge_many_emissions) {
    TileContext *context = tile_ir_context_create();
    TileModule *good = read_module(context, add_text);
    TileModule *bad = read_module(context, "func phase machine @g(%x: f32, " PARAMETERS ") {\n"
                                           "  %e = exp %x : f32\n  return\n}\n");
    TileBridge *bridge;
    cr_assert_eq(tile_bridge_create(&bridge), TILE_OK);
    for (int i = 0; i < 6; i++) {
        TileCode code;
        cr_expect_eq(tile_bridge_emit(bridge, good, i & 1 ? &avx512 : &avx2, NULL, TILE_CODE_OBJECT, &code), TILE_OK);
        cr_expect_str_empty(tile_bridge_message(bridge));
        TileBridgeTimes times = tile_bridge_times(bridge);
        cr_expect(times.make > 0 && times.emit > 0);
        tile_code_release(&code);
        cr_expect_eq(tile_bridge_emit(bridge, bad, &avx2, NULL, TILE_CODE_OBJECT, &code), TILE_INTERNAL);
    }
    tile_bridge_destroy(bridge);
    tile_module_destroy(good);
    tile_module_destroy(bad);
    tile_ir_context_destroy(context);
}

static void *emit_often(void *state) {
    for (int i = 0; i < 5; i++) {
        Compiled compiled = compile_text(add_text, &avx2);
        float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0};
        find_entry(&compiled, "add.0")((uint64_t[]){SLOT(x), SLOT(y)}, 0, 1, NULL);
        for (int k = 0; k < 8; k++) *(int *)state += y[k] != 2 * x[k];
        release_compiled(&compiled);
    }
    return NULL;
}

Test(emit, threads_side_by_side) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) cr_assert_eq(pthread_create(&threads[i], NULL, emit_often, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(wrong[i], 0);
    }
}
