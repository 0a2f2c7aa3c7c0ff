/* Purpose: compute tiles of indices that come from data in words. Where the numbers of such a tile of 64 bits are known to be words, as
 * places that are cut to a tensor whose extents are words, or 32 bits that were extended, it is computed of words, and compared as words
 * (lowering/index_words.c). A vector has twice as many lanes of words, and products and conversions of 64 bits take several instructions.
 * Indices of lanes stay as they are: where neighbours are neighbours in memory, other passes have to see it.
 *
 * Run: --passes=cpu-words,cse,dce
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {narrow}, %at: tensor<i32, 1, in>, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 4} : i64
 *       %N = dim %x {axis = 0} : i64
 *       %i = load_tile %at, %zero, %one, %zero, %n {access = [range]} : i32[4]
 *       %j = convert %i : i64[4]
 *       %least = splat %zero : i64[4]
 *       %most = splat %N : i64[4]
 *       %above = ge %j, %least : bool[4]
 *       %below = lt %j, %most : bool[4]
 *       %mask = and %above, %below : bool[4]
 *       %v = load_tile %x, %j, %mask {access = [gather], parts = [mask]} : f32[4]
 *       store_tile %y, %v, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {narrow, used_narrow, asked_narrow}, %at: tensor<i32, 1, in>, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 4} : i64
 *       %N = dim %x {axis = 0} : i64
 *       %i = load_tile %at, %zero, %one, %zero, %n {access = [range]} : i32[4]
 *       %j = convert %i : i64[4]
 *       %least = splat %zero : i64[4]
 *       %most = splat %N : i64[4]
 *       %0 = convert %least : i32[4]
 *       %above = ge %i, %0 : bool[4]
 *       %1 = convert %most : i32[4]
 *       %below = lt %i, %1 : bool[4]
 *       %mask = and %above, %below : bool[4]
 *       %v = load_tile %x, %j, %mask {access = [gather], parts = [mask]} : f32[4]
 *       store_tile %y, %v, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Needs: facts. Keeps: tile form; every result. Cost: linear. */
#include "cpu/passes.h"
#include "lowering/words.h"

TileResult tile_pass_cpu_words(TilePassContext *context, TileFunc *func) {
    return func->kind == TILE_FUNC_PHASE ? tile_compute_in_words(context, func, true) : TILE_RESULT_UNCHANGED;
}
