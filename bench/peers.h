/* The plain C loops that kernels are compared with. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

/* x, w, y: [rows, columns] or one row or column, as for the kernel; b: [columns]; all: every tensor of the kernel, in
 * the order of its parameters. */
#define PEER_ARGUMENTS                                                                                                 \
    const float *restrict x, const float *restrict w, const float *restrict b, float *restrict y, long rows,           \
        long columns, void *const *all
typedef void Peer(PEER_ARGUMENTS);

Peer peer_add, peer_axpy, peer_relu, peer_gelu_tanh, peer_silu, peer_chain, peer_softmax, peer_layernorm, peer_rmsnorm,
    peer_sum_rows, peer_sum_columns, peer_argmax_rows, peer_transpose, peer_logsumexp, peer_cross_entropy,
    peer_cross_entropy_backward, peer_layernorm_backward, peer_layernorm_backward_params, peer_rmsnorm_backward,
    peer_sum_all, peer_norm_all, peer_cumsum_rows, peer_cumsum_columns, peer_take_rows;

#endif
