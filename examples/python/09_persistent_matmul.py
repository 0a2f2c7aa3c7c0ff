"""Triton's tutorial 9: a product by as few programs as there are processors, each of which goes through several tiles."""
import torch
from common import compare, device, rand
import tile

m = tile.compile("""
kernel matmul[T: f16 | bf16 | f32](a: in T[M, K], b: in T[K, N], c: out T[M, N], programs: i64)
    tune BM in {64}, BN in {64}, BK in {32}
{
    let rows = cdiv(M, BM)
    let columns = cdiv(N, BN)
    grid p in programs {
        for turn in 0..cdiv(rows * columns - p, programs) {
            let tile_ = p + turn * programs
            let m = tile_ / columns * BM
            let n = tile_ % columns * BN
            var acc = zeros[BM, BN](f32)
            for k in tiles(K, BK) { acc = dot(a[m..m + BM, k], b[k, n..n + BN], acc) }
            c[m..m + BM, n..n + BN] = T(acc)
        }
    }
}
""")

programs = torch.cuda.get_device_properties(0).multi_processor_count if device == "cuda" else torch.get_num_threads()
a, b = rand(300, 256), rand(256, 500)
compare(f"matmul by {programs} programs", lambda: m.matmul(a, b, programs), lambda: a @ b, rtol=2e-2, atol=2e-2)
