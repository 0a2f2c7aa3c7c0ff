# Signals at random moments leave no half-written file.
. "$(dirname "$0")/../cli_common.sh"
expect 0 ', 0 wrong' python3 "$source_directory/tests/signals/kill.py" "$tilec" 12
sed -n 1p "$work/output"
finish
