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
 *       %25 = temp %one : tensor<f32, 1, temp>
 *       grid %one (%26: i64) {
 *         %27 = const {value = 0.0} : f32[16, 128]
 *         %28 = const {value = 16} : i64
 *         %29 = for %zero, %R, %28, %27 : f32[16, 128] (%30: i64, %31: f32[16, 128]) {
 *           %32 = for %zero, %0, %3, %31 : f32[16, 128] (%33: i64, %34: f32[16, 128]) {
 *             %35 = sub %R, %30 : i64
 *             %36 = min %35, %28 : i64
 *             %37 = sub %0, %33 : i64
 *             %38 = min %37, %3 : i64
 *             %39 = load_tile %5, %30, %one, %zero, %36, %33, %one, %zero, %38 {access = [range, range]} : f32[16, 128]
 *             %40 = const {value = 0.0} : f32
 *             %41 = fill %39, %40, %zero, %36, %zero, %38 {axes = [0, 1]} : f32[16, 128]
 *             %42 = add %34, %41 : f32[16, 128]
 *             yield %42
 *           }
 *           yield %32
 *         }
 *         %43 = reduce %29 {axis = 1, kind = sum} : f32[16]
 *         %44 = reduce %43 {axis = 0, kind = sum} : f32
 *         store_tile %25, %44, %zero {access = [index]}
 *         yield
 *       }
 *       grid %one (%p: i64) {
 *         %45 = load_tile %25, %zero {access = [index]} : f32
 *         %46 = isnan %45 : bool
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
 *         %47 = if %46 : f32[8, 8] {
 *           %48 = const {value = -0.0} : f32[8]
 *           %49 = for %zero, %R, %one, %48 : f32[8] (%50: i64, %51: f32[8]) {
 *             %52 = load_tile %5, %50, %zero, %one, %zero, %n {access = [index, range]} : f32[8]
 *             %half.1 = rem %50, %two : i64
 *             %even.1 = eq %half.1, %zero : bool
 *             %53 = splat %even.1 : bool[8]
 *             %54 = select %53, %48, %52 : f32[8]
 *             %55 = add %51, %54 : f32[8]
 *             yield %55
 *           }
 *           %56 = reshape %49 : f32[1, 8]
 *           %57 = broadcast %56 : f32[8, 8]
 *           %58 = add %sum, %57 : f32[8, 8]
 *           yield %58
 *         } {
 *           yield %sum
 *         }
 *         store_tile %y, %47, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
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
