# What an instance of a kernel of the standard library needs beside its types; read by shells that compile all of them.
# `instance FILE KERNEL TYPE`: words, settings for tilec.
instance() {
    type=$3
    case $2 in *_f8) type=f8e4m3 ;; esac
    for setting in "T=$type" "U=$3" I=i64; do
        if grep -q "[[ ]${setting%%=*}: " "$1"; then echo "$setting"; fi
    done
    case $(basename "$1" .tile):$2 in
    attention:attention_paged | attention:attention_window) echo D=64 ;;
    attention:*) echo D=64 causal=true ;;
    conv:*) echo stride=1 ;;
    pool:avg_pool2d) echo count_outside=false ;;
    softmax:*_row | norm:*_row) echo N=200 ;;
    esac
}
# `kernels_of FILE`: their names.
kernels_of() { sed -n 's/^kernel \([A-Za-z0-9_]*\).*/\1/p' "$1"; }
