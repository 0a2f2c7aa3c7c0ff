"""Every request of `tilec lsp`, by pytest-lsp: the client validates what it gets against the protocol. As Visual Studio
Code, which counts in UTF-16, and as Neovim 0.11, which offers UTF-8 too."""
import asyncio
import os
import pathlib

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

TEXT = """\
import math
import "lib.tile"

const HALF = 0.5

/// Rows that are scaled.
kernel rows[T: f16 | f32](x: in T[M, N], y: out T[M, N]) tune BM in {4, 8}, BN in {64} {
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        let v = f32(x[m, n])
        let half = v * HALF; /* é\U0001f600 */ let w = math.square(half)
        var total = zeros[BM](f32)
        total = total + sum(exp(w), axis = 1)
        y[m, n] = T(scaled(w) + total[:, _])
    }
}

export rows[f16] as half_rows

test "half" {
    let r = run rows(x = ones(f32, 3, 5), BN = 64)
    assert(all(r > 0))
}
"""
LIBRARY = """\
/// Twice as much.
fn scaled(a: f32) -> f32 { return a * 2 }
"""


def path_uri(path):
    return pathlib.Path(path).as_uri()


def count_units(client, text):
    return len(text.encode("utf-8")) if client.bytes else len(text.encode("utf-16-le")) // 2


class Place:
    """A word of the text, as the client counts: in UTF-16, or in bytes."""

    def __init__(self, client, text, word, nth=0, within=0):
        at = -1
        for _ in range(nth + 1):
            at = text.index(word, at + 1)
        at += within
        begin = text.rfind("\n", 0, at) + 1
        self.line, self.client = text.count("\n", 0, at), client
        self.character = self.units(text[begin:at])
        self.end = self.character + self.units(word[within:])

    def units(self, text):
        return count_units(self.client, text)

    def position(self):
        return lsp.Position(self.line, self.character)

    def range(self):
        return lsp.Range(self.position(), lsp.Position(self.line, self.end))


@pytest_lsp.fixture(
    params=["visual_studio_code", "neovim@0.11"],
    config=ClientServerConfig(server_command=[os.environ["TILEC"], "lsp", "--stdio"]),
)
async def client(lsp_client: LanguageClient, request, tmp_path):
    (tmp_path / "lib.tile").write_text(LIBRARY)
    (tmp_path / "main.tile").write_text(TEXT)
    lsp_client.watched = []

    @lsp_client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def register(params):
        lsp_client.watched += params.registrations

    parameters = lsp.InitializeParams(
        capabilities=client_capabilities(request.param),
        workspace_folders=[lsp.WorkspaceFolder(path_uri(tmp_path), "here")],
    )
    answer = await lsp_client.initialize_session(parameters)
    lsp_client.bytes = answer.capabilities.position_encoding == lsp.PositionEncodingKind.Utf8
    lsp_client.folder, lsp_client.uri = tmp_path, path_uri(tmp_path / "main.tile")
    yield
    await lsp_client.shutdown_session()
    assert lsp_client.watched or request.param != "visual_studio_code"


def open_text(client, text, uri=None, version=1):
    item = lsp.TextDocumentItem(uri=uri or client.uri, language_id="tile", version=version, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    return lsp.TextDocumentIdentifier(uri=item.uri)


def change(client, document, version, text, where=None):
    new = (
        lsp.TextDocumentContentChangePartial(range=where, text=text)
        if where
        else lsp.TextDocumentContentChangeWholeDocument(text=text)
    )
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            text_document=lsp.VersionedTextDocumentIdentifier(uri=document.uri, version=version), content_changes=[new]
        )
    )


async def diagnostics(client, uri=None, until=None):
    """The diagnostics, once they satisfy `until`."""
    uri = uri or client.uri
    for _ in range(100):
        found = client.diagnostics.get(uri)
        if found is not None and (until is None or until(found)):
            return list(found)
        await asyncio.wait_for(client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), 30)
    raise AssertionError(client.diagnostics.get(uri))


async def hover(client, document, place):
    answer = await client.text_document_hover_async(lsp.HoverParams(text_document=document, position=place.position()))
    return answer.contents.value if answer else None


