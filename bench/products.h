/* The sizes for kernels that consist of products, shared with the plain C loops. */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

enum {
    SQUARE = 512,
    THIN = 64,
    LONG = 16384,
    BATCHES = 64,
    SMALL = 128,
    VECTOR = 2048,
    IMAGES = 2,
    SIDE = 56,
    CHANNELS = 64,
    WINDOW = 3,
    LINE = 4096,
    HEADS = 4,
    TOKENS = 512,
    HEAD = 64,
    SEQUENCES = 4,
    PAGE = 16,
    PAGES = 64,
    SIGHT = 128
};

/* Tensors in the order of the kernel's parameters. */
typedef void ProductPeer(void *const *tensors);

ProductPeer peer_matmul_i8, peer_gemv, peer_gemv_t, peer_conv1d, peer_conv1d_depthwise, peer_conv2d,
    peer_conv2d_depthwise, peer_max_pool2d, peer_avg_pool2d, peer_attention, peer_attention_causal,
    peer_attention_window, peer_attention_paged;

#endif
