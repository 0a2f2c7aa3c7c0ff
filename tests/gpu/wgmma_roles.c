#include "tests/gpu/wgmma_roles.h"

#include "base/string.h"

enum { SUMS = WGMMA_TILE_COLUMNS / 2 };

/* A launch of 256 threads, two warpgroups. */
#define HEAD(name, bytes)                                                                                              \
    "func kernel tile @" name "(%x: tensor<i32, 1, in>, %y: tensor<i32, 1, out>) {\n  %n = const {value = 1} : i64\n"  \
    "  grid %n (%i: i64) {\n    yield\n  }\n  return\n}\n"                                                             \
    "func phase machine @" name ".0(%x: ptr<global>, %x.dim0: i64, %x.stride0: i64, %y: ptr<global>, %y.dim0: i64, "   \
    "%y.stride0: i64, %begin: i64, %end: i64, %shared: ptr<shared>) kernel = @" name " phase = 0 threads = 256 "       \
    "registers = 128 scratch_bytes = " bytes " {\n"                                                                    \
    "  %thread = thread : i32\n  %all = convert %thread : i64\n  %zero = const {value = 0} : i64\n"                    \
    "  %one = const {value = 1} : i64\n  %two = const {value = 2} : i64\n  %four = const {value = 4} : i64\n"          \
    "  %six = const {value = 6} : i64\n  %eight = const {value = 8} : i64\n  %k128 = const {value = 128} : i64\n"      \
    "  %k127 = const {value = 127} : i64\n  %k256 = const {value = 256} : i64\n  %k512 = const {value = 512} : i64\n"  \
    "  %seven = const {value = 7} : i64\n  %k16 = const {value = 16} : i64\n  %k8192 = const {value = 8192} : i64\n"   \
    "  %three = const {value = 3} : i64\n  %five = const {value = 5} : i64\n  %k31 = const {value = 31} : i64\n"       \
    "  %t = and %all, %k127 : i64\n  %is0 = eq %all, %zero : bool\n  %loads = lt %all, %k128 : bool\n"                 \
    "  %block = block : i64\n  %mine = eq %block, %zero : bool\n"

/* Where a thread's first sums belong, in bytes from the first one, in rows of 256 bytes. */
#define PLACE                                                                                                          \
    "    %warp = shr %t, %five : i64\n    %w16 = shl %warp, %four : i64\n    %lane = and %t, %k31 : i64\n"             \
    "    %g = shr %lane, %two : i64\n    %row = add %w16, %g : i64\n    %pair = and %t, %three : i64\n"                \
    "    %ro = mul %row, %k256 : i64\n    %po = shl %pair, %three : i64\n    %place = add %ro, %po : i64\n"

