#!/bin/sh
# Each public header compiles by itself, in C11 and in C++17, with all warnings.
set -eu
cd "$(dirname "$0")/.."
for header in include/tile/*.h; do
    name=${header#include/}
    echo "#include \"$name\"" | ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c -
    echo "#include \"$name\"" | ${CXX:-c++} -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c++ -
done
echo "public headers stand alone in C and C++"
