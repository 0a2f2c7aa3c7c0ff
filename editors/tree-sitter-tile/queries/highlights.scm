; Lists of words are written by editors/write_grammars.py.
(identifier) @variable

((identifier) @type
  (#any-of? @type "bool" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "f8e4m3" "f8e5m2" "f16" "bf16" "f32" "f64" "i4" "u4" "f4e2m1" "f8e8m0")) ; type
((identifier) @type.builtin
  (#any-of? @type.builtin "any" "num" "int" "float")) ; class
(type_identifier) @type
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin "min" "max" "clamp" "cdiv" "where" "keep" "sum" "prod" "any" "all" "mean" "argmin" "argmax" "cumsum" "cumprod" "dot" "permute" "reshape" "zeros" "full" "iota" "bitcast" "gather" "scatter" "span" "tiles" "reduce" "scan" "sort" "argsort" "topk" "histogram" "searchsorted" "split" "join" "cat" "rand" "randn" "randint" "randperm" "ldexp" "frexp" "broadcast" "shift" "valid" "einsum" "unpack" "pack" "dot_scaled" "atomic_add" "atomic_max" "atomic_min" "atomic_cas" "print" "abs" "floor" "ceil" "round" "trunc" "sqrt" "rsqrt" "exp" "exp2" "expm1" "log" "log2" "log1p" "sin" "cos" "tan" "tanh" "erf" "sigmoid" "asin" "acos" "atan" "sinh" "cosh" "asinh" "acosh" "atanh" "cbrt" "erfc" "erfinv" "lgamma" "popcount" "clz" "ctz" "pow" "atan2" "hypot" "fmod" "nextafter" "mulhi" "copysign" "isnan" "isinf" "fma")) ; function

(call function: (identifier) @function.call)
(call function: (field name: (identifier) @function.call))
(function name: (identifier) @function)
(kernel name: (identifier) @function)
(run kernel: (identifier) @function.call)
(parameter name: (identifier) @variable.parameter)
(generic name: (identifier) @type)
(constant name: (identifier) @constant)
(candidates name: (identifier) @constant)
(setting name: (identifier) @variable.parameter)
(import module: (identifier) @module)
(field name: (identifier) @property)

["kernel" "fn" "const" "let" "var" "temp" "import" "export" "test"] @keyword
["static" "require" "allow" "tune" "in" "out" "inout" "overlap" "cpu" "gpu" "where" "as"] @keyword.modifier
["if" "else" "for" "while" "grid" "return" "step" "ordered" "run" "assert" "static_assert"] @keyword.control
[(break) (continue) (skip)] @keyword.control

[(integer) (float) (number_word)] @number
(boolean) @boolean
(string) @string
(doc_comment) @comment.documentation
[(line_comment) (block_comment)] @comment

["=" "+=" "-=" "*=" "/=" "%=" "&=" "|=" "^=" "<<=" ">>=" "+" "-" "*" "/" "%" "@" "<<" ">>" "&" "^" "|" "==" "!=" "<" "<="
 ">" ">=" "&&" "||" ".." "!" "~" "->"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "." "..."] @punctuation.delimiter
