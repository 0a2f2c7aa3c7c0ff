-- The test of neovim.sh. It ends Neovim, and prints "all is well" or what is not.
local function check(what, truth)
    if not truth then
        error(what, 0)
    end
end

local function wait(what, ready)
    check("nothing comes of: " .. what, vim.wait(20000, ready, 20))
end

local function text()
    return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

local function ask(method, line, word, more)
    local row = vim.api.nvim_buf_get_lines(0, line, line + 1, false)[1]
    local column = row:find(word, 1, true) - 1
    local params = vim.tbl_extend("force", {
        textDocument = vim.lsp.util.make_text_document_params(),
        position = { line = line, character = column },
    }, more or {})
    local answers = vim.lsp.buf_request_sync(0, method, params, 10000)
    for _, answer in pairs(answers or {}) do
        check(method .. ": " .. vim.inspect(answer.error or answer.err), not (answer.error or answer.err))
        return answer.result
    end
    error(method .. ": no answer", 0)
end

local function run()
    check("the type of the file", vim.bo.filetype == "tile")
    check("highlighting", vim.b.current_syntax == "tile")
    wait("diagnostics", function() return #vim.diagnostic.get(0) == 1 end)
    local found = vim.diagnostic.get(0)[1]
    check("the code: " .. vim.inspect(found), found.code == "type-mismatch" and found.lnum == 5)

    check("hover", ask("textDocument/hover", 4, "twice").contents.value:find("let twice: f16[64]", 1, true))
    check("definition", ask("textDocument/definition", 5, "twice").range.start.line == 4)
    local square = ask("textDocument/definition", 5, "square")
    check("definition in the standard library", square.uri == "tile-stdlib:///math.tile")
    local labels = {}
    for _, item in ipairs(ask("textDocument/completion", 5, "square")) do
        labels[item.label] = true
    end
    check("completion", labels.square and not labels.twice)

    -- The edit of the diagnostic, as an editor makes it.
    local actions = ask("textDocument/codeAction", 5, "x[n]", {
        range = { start = { line = 5, character = 0 }, ["end"] = { line = 5, character = 60 } },
        context = { diagnostics = {} },
    })
    check("one action", #actions == 1 and actions[1].kind == "quickfix")
    vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
    wait("no diagnostics", function() return #vim.diagnostic.get(0) == 0 end)

    vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", 4, "twice", { newName = "doubled" }), "utf-16")
    check("renaming", text():find("f32(doubled)", 1, true) and not text():find("twice", 1, true))
    local edits = ask("textDocument/formatting", 0, "import", { options = { tabSize = 4, insertSpaces = true } })
    vim.lsp.util.apply_text_edits(edits, 0, "utf-16")
    check("formatting", text():find("let doubled = x[n] * 2", 1, true))

    vim.cmd("edit tile-stdlib:///math.tile")
    check("the standard library: " .. text():sub(1, 200), text():find("fn square", 1, true))
end

vim.opt.runtimepath:prepend(vim.env.EDITORS .. "/neovim")
vim.cmd("filetype plugin indent on | syntax on")
require("tile").setup({ command = { vim.env.TILEC, "lsp" } })
vim.api.nvim_create_autocmd("VimEnter", {
    nested = true,
    callback = function()
        local good, why = pcall(run)
        print(good and "neovim: all is well" or "neovim: FAILED: " .. tostring(why))
        print("\n")
        vim.cmd("qall!")
    end,
})
