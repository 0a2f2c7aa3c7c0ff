/* Kernels with mbarriers in machine form, for the emulator, the assembler and a GPU. For tiles of 64 words each
 * computes y[64 a + b] = x[64 a + b] + 10 * x[64 a + (b + 1) % 64]. */
#ifndef TILE_TESTS_GPU_MBARRIERS_H
#define TILE_TESTS_GPU_MBARRIERS_H

enum { MBARRIER_TILE = 64 };

/* In each block one thread copies tiles ahead into a ring buffer of two slots, and 64 others add neighbours. Slot s is
 * at 256 s, its mbarrier `full` at 512 + 8 s, `empty` at 528 + 8 s. */
static const char mbarrier_ring[] =
    "func kernel tile @ring(%x: tensor<i32, 1, in>, %y: tensor<i32, 1, out>) {\n  %n = const {value = 2} : i64\n"
    "  grid %n (%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @ring.0(%x: ptr<global>, %x.dim0: i64, %x.stride0: i64, %y: ptr<global>, %y.dim0: i64, "
    "%y.stride0: i64, %begin: i64, %end: i64, %shared: ptr<shared>) kernel = @ring phase = 0 threads = 96 "
    "scratch_bytes = 544 {\n"
    "  %thread = thread : i32\n  %t = convert %thread : i64\n  %block = block : i64\n  %blocks = block_count : i64\n"
    "  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n  %four = const {value = 4} : i64\n"
    "  %six = const {value = 6} : i64\n  %eight = const {value = 8} : i64\n  %warp = const {value = 32} : i64\n"
    "  %last = const {value = 63} : i64\n  %row = const {value = 256} : i64\n  %bytes = const {value = 256} : i32\n"
    "  %fulls = const {value = 512} : i64\n  %empties = const {value = 528} : i64\n  %ten = const {value = 10} : i32\n"
    "  %tiles = shr %x.dim0, %six : i64\n  %is0 = eq %t, %zero : bool\n"
    "  if %is0 {\n"
    "    %f0 = ptr_add %shared, %fulls : ptr<shared>\n    %f1 = ptr_add %f0, %eight : ptr<shared>\n"
    "    %e0 = ptr_add %shared, %empties : ptr<shared>\n    %e1 = ptr_add %e0, %eight : ptr<shared>\n"
    "    mbarrier_init %f0 {count = 1}\n    mbarrier_init %f1 {count = 1}\n"
    "    mbarrier_init %e0 {count = 64}\n    mbarrier_init %e1 {count = 64}\n    fence_async\n    yield\n  } {\n"
    "    yield\n  }\n"
    "  barrier\n"
    "  %helps = lt %t, %warp : bool\n"
    "  if %helps {\n    if %is0 {\n"
    "      %k0 = for %block, %tiles, %blocks, %zero : i64 (%tile: i64, %k: i64) {\n"
    "        %s = and %k, %one : i64\n        %so = mul %s, %eight : i64\n        %sr = mul %s, %row : i64\n"
    "        %fo = add %fulls, %so : i64\n        %eo = add %empties, %so : i64\n"
    "        %full = ptr_add %shared, %fo : ptr<shared>\n        %empty = ptr_add %shared, %eo : ptr<shared>\n"
    "        %turn = shr %k, %one : i64\n        %odd = and %turn, %one : i64\n        %other = xor %odd, %one : i64\n"
    "        %parity = convert %other : i32\n        mbarrier_wait %empty, %parity\n"
    "        mbarrier_arrive %full {bytes = 256}\n"
    "        %to = ptr_add %shared, %sr : ptr<shared>\n        %xo = mul %tile, %row : i64\n"
    "        %from = ptr_add %x, %xo : ptr<global>\n        copy_bulk %to, %from, %bytes, %full\n"
    "        %next = add %k, %one : i64\n        yield %next\n      }\n      yield\n    } {\n      yield\n    }\n"
    "    yield\n  } {\n"
    "    %c = sub %t, %warp : i64\n    %co = mul %c, %four : i64\n    %c1 = add %c, %one : i64\n"
    "    %n = and %c1, %last : i64\n    %no = mul %n, %four : i64\n"
    "    %k1 = for %block, %tiles, %blocks, %zero : i64 (%tile: i64, %k: i64) {\n"
    "      %s = and %k, %one : i64\n      %so = mul %s, %eight : i64\n      %sr = mul %s, %row : i64\n"
    "      %fo = add %fulls, %so : i64\n      %eo = add %empties, %so : i64\n"
    "      %full = ptr_add %shared, %fo : ptr<shared>\n      %empty = ptr_add %shared, %eo : ptr<shared>\n"
    "      %turn = shr %k, %one : i64\n      %odd = and %turn, %one : i64\n      %parity = convert %odd : i32\n"
    "      mbarrier_wait %full, %parity\n"
    "      %slot = ptr_add %shared, %sr : ptr<shared>\n      %own = ptr_add %slot, %co : ptr<shared>\n"
    "      %beside = ptr_add %slot, %no : ptr<shared>\n      %v = load %own : i32\n      %w = load %beside : i32\n"
    "      mbarrier_arrive %empty\n"
    "      %tw = mul %w, %ten : i32\n      %sum = add %v, %tw : i32\n      %yt = mul %tile, %row : i64\n"
    "      %yo = add %yt, %co : i64\n      %at = ptr_add %y, %yo : ptr<global>\n      store %sum, %at\n"
    "      %next = add %k, %one : i64\n      yield %next\n    }\n    yield\n  }\n  return\n}\n";

