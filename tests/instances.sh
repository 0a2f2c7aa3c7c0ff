# What an instance of a kernel of the standard library, tests/programs and examples needs beside its types; read by shells
# that compile all of them.

# `kernels_of FILE`: their names.
kernels_of() { sed -n 's/^kernel \([A-Za-z0-9_]*\).*/\1/p' "$1"; }

# `header_of FILE KERNEL`: the text from its name to its body.
header_of() { sed -n "/^kernel $2[[(]/,/{\$/p" "$1"; }

# `types_of FILE KERNEL`: the floats that it takes, one if it takes none by name.
types_of() {
    header=$(header_of "$1" "$2")
    list=$(echo "$header" | sed -n 's/.*[[ ]T: \([a-z0-9 |]*\).*/\1/p' | head -n 1)
    case $list:$header in
    f[136]*) echo "$list" | tr -d '|' ;;
    int:* | i8* | u8*) echo i32 ;;
    *[[\ ][TU]:\ *) echo f32 f16 bf16 ;;
    *) echo f32 ;;
    esac
}

# `variants_of FILE KERNEL`: a word for each of its variants, a setting or -.
variants_of() {
    case $(basename "$1" .tile):$2 in
    digits:dense) echo act=identity act=nn.relu ;;
    attention:attention_scored) echo f=unchanged f=soft_cap f=alibi f=biased ;;
    matmul_epilogue:*) echo epi=plain epi=bias_relu epi=gate_residual ;;
    tests:halves) echo flip=false flip=true ;;
    blend:window) echo D=3 D=8 ;;
    *) echo - ;;
    esac
}

# `instance FILE KERNEL TYPE`: words, settings for tilec.
instance() {
    type=$3
    header=$(header_of "$1" "$2")
    case $(basename "$1" .tile):$2 in *_f8 | float8:* | packed:mxfp8) type=f8e4m3 ;; esac
    for setting in "T=$type" "U=$3" I=i64; do
        case $header in *[[\ ]"${setting%%=*}: "*) echo "$setting" ;; esac
    done
    case $(basename "$1" .tile):$2 in
    attention:attention_paged | attention:attention_window | varlen_attention:*) echo D=64 ;;
    attention:attention_scored) echo D=64 V=64 causal=true ;;
    attention:*) echo D=64 causal=true ;;
    conv:*) echo stride=1 ;;
    pool:avg_pool2d) echo count_outside=false ;;
    softmax:*_row | norm:*_row) echo N=200 ;;
    digits:softmax | digits:argmax_rows) echo N=10 ;;
    gates:top2) echo E=64 ;;
    products:lora) echo R=16 ;;
    transforms:rotary_interleaved) echo D=64 ;;
    values:neighbours | values:windows | conditions:literals) echo N=64 ;;
    blocks:turned_pairs | blocks:below_greatest) echo N=96 ;;
    values:shared_right) echo B=2 M=16 K=16 N=32 ;;
    values:letters) echo B=2 I=8 J=16 K=4 L=8 ;;
    transforms:hadamard | transforms:walsh | transforms:sort_rows | sort:sort_rows | sort:argsort_rows) echo N=256 ;;
    fourier:fft_rows) echo N=256 inverse=false ;;
    fourier:fft_long) echo A=16 B=32 inverse=false ;;
    quantise:quantise_blocks) echo R=16 C=64 ;;
    quantise:dequantise_blocks) echo R=16 C=64 ;;
    radix:search_long) echo right=true ;;
    scan:gated_delta_rule) echo K=64 ;;
    packed:formats) echo N=64 ;;
    packed:int4_groups) echo G=32 ;;
    sort:topk_rows) echo K=8 ;;
    routing:route) echo E=16 K=2 ;;
    scan:selective_scan) echo N=16 ;;
    quantise:*_groups) echo G=32 ;;
    sorts:*_rows) echo N=20 ;;
    float8:lines | float8:folded) echo N=20 ;;
    esac
}
