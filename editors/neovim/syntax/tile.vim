" Highlighting of Tile. The words are written by editors/write_grammars.py.
if exists("b:current_syntax")
    finish
endif

syntax keyword tileControl grid for while if else return break continue assert static_assert skip
syntax keyword tileDeclaration kernel fn const let var temp import export test
syntax keyword tileModifier static require allow tune in out inout unsafe
syntax keyword tileLiteral true false inf nan
syntax keyword tilePlace approx as cpu gpu ordered overlap range run step where
syntax keyword tileType bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64 i4 u4 f4e2m1 f8e8m0 any num int float
syntax keyword tileFunction min max clamp cdiv where keep sum prod any all mean argmin argmax cumsum cumprod dot permute reshape zeros full iota bitcast gather scatter span tiles reduce scan sort argsort topk histogram searchsorted split join cat rand randn randint randperm ldexp frexp broadcast shift valid einsum unpack pack dot_scaled atomic_add atomic_max atomic_min atomic_cas print abs floor ceil round trunc sqrt rsqrt exp exp2 expm1 log log2 log1p sin cos tan tanh erf sigmoid asin acos atan sinh cosh asinh acosh atanh cbrt erfc erfinv lgamma popcount clz ctz pow atan2 hypot fmod nextafter mulhi copysign isnan isinf fma
syntax match tileNumber "\<\d[0-9_]*\%(\.\d[0-9_]*\)\?\%([eE][+-]\?\d\+\)\?\>"
syntax match tileNumber "\<0x[0-9a-fA-F_]\+\>\|\<0b[01_]\+\>"
syntax region tileText start=+"+ skip=+\\.+ end=+"\|$+
syntax match tileComment "//.*$"
syntax match tileDoc "///.*$"
syntax region tileComment start="/\*" end="\*/"

highlight default link tileControl Keyword
highlight default link tileDeclaration Keyword
highlight default link tileModifier StorageClass
highlight default link tileLiteral Constant
highlight default link tilePlace Keyword
highlight default link tileType Type
highlight default link tileFunction Function
highlight default link tileNumber Number
highlight default link tileText String
highlight default link tileComment Comment
highlight default link tileDoc SpecialComment

let b:current_syntax = "tile"