def apply(client, text, edits):
    """The text with the edits."""
    lines = text.split("\n")

    def offset(position):
        line, units, at = lines[position.line], 0, 0
        while units < position.character and at < len(line):
            units += count_units(client, line[at])
            at += 1
        return sum(len(l) + 1 for l in lines[: position.line]) + at

    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


@pytest.mark.asyncio
async def test_a_right_file_has_no_diagnostics(client):
    open_text(client, TEXT)
    assert await diagnostics(client) == []


@pytest.mark.asyncio
async def test_diagnostics_as_one_types(client):
    document = open_text(client, TEXT)
    assert await diagnostics(client) == []
    place = Place(client, TEXT, "square(half", within=7)
    change(client, document, 2, "halve", lsp.Range(place.position(), lsp.Position(place.line, place.end)))
    (found,) = await diagnostics(client, until=lambda d: d)
    assert found.code == "unknown-name" and found.severity == lsp.DiagnosticSeverity.Error
    assert found.range.start == place.position(), "behind a character of two units and four bytes"
    change(client, document, 3, TEXT)
    assert await diagnostics(client, until=lambda d: not d) == []
    change(client, document, 4, "kernel k(")
    assert (await diagnostics(client, until=lambda d: d))[0].code == "expected"


@pytest.mark.asyncio
async def test_diagnostics_of_warnings_notes_and_values(client):
    open_text(client, "kernel k(x: in f32[N], y: out f32[N]) {\n    grid n in tiles(N, 4) {\n        let a = 1\n        y[n] = zeros[8](f32)\n    }\n}\n")
    (found,) = await diagnostics(client)
    assert found.code == "shape-mismatch" and found.related_information
    document = lsp.TextDocumentIdentifier(uri=client.uri)
    change(client, document, 2, "kernel k(x: in f32[N], y: out f32[N]) {\n    grid n in tiles(N, 4) {\n        let a = 1\n        y[n] = x[n]\n    }\n}\n")
    (unused,) = await diagnostics(client, until=lambda d: [x.code for x in d] == ["unused-name"])
    assert unused.severity == lsp.DiagnosticSeverity.Warning and list(unused.tags) == [lsp.DiagnosticTag.Unnecessary]


@pytest.mark.asyncio
async def test_imports_are_those_of_open_buffers(client):
    document = open_text(client, TEXT)
    assert await diagnostics(client) == []
    library = open_text(client, LIBRARY.replace("scaled", "scale"), path_uri(client.folder / "lib.tile"))
    (found,) = await diagnostics(client, until=lambda d: d)
    assert found.code == "unknown-name" and "scaled" in found.message
    change(client, library, 2, "fn scaled(a: f32) -> f32 { return a * }\n")
    (found,) = await diagnostics(client, until=lambda d: d and "lib.tile" in d[0].message)
    assert found.range.start.line == 1, "at the import"
    assert found.related_information[0].location.uri == library.uri
    change(client, library, 3, LIBRARY)
    assert await diagnostics(client, until=lambda d: not d) == []
    change(client, library, 4, "const X = 1\n")
    assert await diagnostics(client, until=lambda d: d)
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(text_document=library))  # the file counts again
    assert await diagnostics(client, until=lambda d: not d) == []
    assert document


@pytest.mark.asyncio
async def test_files_that_change_on_disk(client):
    open_text(client, TEXT)
    assert await diagnostics(client) == []
    path = client.folder / "lib.tile"
    path.write_text("const NOTHING = 1\n")
    event = lsp.FileEvent(uri=path_uri(path), type=lsp.FileChangeType.Changed)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes=[event]))
    assert (await diagnostics(client, until=lambda d: d))[0].code == "unknown-name"


