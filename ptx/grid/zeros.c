/* Purpose: multiply no zeros. A left operand that is where(condition, x, 0) is all zero if a part of the condition that is the same for all
 * lanes is false, as in every second row of a transposed convolution. The loop over k that adds up its products then runs only where
 * that part is true. A product of zeros is 0 or -0, or no number if the right operand is none: what such products add to a column, 0, -0
 * or NaN, is computed once for all programs, by a grid of its own, and added behind the loops.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in>, %w: tensor<f32, 3, in>, %y: tensor<f32, 2, out> {noalias}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8, 8]
 *       %R = dim %w {axis = 0} : i64
 *       %C = dim %w {axis = 1} : i64
 *       grid %one (%p: i64) {
 *         %sum = for %zero, %R, %one, %none : f32[8, 8] (%i: i64, %before: f32[8, 8]) {
 *           %half = rem %i, %two : i64
 *           %even = eq %half, %zero : bool
 *           %mask = splat %even : bool[8, 8]
 *           %inner = for %zero, %C, %n, %before : f32[8, 8] (%k: i64, %acc: f32[8, 8]) {
 *             %a = load_tile %x, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *             %b = load_tile %w, %i, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [index, range, range]} : f32[8, 8]
 *             %v = select %mask, %a, %none : f32[8, 8]
 *             %c = dot %v, %b, %acc : f32[8, 8]
 *             yield %c
 *           }
 *           yield %inner
 *         }
 *         store_tile %y, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in>, %w: tensor<f32, 3, in>, %y: tensor<f32, 2, out> {noalias}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8, 8]
 *       %R = dim %w {axis = 0} : i64
 *       %C = dim %w {axis = 1} : i64
 *       %0 = dim %w {axis = 2} : i64
 *       %1 = const {value = 127} : i64
 *       %2 = add %0, %1 : i64
 *       %3 = const {value = 128} : i64
 *       %4 = div %2, %3 : i64
 *       %5 = temp %R, %0 : tensor<f32, 2, temp>
 *       grid %R, %4 (%6: i64, %7: i64) {
 *         %8 = const {value = -0.0} : f32[128]
 *         %9 = mul %7, %3 : i64
 *         %10 = sub %0, %9 : i64
 *         %11 = min %10, %3 : i64
 *         %12 = const {value = 16} : i64
 *         %13 = for %zero, %C, %12, %8 : f32[128] (%14: i64, %15: f32[128]) {
 *           %16 = sub %C, %14 : i64
 *           %17 = min %16, %12 : i64
 *           %18 = load_tile %w, %6, %14, %one, %zero, %17, %9, %one, %zero, %11 {access = [index, range, range]} : f32[16, 128]
 *           %19 = const {value = -1.0} : f32
 *           %20 = fill %18, %19, %zero, %17, %zero, %11 {axes = [0, 1]} : f32[16, 128]
 *           %21 = const {value = 0.0} : f32[16, 128]
 *           %22 = mul %20, %21 : f32[16, 128]
 *           %23 = reduce %22 {axis = 0, kind = sum} : f32[128]
 *           %24 = add %15, %23 : f32[128]
 *           yield %24
 *         }
 *         store_tile %5, %13, %6, %9, %one, %zero, %11 {access = [index, range]}
 *         yield
 *       }
 *       grid %one (%p: i64) {
 *         %sum = for %zero, %R, %one, %none : f32[8, 8] (%i: i64, %before: f32[8, 8]) {
 *           %half = rem %i, %two : i64
 *           %even = eq %half, %zero : bool
 *           %inner = if %even : f32[8, 8] {
 *             %inner.1 = for %zero, %C, %n, %before : f32[8, 8] (%k: i64, %acc: f32[8, 8]) {
 *               %a = load_tile %x, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *               %b = load_tile %w, %i, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [index, range, range]} : f32[8, 8]
 *               %c = dot %a, %b, %acc : f32[8, 8]
 *               yield %c
 *             }
 *             yield %inner.1
 *           } {
 *             yield %before
 *           }
 *           yield %inner
 *         }
 *         %25 = const {value = -0.0} : f32[8]
 *         %26 = for %zero, %R, %one, %25 : f32[8] (%27: i64, %28: f32[8]) {
 *           %29 = load_tile %5, %27, %zero, %one, %zero, %n {access = [index, range]} : f32[8]
 *           %half.1 = rem %27, %two : i64
 *           %even.1 = eq %half.1, %zero : bool
 *           %30 = splat %even.1 : bool[8]
 *           %31 = select %30, %25, %29 : f32[8]
 *           %32 = add %28, %31 : f32[8]
 *           yield %32
 *         }
 *         %33 = reshape %26 : f32[1, 8]
 *         %34 = broadcast %33 : f32[8, 8]
 *         %35 = add %sum, %34 : f32[8, 8]
 *         store_tile %y, %35, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-zeros,canonicalise,cse,dce
 * Needs: licm ahead of it, which moves conditions out of loops. Keeps: tile form; every bit of sums that begin at 0, but
 * for the sign of a 0 that an underflow has left. Cost: linear. */
#include "lowering/left_out.h"
#include "ptx/passes.h"

TileResult tile_pass_gpu_zeros(TilePassContext *context, TileFunc *func) { return tile_leave_zeros_out(context, func, false); }
