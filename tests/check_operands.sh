#!/bin/sh
# Operands of ops that have more than two, or a variable number, are accessed by name (lang/ir/operands.def): only the
# decoder uses their indices.
set -eu
cd "$(dirname "$0")/.."
bare='tile_op_operand\([^,()]*(\([^()]*\))?[^,()]*, *([2-9]|[0-9]+ *\+|[a-z_]*(first|count)[a-z_]* *[+-])'
bare="$bare|operand_of\(exporter, op, [2-9]|operand_count - [a-z0-9]"
report=$(grep -rnE "$bare" --include='*.c' lang/index lowering cpu ptx mlir_bridge driver/ahead driver/api tools || true)
[ -z "$report" ] || { echo "$report" | sed 's/$/   (an operand by its number: see lang\/ir\/operands.h)/'; exit 1; }
missing=$(awk -F', *' '/^OP\(/ { sub(/^OP\(/, "", $1); if ($4 == "ANY" || $4 > 2) print $1 }' lang/ir/ops.def | while read -r op; do
    grep -q "^OPERANDS($op," lang/ir/operands.def || echo "$op"
done)
[ -z "$missing" ] || { echo "lang/ir/operands.def has no row of: $missing"; exit 1; }
echo "operands are asked for by name"