@pytest.mark.asyncio
async def test_hover(client):
    document = open_text(client, TEXT)

    async def at(word, nth=0, within=0):
        return await hover(client, document, Place(client, TEXT, word, nth, within))

    assert "let v: f32[BM, BN]" in await at("v = f32")
    assert "the lanes of `m` past M (axis 0), since `x[m, n]`" in await at("v = f32")
    assert "the lanes of `n` past N (axis 1)" in await at("v * HALF")
    load = await at(", n])")
    assert "T[BM, BN]" in load and "reads at most 1024 bytes with BM = 4, BN = 64" in load
    assert "x: in T[M, N]" in await at("x[m")
    assert "kernel rows" in await at("rows(x =") and "Rows that are scaled" in await at("rows(x =")
    assert "fn scaled(a: f32) -> f32" in await at("scaled(w)") and "Twice as much" in await at("scaled(w)")
    assert "const HALF = 0.5" in await at("HALF; ")
    assert "tune BM in {4, 8}" in await at("BM](f32)")
    assert "M: a dimension of `rows`" in await at("M, BM")
    assert "T: f16 | f32" in await at("T(scaled")
    assert "e to the x" in await at("exp(")
    assert "sum" in await at("sum(exp")
    assert "var total: f32[BM]" in await at("total = total", within=8)
    assert "256 times `exp`" in await at("exp(w)", within=3)
    assert "elements of 32 bits" in await at("f32(x")
    assert "import math" in await at("math.sq")
    assert "square" in await at("square(")
    assert await at("{\n    grid") is None


@pytest.mark.asyncio
async def test_definition(client):
    document = open_text(client, TEXT)

    async def of(word, nth=0, within=0):
        position = Place(client, TEXT, word, nth, within).position()
        return await client.text_document_definition_async(lsp.DefinitionParams(text_document=document, position=position))

    assert (await of("v * HALF")).range.start == Place(client, TEXT, "v = f32").position()
    assert (await of("half)")).range == Place(client, TEXT, "let half", within=4).range()
    assert (await of("M, BM")).range.start == Place(client, TEXT, "M, N], y").position()
    assert (await of("BN = 64")).range.start == Place(client, TEXT, "BN in {64}").position()
    scaled = await of("scaled(w)")
    assert scaled.uri == path_uri(client.folder / "lib.tile") and scaled.range.start == lsp.Position(1, 3)
    assert (await of("lib.tile")).uri == scaled.uri
    square = await of("square(")
    assert square.uri == "tile-stdlib:///math.tile"
    assert (await of("exp(")) is None


@pytest.mark.asyncio
async def test_the_standard_library_can_be_read(client):
    answer = await client.workspace_text_document_content_async(
        lsp.TextDocumentContentParams(uri="tile-stdlib:///math.tile")
    )
    assert "fn square" in answer.text
    with pytest.raises(Exception):
        await client.workspace_text_document_content_async(lsp.TextDocumentContentParams(uri="tile-stdlib:///none.tile"))


async def references(client, document, place, declaration=True):
    return await client.text_document_references_async(
        lsp.ReferenceParams(
            text_document=document,
            position=place.position(),
            context=lsp.ReferenceContext(include_declaration=declaration),
        )
    )


@pytest.mark.asyncio
async def test_references(client):
    document = open_text(client, TEXT)
    assert len(await references(client, document, Place(client, TEXT, "total = zeros"))) == 4
    assert len(await references(client, document, Place(client, TEXT, "total = zeros"), False)) == 3
    assert len(await references(client, document, Place(client, TEXT, "BN in"))) == 3
    library = open_text(client, LIBRARY, path_uri(client.folder / "lib.tile"))
    found = await references(client, library, Place(client, LIBRARY, "scaled"))
    assert {x.uri for x in found} == {library.uri, client.uri} and len(found) == 2


@pytest.mark.asyncio
async def test_references_in_files_that_are_not_open(client):
    (client.folder / "other").mkdir()
    (client.folder / "other" / "user.tile").write_text('import "../lib.tile"\nfn f(a: f32) -> f32 { return scaled(scaled(a)) }\n')
    document = open_text(client, TEXT)
    found = await references(client, document, Place(client, TEXT, "scaled(w)"))
    assert sorted(pathlib.Path(x.uri).name for x in found) == ["lib.tile", "main.tile", "user.tile", "user.tile"]


@pytest.mark.asyncio
async def test_highlights(client):
    document = open_text(client, TEXT)
    position = Place(client, TEXT, "w = math").position()
    found = await client.text_document_document_highlight_async(
        lsp.DocumentHighlightParams(text_document=document, position=position)
    )
    assert len(found) == 3


async def rename(client, document, place, name):
    return await client.text_document_rename_async(
        lsp.RenameParams(text_document=document, position=place.position(), new_name=name)
    )


