/* Purpose: compute tiles of indices in words. Where the numbers of a tile of 64 bits are known to be words, as the places in a tensor are
 * whose extents are words, it is computed of words: sums, products, minima, what a condition chooses. A number that a clamp cuts to
 * words may be cut before: the conversion of a float to a word does so by itself. Who reads such a tile as a word, a comparison or a conversion,
 * reads that one; for others it is extended. A GPU computes with 64 bits in two steps, or four, and converts floats to them slowly.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {narrow}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 4} : i64
 *       %N = dim %x {axis = 0} : i64
 *       %last = sub %N, %one : i64
 *       %i = iota {axis = 0} : i64[4]
 *       %most = splat %last : i64[4]
 *       %j = min %i, %most : i64[4]
 *       %v = load_tile %x, %j {access = [gather]} : f32[4]
 *       store_tile %y, %v, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {narrow, used_narrow, asked_narrow}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 4} : i64
 *       %N = dim %x {axis = 0} : i64
 *       %last = sub %N, %one : i64
 *       %0 = iota {axis = 0} : i32[4]
 *       %1 = convert %last : i32
 *       %2 = splat %1 : i32[4]
 *       %3 = min %0, %2 : i32[4]
 *       %j = convert %3 : i64[4]
 *       %v = load_tile %x, %j {access = [gather]} : f32[4]
 *       store_tile %y, %v, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Run: --passes=gpu-words,cse,dce
 * Needs: program_id, whose places are below their extents. Keeps: tile form; every result. Cost: linear. */
#include "lowering/words.h"
#include "ptx/passes.h"

TileResult tile_pass_gpu_words(TilePassContext *context, TileFunc *func) { return tile_compute_in_words(context, func, false); }
