"""Triton's tutorial 7: a function that the language has not. There it comes from libdevice, here it is written: asin by the
series that the C library uses for f32, and a kernel that takes any function."""
import torch
from common import compare, device
import tile

m = tile.compile("""
/// Within a few units in the last place for |x| <= 1.
fn asin(x: f32) -> f32 {
    let a = abs(x)
    let far = a > 0.5
    let z = where(far, 0.5 * (1 - a), a * a)
    let r = where(far, sqrt(z), a)
    let p = ((((0.042163199 * z + 0.024181311) * z + 0.045470026) * z + 0.074953003) * z + 0.16666752) * z * r + r
    return copysign(where(far, 1.5707963267948966 - 2 * p, p), x)
}

kernel map[f: fn(f32) -> f32 = asin](x: in f32[N], y: out f32[N])
    tune BN in {1024}
{
    grid n in tiles(N, BN) { y[n] = f(x[n]) }
}
""")

x = torch.rand(98432, device=device) * 2 - 1
compare("asin", lambda: m.map(x), lambda: torch.asin(x), rtol=1e-5, atol=1e-5)
compare("sqrt of the magnitude", lambda: tile.stdlib.map(x[None], f="math.square"), lambda: (x * x)[None])