@pytest.mark.asyncio
async def test_rename(client):
    document = open_text(client, TEXT)
    answer = await rename(client, document, Place(client, TEXT, "half)"), "halves")
    renamed = apply(client, TEXT, answer.changes[client.uri])
    assert renamed == TEXT.replace("let half", "let halves").replace("(half)", "(halves)")
    answer = await rename(client, document, Place(client, TEXT, "BN = 64"), "COLUMNS")
    assert apply(client, TEXT, answer.changes[client.uri]) == TEXT.replace("BN", "COLUMNS")
    answer = await rename(client, document, Place(client, TEXT, "scaled(w)"), "twice")
    assert set(answer.changes) == {client.uri, path_uri(client.folder / "lib.tile")}
    assert apply(client, TEXT, answer.changes[client.uri]) == TEXT.replace("scaled(w)", "twice(w)")
    prepared = await client.text_document_prepare_rename_async(
        lsp.PrepareRenameParams(text_document=document, position=Place(client, TEXT, "half)").position())
    )
    assert prepared.start == Place(client, TEXT, "half)").position()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "word, name, why",
    [
        ("w = math", "v", "taken|twice|already"),
        ("v = f32", "exp", "would mean something else"),
        ("w = math", "kernel", "is no name"),
        ("w = math", "2w", "is no name"),
        ("exp(w", "f", "only names that a text binds"),
        ("square(", "f", "the standard library"),
        ("math.sq", "f", "a module has the name of its file"),
        ("scaled(w)", "sum", "would mean something else"),
        ("{\n    grid", "f", "no name here"),
    ],
)
async def test_renames_that_are_refused(client, word, name, why):
    document = open_text(client, TEXT)
    with pytest.raises(Exception, match=why):
        await rename(client, document, Place(client, TEXT, word), name)


async def labels(client, document, line, character):
    answer = await client.text_document_completion_async(
        lsp.CompletionParams(text_document=document, position=lsp.Position(line, character))
    )
    return {item.label: item for item in answer}


@pytest.mark.asyncio
async def test_completion(client):
    text = TEXT.replace("        var total", "        let q = \n        var total")
    document = open_text(client, text)
    line = text[: text.index("let q")].count("\n")
    here = await labels(client, document, line, 16)
    assert {"v", "w", "m", "BM", "M", "x", "HALF", "scaled", "square", "math", "exp", "f32", "let"} <= set(here)
    assert "total" not in here and "rows" not in here and "r" not in here
    assert here["v"].detail == "f32[BM, BN]" and here["scaled"].documentation == "Twice as much."
    assert here["clamp"].detail.startswith("clamp(v, low, high)")

    async def after(inserted):
        change(client, document, 2, text.replace("let q = ", "let q = " + inserted))
        return set(await labels(client, document, line, 16 + len(inserted)))

    assert {"square"} <= await after("math.") and "v" not in await after("math.")
    assert await after("m.") == {"start", "size", "end", "idx"}
    assert await after("v.") == {"T"}
    change(client, document, 3, TEXT + 'test "t" { let a = run \n}\nimport \n')
    last = TEXT.count("\n")
    assert "rows" in await labels(client, document, last, 23)
    assert {"attention", "math"} <= set(await labels(client, document, last + 2, 7))
    change(client, document, 4, TEXT + 'test "t" { let a = run rows(\n}\n')
    assert {"x", "y", "BM", "BN", "T"} <= set(await labels(client, document, last, 28))


