// The grammar of docs/language.md, section Grammar. A newline that ends a statement is a token of src/scanner.c, which is
// asked only where a statement may end: so newlines in brackets, in headers and behind an operator are blanks.

// From tight to loose, as in docs/language.md, section Expressions.
const POSTFIX = 13, UNARY = 12;
const BINARY = [
  [10, ["*", "/", "%", "@"]],
  [9, ["+", "-"]],
  [8, ["<<", ">>"]],
  [7, ["&"]],
  [6, ["^"]],
  [5, ["|"]],
  [4, ["==", "!=", "<", "<=", ">", ">="]],
  [3, ["&&"]],
  [2, ["||"]],
  [0, [".."]],
];
const ELSE = 1;

// Words that have a meaning in some places, and are names elsewhere.
const PLACES = ["as", "cpu", "gpu", "ordered", "overlap", "run", "step", "where"];

const list = (item) => seq(item, repeat(seq(",", item)));
const listed = (open, item, close) => seq(open, optional(seq(list(item), optional(","))), close);

module.exports = grammar({
  name: "tile",
  extras: ($) => [/\s/, $.line_comment, $.doc_comment, $.block_comment],
  externals: ($) => [$._newline],
  word: ($) => $.identifier,
  inline: ($) => [$._name],

  rules: {
    source_file: ($) => separated($, $._item),

    _item: ($) =>
      choice($.import, $.constant, $.function, $.kernel, $.export, $.test, alias($.assertion, $.static_assertion)),

    import: ($) => seq("import", field("module", choice($._name, $.string))),
    constant: ($) =>
      seq("const", field("name", $._name), optional(seq(":", field("type", $._type))), "=", field("value", $._expression)),
    function: ($) =>
      seq("fn", field("name", $._name), optional($.generics), $.parameters, optional(seq("->", field("type", $._type))),
        field("body", $.block)),
    kernel: ($) =>
      seq("kernel", field("name", $._name), optional($.generics), $.parameters, repeat($._clause), field("body", $.block)),
    export: ($) => seq("export", list($.instance)),
    instance: ($) =>
      seq(optional(seq(field("module", $._name), ".")), field("kernel", $._name),
        optional(seq("[", list(choice($._expression, $.setting)), optional(","), "]")),
        optional(seq("as", field("name", $._name)))),
    setting: ($) => seq(field("name", $._name), "=", field("value", $._expression)),
    test: ($) => seq("test", field("name", $.string), field("body", $.block)),

    generics: ($) => listed("[", $.generic, "]"),
    generic: ($) =>
      seq(field("name", $._name), ":",
        choice(
          seq(alias($._name, $.type_identifier), repeat(seq("|", alias($._name, $.type_identifier)))),
          seq("const", optional($.named_type), optional(seq("=", field("value", $._expression)))),
          seq($.function_type, optional(seq("=", field("value", $._expression)))))),
    parameters: ($) => listed("(", choice($.parameter, $.spread), ")"),
    parameter: ($) => seq(field("name", $._name), ":", field("type", $._type)),
    spread: ($) => seq("...", $._name),

    _type: ($) => seq(optional("const"), optional(choice("in", "out", "inout")), choice($.named_type, $.tuple_type, $.function_type)),
    named_type: ($) => seq(alias($._name, $.type_identifier), optional(listed("[", $._expression, "]"))),
    tuple_type: ($) => listed("(", $._type, ")"),
    function_type: ($) =>
      seq("fn", "(", optional(choice("...", seq(list($._type), optional(seq(",", optional("...")))))), ")",
        optional(seq("->", $._type))),

    _clause: ($) => choice($.static, $.require, $.allow, $.tune),
    static: ($) => seq("static", list($._name)),
    require: ($) => seq("require", list($._expression)),
    allow: ($) => seq("allow", list(choice(seq("overlap", "(", list($._name), ")"), $._name))),
    tune: ($) =>
      seq("tune", optional(choice("cpu", "gpu")), list($.candidates), optional(seq("where", field("where", $._expression)))),
    candidates: ($) => seq(field("name", $._name), "in", "{", list($._expression), "}"),

    block: ($) => seq("{", separated($, $._statement), "}"),
    _statement: ($) =>
      choice($.binding, $.assignment, $.for, $.while, $.grid, $.temp, $.return, $.break, $.continue, $.assertion,
        $._expression),
    binding: ($) => seq(choice("let", "var"), $._names, "=", field("value", $._expression)),
    assignment: ($) =>
      seq(field("target", $._expression),
        field("operator", choice("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")),
        field("value", $._expression)),
    for: ($) =>
      seq(optional(choice("static", "ordered")), "for", $._names, "in", field("range", $._expression),
        optional(seq("step", field("step", $._expression))), field("body", $.block)),
    while: ($) => seq("while", field("condition", $._expression), field("body", $.block)),
    grid: ($) => seq("grid", $._names, "in", field("extents", $._expression), field("body", $.block)),
    temp: ($) => seq("temp", field("name", $._name), ":", field("type", $._type)),
    return: ($) => prec.right(seq("return", optional($._expression))),
    break: ($) => "break",
    continue: ($) => "continue",
    assertion: ($) => seq(choice("assert", "static_assert"), $.arguments),
    _names: ($) => choice(field("name", $._name), seq("(", list(field("name", $._name)), ")")),

    _expression: ($) => choice($.binary, $.else, $.unary, $._postfix),
    binary: ($) =>
      choice(...BINARY.map(([level, operators]) =>
        prec.left(level, seq(field("left", $._expression), field("operator", choice(...operators)), field("right", $._expression))))),
    else: ($) => prec.left(ELSE, seq(field("value", $._expression), "else", field("otherwise", choice($._expression, $.skip)))),
    skip: ($) => "skip",
    unary: ($) => prec(UNARY, seq(field("operator", choice("-", "!", "~")), $._expression)),

    _postfix: ($) => choice($._primary, $.field, $.index, $.call),
    field: ($) => prec(POSTFIX, seq($._postfix, ".", field("name", $._name))),
    index: ($) => prec(POSTFIX, seq(field("value", $._postfix), listed("[", choice(":", "_", $._expression), "]"))),
    call: ($) => prec(POSTFIX, seq(field("function", $._postfix), $.arguments)),
    arguments: ($) => listed("(", choice($._expression, $.setting, $.spread), ")"),

    _primary: ($) =>
      choice($._name, $.integer, $.float, $.string, $.boolean, $.number_word, $.parenthesised, $.tuple, $.if, $.run),
    parenthesised: ($) => seq("(", $._expression, ")"),
    tuple: ($) => seq("(", optional(seq($._expression, ",", optional(seq(list($._expression), optional(","))))), ")"),
    if: ($) =>
      prec.right(seq(optional("static"), "if", field("condition", $._expression), field("then", $.block),
        optional(seq("else", field("otherwise", choice($.block, $.if)))))),
    run: ($) => prec(1, seq("run", field("kernel", $._kernel), $.arguments)),
    _kernel: ($) => choice($._name, alias($.kernel_of_module, $.field)),
    kernel_of_module: ($) => seq($._name, ".", field("name", $._name)),

    _name: ($) => choice($.identifier, ...PLACES.map((word) => alias(word, $.identifier))),
    identifier: ($) => /[a-zA-Z_][a-zA-Z0-9_]*/,
    integer: ($) => /0x[0-9a-fA-F](_?[0-9a-fA-F])*|0b[01](_?[01])*|[0-9](_?[0-9])*/,
    float: ($) => /[0-9](_?[0-9])*\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?|[0-9](_?[0-9])*[eE][+-]?[0-9](_?[0-9])*/,
    string: ($) => /"([^"\\\n]|\\[nt"\\])*"/,
    boolean: ($) => choice("true", "false"),
    number_word: ($) => choice("inf", "nan"),

    line_comment: ($) => token(seq("//", /[^\n]*/)),
    doc_comment: ($) => token(prec(1, seq("///", /[^\n]*/))),
    block_comment: ($) => token(seq("/*", /[^*]*\*+([^/*][^*]*\*+)*/, "/")),
  },
});

// Statements or items, each of which ends with a newline or `;`, but the last may not.
function separated($, one) {
  const end = seq(choice($._newline, ";"), repeat(";"));
  return seq(repeat(";"), optional(seq(one, repeat(seq(end, one)), optional(end))));
}
