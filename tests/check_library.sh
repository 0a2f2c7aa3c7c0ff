#!/bin/sh
# Every kernel of the standard library has a comment for docs/stdlib.md above it, and a test in its file that runs it.
set -eu
cd "$(dirname "$0")/../stdlib"
report=$(
    for file in *.tile; do
        awk -v file="$file" '
            /^kernel / {
                name = $2
                sub(/[^A-Za-z0-9_].*/, "", name)
                kernels[++count] = name
                if (before !~ /^\/\/\//) print file ": no comment above " name
            }
            /^test / { inside = 1 }
            /^}/ { inside = 0 }
            inside { text = text " " $0 }
            { before = $0 }
            END {
                for (i = 1; i <= count; i++)
                    if (text !~ ("[^A-Za-z0-9_]run ([a-z_]*[.])?" kernels[i] "[^A-Za-z0-9_]")) print file ": no test runs " kernels[i]
            }' "$file"
    done
)
if [ -n "$report" ]; then
    echo "$report"
    exit 1
fi
echo "$(cat ./*.tile | grep -c '^kernel ') kernels, each with a comment and a test"