/* Without bulk copies: 64 threads fill a slot and 64 others read it, alternately. */
static const char mbarrier_alternate[] =
    "func kernel tile @turns(%x: tensor<i32, 1, in>, %y: tensor<i32, 1, out>) {\n  %n = const {value = 2} : i64\n"
    "  grid %n (%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @turns.0(%x: ptr<global>, %x.dim0: i64, %x.stride0: i64, %y: ptr<global>, %y.dim0: i64, "
    "%y.stride0: i64, %begin: i64, %end: i64, %shared: ptr<shared>) kernel = @turns phase = 0 threads = 128 "
    "scratch_bytes = 272 {\n"
    "  %thread = thread : i32\n  %t = convert %thread : i64\n  %block = block : i64\n  %blocks = block_count : i64\n"
    "  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n  %four = const {value = 4} : i64\n"
    "  %six = const {value = 6} : i64\n  %eight = const {value = 8} : i64\n  %half = const {value = 64} : i64\n"
    "  %last = const {value = 63} : i64\n  %row = const {value = 256} : i64\n  %ten = const {value = 10} : i32\n"
    "  %tiles = shr %x.dim0, %six : i64\n  %is0 = eq %t, %zero : bool\n"
    "  %full = ptr_add %shared, %row : ptr<shared>\n  %empty = ptr_add %full, %eight : ptr<shared>\n"
    "  if %is0 {\n    mbarrier_init %full {count = 64}\n    mbarrier_init %empty {count = 64}\n    yield\n  } {\n"
    "    yield\n  }\n  barrier\n"
    "  %c = and %t, %last : i64\n  %co = mul %c, %four : i64\n  %own = ptr_add %shared, %co : ptr<shared>\n"
    "  %fills = lt %t, %half : bool\n"
    "  if %fills {\n"
    "    %k0 = for %block, %tiles, %blocks, %zero : i64 (%tile: i64, %k: i64) {\n"
    "      %odd = and %k, %one : i64\n      %other = xor %odd, %one : i64\n      %parity = convert %other : i32\n"
    "      %xt = mul %tile, %row : i64\n      %xo = add %xt, %co : i64\n      %from = ptr_add %x, %xo : ptr<global>\n"
    "      %v = load %from : i32\n      mbarrier_wait %empty, %parity\n      store %v, %own\n"
    "      mbarrier_arrive %full\n      %next = add %k, %one : i64\n      yield %next\n    }\n    yield\n  } {\n"
    "    %c1 = add %c, %one : i64\n    %n = and %c1, %last : i64\n    %no = mul %n, %four : i64\n"
    "    %beside = ptr_add %shared, %no : ptr<shared>\n"
    "    %k1 = for %block, %tiles, %blocks, %zero : i64 (%tile: i64, %k: i64) {\n"
    "      %odd = and %k, %one : i64\n      %parity = convert %odd : i32\n      mbarrier_wait %full, %parity\n"
    "      %v = load %own : i32\n      %w = load %beside : i32\n      mbarrier_arrive %empty\n"
    "      %tw = mul %w, %ten : i32\n      %sum = add %v, %tw : i32\n      %yt = mul %tile, %row : i64\n"
    "      %yo = add %yt, %co : i64\n      %at = ptr_add %y, %yo : ptr<global>\n      store %sum, %at\n"
    "      %next = add %k, %one : i64\n      yield %next\n    }\n    yield\n  }\n  return\n}\n";

#endif