static const char ring_products[] = HEAD(
    "ring",
    "49184") "  %bars = const {value = 49152} : i64\n  %tile = const {value = 16384} : i64\n"
             "  %bytes = const {value = 16384} : i32\n  %half = const {value = 8192} : i64\n"
             "  %stage = const {value = 32768} : i64\n  %fourteen = const {value = 14} : i64\n  %xb = mul %x.dim0, "
             "%four : i64\n"
             "  %tiles = shr %xb, %fourteen : i64\n  %full0 = ptr_add %shared, %bars : ptr<shared>\n"
             "  %sixteen = const {value = 16} : i64\n  %empty0 = ptr_add %full0, %sixteen : ptr<shared>\n"
             "  if %is0 {\n    %f1 = ptr_add %full0, %eight : ptr<shared>\n    %e1 = ptr_add %empty0, %eight : "
             "ptr<shared>\n"
             "    mbarrier_init %full0 {count = 1}\n    mbarrier_init %f1 {count = 1}\n"
             "    mbarrier_init %empty0 {count = 128}\n    mbarrier_init %e1 {count = 128}\n    fence_async\n    "
             "yield\n  } {\n"
             "    yield\n  }\n  barrier\n"
             "  if %loads {\n    set_registers {registers = 40, release = 1}\n    if %is0 {\n"
             "      for %zero, %tiles, %one (%k: i64) {\n"
             "        %s = and %k, %one : i64\n        %so = mul %s, %eight : i64\n        %st = mul %s, %tile : i64\n"
             "        %full = ptr_add %full0, %so : ptr<shared>\n        %empty = ptr_add %empty0, %so : ptr<shared>\n"
             "        %turn = shr %k, %one : i64\n        %odd = and %turn, %one : i64\n        %other = xor %odd, "
             "%one : i64\n"
             "        %parity = convert %other : i32\n        mbarrier_wait %empty, %parity\n"
             "        mbarrier_arrive %full {bytes = 16384}\n        %to = ptr_add %shared, %st : ptr<shared>\n"
             "        %xo = mul %k, %tile : i64\n        %from = ptr_add %x, %xo : ptr<global>\n"
             "        copy_bulk %to, %from, %bytes, %full\n        yield\n      }\n      yield\n    } {\n      yield\n "
             "   }\n"
             "    yield\n  } {\n    set_registers {registers = 216}\n"
             "    %b_at = ptr_add %shared, %half : ptr<shared>\n"
             "    %da = wgmma_descriptor %shared {swizzle = 128, stride = 1024, leading = 16} : i64\n"
             "    %db = wgmma_descriptor %b_at {swizzle = 128, stride = 1024, leading = 16} : i64\n"
             "    %units = shr %tile, %four : i64\n    %p0 = const {value = 0} : i32\n"
             "    %a1 = add %da, %two : i64\n    %b1 = add %db, %two : i64\n    %a2 = add %da, %four : i64\n"
             "    %b2 = add %db, %four : i64\n    %a3 = add %da, %six : i64\n    %b3 = add %db, %six : i64\n"
             "    mbarrier_wait %full0, %p0\n    wgmma_fence\n"
             "    %f0 = wgmma %da, %db {types = [bf16, bf16]} : vec<32 x f32>\n"
             "    %f1 = wgmma %a1, %b1, %f0 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "    %f2 = wgmma %a2, %b2, %f1 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "    %f3 = wgmma %a3, %b3, %f2 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n    wgmma_commit\n"
             "    %sums = for %one, %tiles, %one, %f3 : vec<32 x f32> (%k: i64, %sum: vec<32 x f32>) {\n"
             "      %s = and %k, %one : i64\n      %so = mul %s, %eight : i64\n      %su = mul %s, %units : i64\n"
             "      %full = ptr_add %full0, %so : ptr<shared>\n      %last = xor %so, %eight : i64\n"
             "      %empty = ptr_add %empty0, %last : ptr<shared>\n      %turn = shr %k, %one : i64\n"
             "      %odd = and %turn, %one : i64\n      %parity = convert %odd : i32\n"
             "      %c0 = add %da, %su : i64\n      %d0 = add %db, %su : i64\n      %c1 = add %c0, %two : i64\n"
             "      %d1 = add %d0, %two : i64\n      %c2 = add %c0, %four : i64\n      %d2 = add %d0, %four : i64\n"
             "      %c3 = add %c0, %six : i64\n      %d3 = add %d0, %six : i64\n      mbarrier_wait %full, %parity\n"
             "      wgmma_fence\n"
             "      %e0 = wgmma %c0, %d0, %sum {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "      %e1 = wgmma %c1, %d1, %e0 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "      %e2 = wgmma %c2, %d2, %e1 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "      %e3 = wgmma %c3, %d3, %e2 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n      "
             "wgmma_commit\n"
             "      %e4 = wgmma_wait %e3 {pending = 1} : vec<32 x f32>\n      mbarrier_arrive %empty\n"
             "      yield %e4\n    }\n    %all_sums = wgmma_wait %sums {pending = 0} : vec<32 x f32>\n" PLACE
             "    %st0 = ptr_add %shared, %stage : ptr<shared>\n    %own = ptr_add %st0, %place : ptr<shared>\n";

static const char ring_end[] =
    "    barrier {number = 1, threads = 128}\n"
    "    %other = sub %k127, %t : i64\n    %line = mul %other, %k128 : i64\n"
    "    %read = ptr_add %st0, %line : ptr<shared>\n    %v = load %read {align = 16} : vec<32 x f32>\n"
    "    if %mine {\n      %out = ptr_add %y, %line : ptr<global>\n      store %v, %out {align = 16}\n      yield\n"
    "    } {\n      yield\n    }\n    yield\n  }\n  return\n}\n";

/* Each warpgroup has 64 rows of a, both have w0 and w1, of which w1 lies transposed. Products of a and w0 become
 * operands in registers, for two groups of products under way. */
