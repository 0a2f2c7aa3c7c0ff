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
 *       %1 = const {value = 7} : i64
 *       %2 = add %0, %1 : i64
 *       %3 = div %2, %n : i64
 *       %4 = temp %R, %0 : tensor<f32, 2, temp>
 *       grid %R, %3 (%5: i64, %6: i64) {
 *         %7 = mul %6, %n : i64
 *         %8 = const {value = -0.0} : f32[8]
 *         %9 = const {value = 16} : i64
 *         %10 = for %zero, %C, %9, %8 : f32[8] (%11: i64, %12: f32[8]) {
 *           %13 = sub %C, %11 : i64
 *           %14 = min %13, %9 : i64
 *           %15 = sub %0, %7 : i64
 *           %16 = min %15, %n : i64
 *           %17 = load_tile %w, %5, %11, %one, %zero, %14, %7, %one, %zero, %16 {access = [index, range, range]} : f32[16, 8]
 *           %18 = const {value = -1.0} : f32
 *           %19 = fill %17, %18, %zero, %14, %zero, %16 {axes = [0, 1]} : f32[16, 8]
 *           %20 = const {value = 0.0} : f32[16, 8]
 *           %21 = mul %19, %20 : f32[16, 8]
 *           %22 = reduce %21 {axis = 0, kind = sum} : f32[8]
 *           %23 = add %12, %22 : f32[8]
 *           yield %23
 *         }
 *         %24 = sub %0, %7 : i64
 *         %25 = min %24, %n : i64
 *         store_tile %4, %10, %5, %7, %one, %zero, %25 {access = [index, range]}
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
 *         %26 = const {value = -0.0} : f32[8]
 *         %27 = for %zero, %R, %one, %26 : f32[8] (%28: i64, %29: f32[8]) {
 *           %30 = load_tile %4, %28, %zero, %one, %zero, %n {access = [index, range]} : f32[8]
 *           %half.1 = rem %28, %two : i64
 *           %even.1 = eq %half.1, %zero : bool
 *           %31 = splat %even.1 : bool[8]
 *           %32 = select %31, %26, %30 : f32[8]
 *           %33 = add %29, %32 : f32[8]
 *           yield %33
 *         }
 *         %34 = reshape %27 : f32[1, 8]
 *         %35 = broadcast %34 : f32[8, 8]
 *         %36 = add %sum, %35 : f32[8, 8]
 *         %37 = bitcast %sum : u32[8, 8]
 *         %38 = const {value = 2147483648} : u32[8, 8]
 *         %39 = eq %37, %38 : bool[8, 8]
 *         %40 = reduce %39 {axis = 0, kind = any} : bool[8]
 *         %41 = reduce %40 {axis = 0, kind = any} : bool
 *         %42 = if %41 : f32[8, 8] {
 *           %sum.1 = for %zero, %R, %one, %none : f32[8, 8] (%i.1: i64, %before.1: f32[8, 8]) {
 *             %half.2 = rem %i.1, %two : i64
 *             %even.2 = eq %half.2, %zero : bool
 *             %mask = splat %even.2 : bool[8, 8]
 *             %inner.2 = for %zero, %C, %n, %before.1 : f32[8, 8] (%k.1: i64, %acc.1: f32[8, 8]) {
 *               %a.1 = load_tile %x, %zero, %one, %zero, %n, %k.1, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *               %b.1 = load_tile %w, %i.1, %k.1, %one, %zero, %n, %zero, %one, %zero, %n {access = [index, range, range]} : f32[8, 8]
 *               %v = select %mask, %a.1, %none : f32[8, 8]
 *               %c.1 = dot %v, %b.1, %acc.1 : f32[8, 8]
 *               yield %c.1
 *             }
 *             yield %inner.2
 *           }
 *           yield %sum.1
 *         } {
 *           yield %36
 *         }
 *         store_tile %y, %42, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=cpu-zeros-ahead,canonicalise,cse,dce
 * Needs: licm ahead of it, which moves conditions out of loops; before `programs`. cpu-zeros, behind that, takes the products whose right operand is
 * computed, or whose sums begin with something else. Keeps: every bit of each sum that is a number. Cost: linear; the loops are there twice. */
#include "cpu/passes.h"
#include "lowering/left_out.h"

TileResult tile_pass_cpu_zeros_ahead(TilePassContext *context, TileFunc *func) { return tile_leave_zeros_out(context, func, true); }
