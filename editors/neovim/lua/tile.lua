-- Starts `tilec lsp` for each buffer of the language: require("tile").setup { command = { "tilec", "lsp" } }
local M = {}

local function root_of(path)
    local marks = vim.fs and vim.fs.find({ ".git" }, { path = vim.fn.fnamemodify(path, ":h"), upward = true }) or {}
    return marks[1] and vim.fn.fnamemodify(marks[1], ":h") or vim.fn.fnamemodify(path, ":p:h")
end

function M.start(options, buffer)
    local path = vim.api.nvim_buf_get_name(buffer)
    local config = {
        name = "tile",
        cmd = options.command or { "tilec", "lsp" },
        root_dir = root_of(path),
        capabilities = options.capabilities or vim.lsp.protocol.make_client_capabilities(),
        on_attach = options.on_attach,
    }
    if vim.lsp.start then
        vim.lsp.start(config, { bufnr = buffer })
        return
    end
    -- Neovim 0.7: one server for each root.
    M.clients = M.clients or {}
    M.clients[config.root_dir] = M.clients[config.root_dir] or vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(buffer, M.clients[config.root_dir])
end

-- The standard library is part of tilec: its files are read by a request.
local function read_standard(buffer, uri)
    for _, client in pairs(vim.lsp.get_clients and vim.lsp.get_clients() or vim.lsp.get_active_clients()) do
        if client.name == "tile" then
            local answer = client.request_sync("workspace/textDocumentContent", { uri = uri }, 2000, buffer)
            if answer and answer.result then
                vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(answer.result.text, "\n"))
                vim.bo[buffer].buftype, vim.bo[buffer].modifiable = "nofile", false
                vim.bo[buffer].filetype = "tile"
                return
            end
        end
    end
end

function M.setup(options)
    options = options or {}
    local group = vim.api.nvim_create_augroup("tile", {})
    vim.api.nvim_create_autocmd("FileType", {
        group = group,
        pattern = "tile",
        callback = function(event)
            local buffer = event.buf or vim.api.nvim_get_current_buf()
            if vim.bo[buffer].buftype == "" then
                M.start(options, buffer)
            end
        end,
    })
    vim.api.nvim_create_autocmd("BufReadCmd", {
        group = group,
        pattern = "tile-stdlib://*",
        callback = function(event)
            read_standard(event.buf or vim.api.nvim_get_current_buf(), event.match)
        end,
    })
end

return M