static const char chain[] = HEAD(
    "chain",
    "65536") "  %group = shr %all, %seven : i64\n  %ao = mul %group, %k8192 : i64\n  %to = mul %all, %k16 : i64\n"
             "  %bytes = const {value = 32768} : i64\n  %step = const {value = 4096} : i64\n"
             "  %sixteen = const {value = 16} : i32\n"
             "  for %zero, %bytes, %step (%at: i64) {\n    %o = add %at, %to : i64\n"
             "    %from = ptr_add %x, %o : ptr<global>\n    %into = ptr_add %shared, %o : ptr<shared>\n"
             "    copy_async %into, %from, %sixteen {bytes = 16}\n    yield\n  }\n  copy_commit\n  copy_wait {pending "
             "= 0}\n"
             "  fence_async\n  barrier\n"
             "  %a_at = ptr_add %shared, %ao : ptr<shared>\n  %w0_to = const {value = 16384} : i64\n"
             "  %w0_at = ptr_add %shared, %w0_to : ptr<shared>\n  %w1_at = ptr_add %w0_at, %k8192 : ptr<shared>\n"
             "  %a0 = wgmma_descriptor %a_at {swizzle = 128, stride = 1024, leading = 16} : i64\n"
             "  %b0 = wgmma_descriptor %w0_at {swizzle = 128, stride = 1024, leading = 16} : i64\n"
             "  %c0 = wgmma_descriptor %w1_at {swizzle = 128, stride = 1024, leading = 8192} : i64\n"
             "  %a1 = add %a0, %two : i64\n  %b1 = add %b0, %two : i64\n  %c1 = add %c0, %k128 : i64\n"
             "  %a2 = add %a1, %two : i64\n  %b2 = add %b1, %two : i64\n  %c2 = add %c1, %k128 : i64\n"
             "  %a3 = add %a2, %two : i64\n  %b3 = add %b2, %two : i64\n  %c3 = add %c2, %k128 : i64\n"
             "  wgmma_fence\n"
             "  %p0 = wgmma %a0, %b0 {types = [bf16, bf16]} : vec<32 x f32>\n"
             "  %p1 = wgmma %a1, %b1, %p0 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "  %p2 = wgmma %a2, %b2, %p1 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n"
             "  %p3 = wgmma %a3, %b3, %p2 {types = [bf16, bf16], parts = [init]} : vec<32 x f32>\n  wgmma_commit\n"
             "  %p = wgmma_wait %p3 {pending = 0} : vec<32 x f32>\n  %h = convert %p : vec<32 x bf16>\n"
             "  %h0 = shuffle %h, %h {axes = [0, 1, 2, 3, 4, 5, 6, 7]} : vec<8 x bf16>\n"
             "  %h1 = shuffle %h, %h {axes = [8, 9, 10, 11, 12, 13, 14, 15]} : vec<8 x bf16>\n"
             "  %h2 = shuffle %h, %h {axes = [16, 17, 18, 19, 20, 21, 22, 23]} : vec<8 x bf16>\n"
             "  %h3 = shuffle %h, %h {axes = [24, 25, 26, 27, 28, 29, 30, 31]} : vec<8 x bf16>\n  wgmma_fence\n"
             "  %q0 = wgmma %h0, %c0 {types = [bf16, bf16], transposed_ab = [0, 1]} : vec<32 x f32>\n"
             "  %q1 = wgmma %h1, %c1, %q0 {types = [bf16, bf16], parts = [init], transposed_ab = [0, 1]} : vec<32 x "
             "f32>\n"
             "  wgmma_commit\n  %r0 = wgmma %h2, %c2 {types = [bf16, bf16], transposed_ab = [0, 1]} : vec<32 x f32>\n"
             "  %r1 = wgmma %h3, %c3, %r0 {types = [bf16, bf16], parts = [init], transposed_ab = [0, 1]} : vec<32 x "
             "f32>\n"
             "  wgmma_commit\n  %q = wgmma_wait %q1 {pending = 1} : vec<32 x f32>\n"
             "  %r = wgmma_wait %r1 {pending = 0} : vec<32 x f32>\n  %sums = add %q, %r : vec<32 x f32>\n" PLACE
             "  %stage = const {value = 32768} : i64\n  %st0 = ptr_add %shared, %stage : ptr<shared>\n"
             "  %go = mul %group, %w0_to : i64\n  %gp = add %go, %place : i64\n  %own = ptr_add %st0, %gp : "
             "ptr<shared>\n";

static const char chain_end[] =
    "  barrier {number = 2, threads = 256}\n  %o = xor %group, %one : i64\n  %oo = mul %o, %w0_to : i64\n"
    "  %tl = mul %t, %k128 : i64\n  %line = add %oo, %tl : i64\n  %read = ptr_add %st0, %line : ptr<shared>\n"
    "  %v = load %read {align = 16} : vec<32 x f32>\n"
    "  if %mine {\n    %out = ptr_add %y, %line : ptr<global>\n    store %v, %out {align = 16}\n    yield\n  } {\n"
    "    yield\n  }\n  return\n}\n";

/* To %own and on, rows of 256 bytes apart. */
static void write_sums(TileText *text, const char *sums) {
    for (unsigned i = 0; i < SUMS; i += 2)
        tile_text_format(text,
                         "    %%v%u = shuffle %s, %s {axes = [%u, %u]} : vec<2 x f32>\n"
                         "    %%o%u = const {value = %u} : i64\n    %%at%u = ptr_add %%own, %%o%u : ptr<shared>\n"
                         "    store %%v%u, %%at%u {align = 8}\n",
                         i, sums, sums, i, i + 1, i, i / 2 % 2 * 8 * 4 * WGMMA_TILE_COLUMNS + i / 4 * 32, i, i, i, i);
}

const char *wgmma_roles_text(TileArena *arena, WgmmaRoles kernel) {
    TileText text = {.arena = arena};
    bool ring = kernel == WGMMA_RING;
    tile_text_add(&text, ring ? ring_products : chain);
    write_sums(&text, ring ? "%all_sums" : "%sums");
    tile_text_add(&text, ring ? ring_end : chain_end);
    return tile_text_get(&text);
}
