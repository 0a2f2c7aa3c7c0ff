/* A pass of one's own: pow(x, n) for the whole numbers n of 2 to 16 becomes a few products, and pow(x, 0.5) a square root.
 *
 * The compiler does not do so by itself: a product rounds otherwise than pow does. Who can do with a few units in the last
 * place, and with sqrt(-0) = -0 and sqrt(-inf) = nan, saves most of the time that pow takes.
 *
 *     cc -shared -fPIC small_powers.c $(pkg-config --cflags tile) -o small_powers.so
 *     tilec run polynomial.tile x=rand:f32[1000000] y=@ --load-pass=small_powers.so */
#include <string.h>

#include <tile/pass.h>

enum { LARGEST_POWER = 16 };

/* x to the n, by squaring. */
static TileIrValue *build_power(TileIr *ir, TileIrValue *x, int n) {
    TileIrValue *result = NULL;
    for (; n > 0; n /= 2) {
        if (n % 2) result = result ? tile_ir_binary(ir, "mul", result, x) : x;
        if (n > 1) x = tile_ir_binary(ir, "mul", x, x);
    }
    return result;
}

static void visit(TileIr *ir, TileIrOp *op, void *state) {
    double exponent;
    (void)state;
    if (strcmp(tile_ir_op_name(op), "pow") != 0 || !tile_ir_constant(tile_ir_operand(op, 1), &exponent)) return;
    bool root = exponent == 0.5, power = exponent >= 2 && exponent <= LARGEST_POWER && exponent == (int)exponent;
    if (!root && !power) return;
    TileIrValue *x = tile_ir_operand(op, 0);
    tile_ir_before(ir, op);
    tile_ir_replace(ir, op, root ? tile_ir_unary(ir, "sqrt", x) : build_power(ir, x, (int)exponent));
    tile_ir_erase(ir, op);
}

static void run(TileIr *ir, void *host) {
    (void)host;
    if (!tile_ir_is_machine(ir)) tile_ir_walk(ir, visit, NULL);
}

/* Functions have been put in the place of their calls, constants are known, and equal values are found afterwards. */
static const TilePass small_powers = {.struct_size = sizeof small_powers,
                                      .name = "small-powers",
                                      .doc = "makes products of powers with small whole exponents",
                                      .after = "contract",
                                      .run = run};
static const TilePass *const passes[] = {&small_powers, NULL};

TILE_DEFINE_PASSES(passes)
