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
 *       %0 = const {value = 31} : i64
 *       %1 = add %C, %0 : i64
 *       %2 = const {value = 32} : i64
 *       %3 = div %1, %2 : i64
 *       %4 = dim %w {axis = 2} : i64
 *       %5 = const {value = 127} : i64
 *       %6 = add %4, %5 : i64
 *       %7 = const {value = 128} : i64
 *       %8 = div %6, %7 : i64
 *       %9 = temp %R, %3, %4 : tensor<f32, 3, temp>
 *       %10 = mul %R, %3 : i64
 *       %11 = mul %10, %8 : i64
 *       %12 = temp %11 : tensor<f32, 1, temp>
 *       grid %R, %3, %8 (%13: i64, %14: i64, %15: i64) {
 *         %16 = mul %15, %7 : i64
 *         %17 = mul %14, %2 : i64
 *         %18 = sub %C, %17 : i64
 *         %19 = min %18, %2 : i64
 *         %20 = sub %4, %16 : i64
 *         %21 = min %20, %7 : i64
 *         %22 = load_tile %w, %13, %17, %one, %zero, %19, %16, %one, %zero, %21 {access = [index, range, range]} : f32[32, 128]
 *         %23 = const {value = -1.0} : f32
 *         %24 = fill %22, %23, %zero, %19, %zero, %21 {axes = [0, 1]} : f32[32, 128]
 *         %25 = const {value = 0.0} : f32[32, 128]
 *         %26 = mul %24, %25 : f32[32, 128]
 *         %27 = reduce %26 {axis = 0, kind = sum} : f32[128]
 *         store_tile %9, %27, %13, %14, %16, %one, %zero, %21 {access = [index, index, range]}
 *         %28 = mul %13, %3 : i64
 *         %29 = add %28, %14 : i64
 *         %30 = mul %29, %8 : i64
 *         %31 = add %30, %15 : i64
 *         %32 = reduce %27 {axis = 0, kind = sum} : f32
 *         store_tile %12, %32, %31 {access = [index]}
 *         yield
 *       }
 *       %33 = temp %one : tensor<f32, 1, temp>
 *       grid %one (%34: i64) {
 *         %35 = const {value = 0.0} : f32[1024]
 *         %36 = const {value = 1024} : i64
 *         %37 = for %zero, %11, %36, %35 : f32[1024] (%38: i64, %39: f32[1024]) {
 *           %40 = sub %11, %38 : i64
 *           %41 = min %40, %36 : i64
 *           %42 = load_tile %12, %38, %one, %zero, %41 {access = [range]} : f32[1024]
 *           %43 = const {value = 0.0} : f32
 *           %44 = fill %42, %43, %zero, %41 {axes = [0]} : f32[1024]
 *           %45 = add %39, %44 : f32[1024]
 *           yield %45
 *         }
 *         %46 = reduce %37 {axis = 0, kind = sum} : f32
 *         store_tile %33, %46, %zero {access = [index]}
 *         yield
 *       }
 *       grid %one (%p: i64) {
 *         %47 = load_tile %33, %zero {access = [index]} : f32
 *         %48 = isnan %47 : bool
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
 *         %49 = if %48 : f32[8, 8] {
 *           %50 = const {value = -0.0} : f32[8]
 *           %51 = for %zero, %R, %one, %50 : f32[8] (%52: i64, %53: f32[8]) {
 *             %54 = for %zero, %3, %one, %53 : f32[8] (%55: i64, %56: f32[8]) {
 *               %57 = load_tile %9, %52, %55, %zero, %one, %zero, %n {access = [index, index, range]} : f32[8]
 *               %half.1 = rem %52, %two : i64
 *               %even.1 = eq %half.1, %zero : bool
 *               %58 = splat %even.1 : bool[8]
 *               %59 = select %58, %50, %57 : f32[8]
 *               %60 = add %56, %59 : f32[8]
 *               yield %60
 *             }
 *             yield %54
 *           }
 *           %61 = reshape %51 : f32[1, 8]
 *           %62 = broadcast %61 : f32[8, 8]
 *           %63 = add %sum, %62 : f32[8, 8]
 *           yield %63
 *         } {
 *           yield %sum
 *         }
 *         store_tile %y, %49, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
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
