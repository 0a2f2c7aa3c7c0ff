#!/bin/sh
# tilec explain --html: what the page has, that it needs nothing else, and that lines follow one another in a browser.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

cat >scale.tile <<'TEXT'
import "half.tile"

/// Rows "scaled" & <halved>.
kernel scale[T: f16 | f32](x: in T[M, N], y: out T[M, N]) tune BM in {4}, BN in {64} {
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        let v = f32(x[m, n])
        y[m, n] = T(half(exp(v)))
    }
}
kernel product(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N]) tune B in {64} {
    grid (m, n) in (tiles(M, B), tiles(N, B)) {
        var acc = zeros[B, B](f32)
        for k in tiles(K, 32) { acc = dot(a[m, k], b[k, n], acc) }
        c[m, n] = acc
    }
}
TEXT
printf 'fn half(v: f32) -> f32 {\n    return v * 0.5\n}\n' >half.tile
for target in avx2 avx512 sve sm_80 sm_90a; do
    expect 0 '' "$tilec" explain scale.tile:scale x=zeros:f32[64,100] y=@ --target=$target --html=$target.html
    expect 0 '' grep -q '&lt;halved>' $target.html
    # The line of the kernel and that of the imported function, in the source and in each form.
    expect 0 '' python3 - $target.html <<'PY'
import html.parser, re, sys
class Page(html.parser.HTMLParser):
    side, pieces, outside = "", {}, []
    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "section": self.side = given["id"]
        if "data-l" in given: self.pieces.setdefault(self.side, []).append(given["data-l"])
        self.outside += [v for k, v in attributes if k in ("src", "href")]
page = Page()
text = open(sys.argv[1], encoding="utf-8").read()
page.feed(text)
assert not page.outside and "http" not in re.sub(r'xmlns="[^"]*"', "", text), "the page needs nothing else"
assert page.pieces["source"].count("1:7") == 1 and page.pieces["source"].count("2:2") == 1
for side in ("tile", "decided", "machine", "code"):
    assert "1:7" in page.pieces[side] or "2:2" in page.pieces[side], side
    assert "1:6" in page.pieces[side], side
assert "2:2" in page.pieces["machine"], "the imported function"
assert ".loc" not in text and ".debug" not in text
PY
done
# What the target's passes decided, at the ops: of CPUs the loops of the store, of GPUs the layouts.
expect 0 'nest = [0, 1]}' cat avx512.html
expect 0 'layout 0' cat sm_90a.html
expect 0 '268435456 FLOP of products' sh -c '"$0" explain scale.tile:product a=zeros:f16[512,512] b=zeros:f16[512,512] c=@ --target=sm_90a --html=product.html && cat product.html' "$tilec"
expect 0 'predicted time' cat product.html
# The roofline: the model's for GPUs, measured for code that could run here, none for other machines.
expect 0 'GFLOP/s, of the model' cat product.html
expect 0 '<text x="80.0" y="22.0" text-anchor="start" fill="#000000">Roofline</text>' cat product.html
expect 0 'bound by' cat product.html
expect 0 '' "$tilec" explain scale.tile:product a=zeros:f16[512,512] b=zeros:f16[512,512] c=@ --target=sve --html=far.html
expect 0 'no limits of sve are known here' cat far.html
expect 1 '' grep -q Roofline far.html
if "$tilec" backends | grep -q '^ *avx2 .*lacks'; then
    echo 'skipped: this CPU has no AVX2'
else
    expect 0 'bound by memory' cat avx2.html
    expect 1 '' grep -q Roofline avx2.html
    expect 0 '' "$tilec" explain scale.tile:product a=zeros:f16[512,512] b=zeros:f16[512,512] c=@ --target=avx2 --html=near.html
    expect 0 'GFLOP/s, of f32, measured here' cat near.html
    expect 0 'takes at least' cat near.html
    expect 0 '>Roofline</text>' cat near.html
    expect 0 '>at best</text>' cat near.html
fi
expect 0 'id="layouts"' cat product.html
expect 2 'no/such' "$tilec" explain scale.tile:scale x=zeros:f32[4,4] y=@ --target=avx2 --html=no/such/page.html
expect 1 'needs a value' "$tilec" explain scale.tile:scale x=zeros:f32[4,4] y=@ --html
expect 1 'nothing is decided' "$tilec" explain scale.tile:scale x=zeros:f32[4,4] y=@ --target=interp --html=interp.html
absent interp.html

browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
    echo 'chromium is not installed (scripts/install_packages.sh test)'
    [ -z "${TILE_REQUIRE_EDITOR:-}" ] || complain 'no browser'
    finish
    exit
fi
# look PAGE#PLACE: the page as it is once its script has run
look() { "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --dump-dom "file://$work/$1" 2>/dev/null; }
for page in avx2 sm_90a; do
    look $page.html >plain.dom
    look "$page.html#1:7" >chosen.dom
    expect 0 '' grep -q '<section class="side" id="decisions">' plain.dom
    expect 0 '' grep -q '<section class="side" id="code" hidden' plain.dom
    expect 0 '' grep -q '<button value="decisions" class="on">' plain.dom
    # Nothing is marked at first; then the line, and what belongs to it in each form.
    expect 1 '' grep -qE '<div[^>]*class="([a-z]+ )?on"' plain.dom
    expect 0 '' grep -qE '<div data-l="1:7" class="hot on">' chosen.dom
    for side in tile machine code; do
        expect 0 '' sh -c "grep -o '<section class=\"side\" id=\"$side\".*' chosen.dom | grep -qE '<div data-l=\"1:7\" class=\"on\">'"
    done
    expect 1 '' grep -qE 'data-l="1:6" class="([a-z]+ )?on"' chosen.dom
done
finish