@pytest.mark.asyncio
async def test_a_file_of_tests(client):
    """Kernels of an import: definition, completion and renaming of the names of their headers, from either file."""
    tests = 'import "main.tile"\nimport softmax\ntest "t" {\n    let y = run rows(x = ones(f32, 3, 5), BN = 64)\n    let z = run softmax.softmax(x = y)\n}\nexport softmax.softmax[f32, BM = 1] as one\n'
    (client.folder / "tests.tile").write_text(tests)
    uri = path_uri(client.folder / "tests.tile")
    document = open_text(client, tests, uri)
    assert await diagnostics(client, uri) == []

    async def of(word):
        position = Place(client, tests, word).position()
        return await client.text_document_definition_async(lsp.DefinitionParams(text_document=document, position=position))

    assert (await of("rows(")).uri == client.uri
    place = await of("BN = 64")
    assert place.uri == client.uri and place.range.start == Place(client, TEXT, "BN in {64}").position()
    assert (await of("softmax(x")).uri == "tile-stdlib:///softmax.tile"
    main = open_text(client, TEXT)
    answer = await rename(client, main, Place(client, TEXT, "BN in"), "COLUMNS")
    assert apply(client, tests, answer.changes[uri]) == tests.replace("BN", "COLUMNS")
    answer = await rename(client, document, Place(client, tests, "x = ones"), "values")
    assert apply(client, TEXT, answer.changes[client.uri]).count("values") == 3
    assert {"x", "y", "BM", "BN", "T"} <= set(await labels(client, document, 3, len("    let y = run rows(")))
    assert "softmax" in await labels(client, document, 4, len("    let z = run softmax."))
    assert "x" in await labels(client, document, 4, len("    let z = run softmax.softmax("))
    exported = await of("softmax[f32")
    assert exported.uri == "tile-stdlib:///softmax.tile" and exported == await of("softmax(x")
    assert (await of("BM = 1")).uri == "tile-stdlib:///softmax.tile"
    assert (await of("softmax.softmax[")).range.start == lsp.Position(0, 0)
    assert "softmax" in await labels(client, document, 6, len("export softmax."))
    assert "BN" in await labels(client, document, 6, len("export softmax.softmax[f32, "))


@pytest.mark.asyncio
async def test_formatting(client):
    ugly = "const  A=1\n\n\n\nfn f(a:f32)->f32{return a*2}\n"
    document = open_text(client, ugly)
    options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
    edits = await client.text_document_formatting_async(
        lsp.DocumentFormattingParams(text_document=document, options=options)
    )
    assert apply(client, ugly, edits) == "const A = 1\n\nfn f(a: f32) -> f32 { return a * 2 }\n"
    change(client, document, 2, TEXT)
    parameters = lsp.DocumentFormattingParams(text_document=document, options=options)
    edits = await client.text_document_formatting_async(parameters)
    once = apply(client, TEXT, edits)
    change(client, document, 3, once)
    assert not await client.text_document_formatting_async(parameters)
    change(client, document, 4, "kernel k(")
    with pytest.raises(Exception, match="errors of syntax"):
        await client.text_document_formatting_async(parameters)


@pytest.mark.asyncio
async def test_inlay_hints(client):
    document = open_text(client, TEXT)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(1000, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(text_document=document, range=whole))
    assert [h.label for h in hints][:4] == [": f32[BM, BN]", ": f32[BM, BN]", ": f32[BM, BN]", ": f32[BM]"]
    place = Place(client, TEXT, "w = math")
    assert hints[2].position == lsp.Position(place.line, place.character + 1)
    part = lsp.Range(lsp.Position(place.line + 1, 0), lsp.Position(place.line + 2, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(text_document=document, range=part))
    assert [h.label for h in hints] == [": f32[BM]"]


@pytest.mark.asyncio
async def test_code_actions_make_the_edits(client):
    wrong = "kernel k(x: in f16[N], y: out f32[N]) {\n    grid n in tiles(N, 64) {\n        y[n] = f32(x[n]) + x[n] * 2\n    }\n}\n"
    document = open_text(client, wrong)
    (found,) = await diagnostics(client)

    async def actions(where, only=None):
        context = lsp.CodeActionContext(diagnostics=[found], only=only)
        return await client.text_document_code_action_async(
            lsp.CodeActionParams(text_document=document, range=where, context=context)
        )

    (action,) = await actions(found.range)
    assert action.kind == lsp.CodeActionKind.QuickFix and action.title == "Write `f32(x[n] * 2)`"
    assert action.diagnostics[0].code == found.code
    change(client, document, 2, apply(client, wrong, action.edit.changes[client.uri]))
    assert await diagnostics(client, until=lambda d: not d) == []
    change(client, document, 3, wrong)
    assert not await actions(lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))
    assert not await actions(found.range, [lsp.CodeActionKind.Refactor])


@pytest.mark.asyncio
async def test_symbols(client):
    document = open_text(client, TEXT)
    found = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(text_document=document))
    assert [s.name for s in found] == ["HALF", "rows", "half"]
    assert found[1].selection_range == lsp.Range(lsp.Position(6, 7), lsp.Position(6, 11))
    change(client, document, 2, TEXT + "kernel broken(x: in\n")
    found = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(text_document=document))
    assert [s.name for s in found][-1] == "broken"
