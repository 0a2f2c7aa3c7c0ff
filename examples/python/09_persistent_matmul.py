"""Triton's tutorial 9: a product by as few programs as there are processors, each of which goes through several tiles."""
import torch
from common import compare, device, rand
import tile

m = tile.compile("""
kernel matmul[T: f16 | bf16 | f32](a: in T[M, K], b: in T[K, N], c: out T[M, N], programs: i64)
    tune BM in {64}, BN in {64}, BK in {32}
{
    let each = cdiv(cdiv(M, BM), programs) * BM
    grid p in programs {
        for m in tiles(p * each..min(M, p * each + each), BM) {
            for n in tiles(N, BN) {
                var acc = zeros[BM, BN](f32)
                for k in tiles(K, BK) { acc = dot(a[m, k], b[k, n], acc) }
                c[m, n] = T(acc)
            }
        }
    }
}
""")

programs = torch.cuda.get_device_properties(0).multi_processor_count if device == "cuda" else torch.get_num_threads()
a, b = rand(300, 256), rand(256, 500)
compare(f"matmul by {programs} programs", lambda: m.matmul(a, b, programs), lambda: a @ b, rtol=2e-2, atol=2e-2)
