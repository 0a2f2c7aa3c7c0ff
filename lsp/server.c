/* The language server. Messages are read as they come and handled in order, on one thread; diagnostics are computed when
 * nothing waits, so that of many keystrokes only the last is checked. A request that is cancelled while it waits is
 * answered so. */
#include "lsp/server.h"

#include <stdlib.h>
#include <string.h>

#include "lsp/diagnose.h"
#include "lsp/request.h"
#include "lsp/uri.h"
#include "lsp/wire.h"

typedef struct Waiting {
    json_t *message;
    bool cancelled;
} Waiting;

typedef enum Phase { NEW, INITIALIZED, SHUT_DOWN, LEFT } Phase;

typedef struct Server {
    TileWire wire;
    TileWorkspace workspace;
    TileArena *arena; /* of the message that is handled */
    jmp_buf guard;
    const char *version;
    Phase phase;
    bool watches; /* the client can tell of files that change */
    Waiting *waiting;
    size_t count, capacity;
} Server;

/* ---- what is sent ---- */

static void send(Server *server, json_t *message) {
    tile_json_set(message, "jsonrpc", json_string("2.0"));
    char *text = json_dumps(message, JSON_COMPACT);
    if (text) tile_wire_write(&server->wire, text, strlen(text));
    free(text);
    json_decref(message);
}

static void notify(Server *server, const char *method, json_t *params) {
    json_t *message = json_object();
    tile_json_set(message, "method", json_string(method));
    tile_json_set(message, "params", params);
    send(server, message);
}

static void answer(Server *server, json_t *id, json_t *result) {
    json_t *message = json_object();
    tile_json_set(message, "id", id ? json_incref(id) : json_null());
    tile_json_set(message, "result", result ? result : json_null());
    send(server, message);
}

static void refuse(Server *server, json_t *id, int code, const char *why) {
    json_t *message = json_object(), *error = json_object();
    tile_json_set(error, "code", json_integer(code));
    tile_json_set(error, "message", tile_json_string(why));
    tile_json_set(message, "id", id ? json_incref(id) : json_null());
    tile_json_set(message, "error", error);
    send(server, message);
}

/* ---- beginning and end ---- */

static json_t *capabilities(const Server *server) {
    static const char *const encodings[] = {"utf-16", "utf-8", "utf-32"};
    static const char *const simple[] = {"hoverProvider",        "definitionProvider",         "referencesProvider",
                                         "inlayHintProvider",    "documentFormattingProvider", "documentSymbolProvider",
                                         "documentHighlightProvider"};
    json_t *all = json_object();
    tile_json_set(all, "positionEncoding", json_string(encodings[server->workspace.encoding]));
    tile_json_set(all, "textDocumentSync", json_pack("{s:b, s:i, s:b}", "openClose", 1, "change", 2, "save", 1));
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) tile_json_set(all, simple[i], json_true());
    tile_json_set(all, "renameProvider", json_pack("{s:b}", "prepareProvider", 1));
    tile_json_set(all, "completionProvider", json_pack("{s:[s]}", "triggerCharacters", "."));
    tile_json_set(all, "codeActionProvider", json_pack("{s:[s]}", "codeActionKinds", "quickfix"));
    tile_json_set(all, "workspace",
                  json_pack("{s:{s:b, s:b}, s:{s:[s]}}", "workspaceFolders", "supported", 1, "changeNotifications", 1,
                            "textDocumentContent", "schemes", "tile-stdlib"));
    return all;
}

static void add_folder(Server *server, const char *uri) {
    if (uri) tile_workspace_add_folder(&server->workspace, tile_path_of_uri(server->arena, uri));
}

static void initialize(Server *server, json_t *id, const json_t *params) {
    static const char encodings[] = "capabilities.general.positionEncodings";
    const json_t *folders = tile_json_at(params, "workspaceFolders");
    if (tile_json_lists(params, encodings, "utf-8")) server->workspace.encoding = TILE_ENCODING_UTF8;
    for (size_t i = 0; i < json_array_size(folders); i++)
        add_folder(server, tile_json_text_at(json_array_get(folders, i), "uri"));
    if (!json_array_size(folders)) add_folder(server, tile_json_text_at(params, "rootUri"));
    server->watches = tile_json_true_at(params, "capabilities.workspace.didChangeWatchedFiles.dynamicRegistration");
    server->phase = INITIALIZED;
    json_t *result = json_object();
    tile_json_set(result, "capabilities", capabilities(server));
    tile_json_set(result, "serverInfo", json_pack("{s:s, s:s}", "name", "tilec", "version", server->version));
    answer(server, id, result);
}

/* Asks to be told of .tile files that change on disk. */
static void on_initialized(Server *server, const json_t *params) {
    if (!server->watches) return;
    json_t *message = json_object();
    tile_json_set(message, "id", json_string("watch"));
    tile_json_set(message, "method", json_string("client/registerCapability"));
    tile_json_set(message, "params",
                  json_pack("{s:[{s:s, s:s, s:{s:[{s:s}]}}]}", "registrations", "id", "watch", "method",
                            "workspace/didChangeWatchedFiles", "registerOptions", "watchers", "globPattern",
                            "**/*.tile"));
    send(server, message);
}

/* ---- notifications ---- */

static void tell_no_memory(Server *server) {
    notify(server, "window/showMessage", json_pack("{s:i, s:s}", "type", 1, "message", "tilec lsp: out of memory"));
}

static TileDocument *document_of(Server *server, const json_t *params) {
    return tile_workspace_find(&server->workspace, tile_json_text_at(params, "textDocument.uri"));
}

static void on_open(Server *server, const json_t *params) {
    const char *uri = tile_json_text_at(params, "textDocument.uri");
    const json_t *text = tile_json_at(params, "textDocument.text");
    int64_t version = tile_json_integer_at(params, "textDocument.version", INT64_MIN, INT64_MAX, 0);
    if (!uri || !json_is_string(text)) return;
    if (!tile_workspace_open(&server->workspace, uri, json_string_value(text), json_string_length(text), version))
        tell_no_memory(server);
}

static TilePosition position_of(const json_t *range, const char *which) {
    const json_t *place = tile_json_at(range, which);
    return (TilePosition){tile_json_integer_at(place, "line", -1, INT64_MAX, 0),
                          tile_json_integer_at(place, "character", -1, INT64_MAX, 0)};
}

static bool apply_change(Server *server, TileDocument *document, const json_t *change) {
    const json_t *range = tile_json_at(change, "range"), *text = tile_json_at(change, "text");
    size_t begin = 0, end = document->length;
    if (!json_is_string(text)) return true;
    if (json_is_object(range)) {
        TileEncoding encoding = server->workspace.encoding;
        begin = tile_lines_offset(&document->lines, position_of(range, "start"), encoding);
        end = tile_lines_offset(&document->lines, position_of(range, "end"), encoding);
    }
    return tile_document_replace(&server->workspace, document, begin, end, json_string_value(text),
                                 json_string_length(text));
}

static void on_change(Server *server, const json_t *params) {
    TileDocument *document = document_of(server, params);
    const json_t *changes = tile_json_at(params, "contentChanges");
    bool good = true;
    if (!document) return;
    document->version =
        tile_json_integer_at(params, "textDocument.version", INT64_MIN, INT64_MAX, document->version);
    for (size_t i = 0; i < json_array_size(changes); i++)
        good = apply_change(server, document, json_array_get(changes, i)) && good;
    if (!good) tell_no_memory(server);
}

static void on_close(Server *server, const json_t *params) {
    TileDocument *document = document_of(server, params);
    if (!document) return;
    notify(server, "textDocument/publishDiagnostics", json_pack("{s:s, s:[]}", "uri", document->uri, "diagnostics"));
    tile_workspace_close(&server->workspace, document);
}

static void on_save(Server *server, const json_t *params) {
    const char *uri = tile_json_text_at(params, "textDocument.uri");
    if (uri && !document_of(server, params)) tile_workspace_touch(&server->workspace, tile_path_of_uri(server->arena, uri));
}

static void on_watched(Server *server, const json_t *params) {
    const json_t *changes = tile_json_at(params, "changes");
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const char *uri = tile_json_text_at(json_array_get(changes, i), "uri");
        bool open = tile_workspace_find(&server->workspace, uri); /* then what is open counts */
        if (uri && !open) tile_workspace_touch(&server->workspace, tile_path_of_uri(server->arena, uri));
    }
}

static void on_folders(Server *server, const json_t *params) {
    const json_t *added = tile_json_at(params, "event.added");
    for (size_t i = 0; i < json_array_size(added); i++)
        add_folder(server, tile_json_text_at(json_array_get(added, i), "uri"));
}

/* ---- dispatch ---- */

static const struct {
    const char *method;
    json_t *(*answer)(TileRequest *request);
} requests[] = {
    {"textDocument/hover", tile_answer_hover},
    {"textDocument/definition", tile_answer_definition},
    {"textDocument/references", tile_answer_references},
    {"textDocument/documentHighlight", tile_answer_highlight},
    {"textDocument/prepareRename", tile_answer_prepare_rename},
    {"textDocument/rename", tile_answer_rename},
    {"textDocument/completion", tile_answer_completion},
    {"textDocument/formatting", tile_answer_formatting},
    {"textDocument/inlayHint", tile_answer_inlay_hints},
    {"textDocument/codeAction", tile_answer_code_actions},
    {"textDocument/documentSymbol", tile_answer_symbols},
    {"workspace/textDocumentContent", tile_answer_content},
};

static const struct {
    const char *method;
    void (*run)(Server *server, const json_t *params);
} notifications[] = {
    {"initialized", on_initialized},
    {"textDocument/didOpen", on_open},
    {"textDocument/didChange", on_change},
    {"textDocument/didClose", on_close},
    {"textDocument/didSave", on_save},
    {"workspace/didChangeWatchedFiles", on_watched},
    {"workspace/didChangeWorkspaceFolders", on_folders},
};

/* If memory runs out in it, what it has begun is left, and it is answered with an error. */
static void run_request(Server *server, json_t *id, const json_t *params, json_t *(*run)(TileRequest *request)) {
    TileRequest request = {.workspace = &server->workspace, .params = params, .arena = server->arena};
    json_t *result = run(&request);
    if (request.error)
        refuse(server, id, request.error, request.message);
    else
        answer(server, id, result);
}

static void handle_request(Server *server, json_t *id, const char *method, const json_t *params) {
    bool begins = strcmp(method, "initialize") == 0;
    if (begins && server->phase != NEW) return refuse(server, id, TILE_LSP_INVALID_REQUEST, "initialized already");
    if (begins) return initialize(server, id, params);
    if (server->phase == NEW) return refuse(server, id, TILE_LSP_NOT_INITIALIZED, "`initialize` comes first");
    if (server->phase == SHUT_DOWN) return refuse(server, id, TILE_LSP_INVALID_REQUEST, "shut down");
    if (strcmp(method, "shutdown") == 0) {
        server->phase = SHUT_DOWN;
        return answer(server, id, NULL);
    }
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        if (strcmp(method, requests[i].method) == 0) return run_request(server, id, params, requests[i].answer);
    refuse(server, id, TILE_LSP_UNKNOWN_METHOD, tile_arena_format(server->arena, "there is no method `%s`", method));
}

static void handle_notification(Server *server, const char *method, const json_t *params) {
    for (size_t i = 0; i < sizeof notifications / sizeof *notifications && server->phase == INITIALIZED; i++)
        if (strcmp(method, notifications[i].method) == 0) notifications[i].run(server, params);
}

/* The result is not for `exit`, which ends the loop. */
static void handle(Server *server, const Waiting *waiting) {
    json_t *message = waiting->message, *id = json_object_get(message, "id");
    const char *method = tile_json_text_at(message, "method");
    const json_t *params = json_object_get(message, "params");
    bool answered = json_object_get(message, "result") || json_object_get(message, "error");
    if (!json_is_object(message) || (!method && !answered))
        refuse(server, json_is_object(message) ? id : NULL, TILE_LSP_INVALID_REQUEST, "this is no message of JSON-RPC");
    else if (method && id && waiting->cancelled)
        refuse(server, id, TILE_LSP_CANCELLED, "cancelled");
    else if (method && id)
        handle_request(server, id, method, params);
    else if (method)
        handle_notification(server, method, params);
}

static void handle_guarded(Server *server, const Waiting *waiting) {
    tile_arena_reset(server->arena);
    if (setjmp(server->guard)) {
        refuse(server, json_object_get(waiting->message, "id"), TILE_LSP_INTERNAL, "out of memory");
        return;
    }
    tile_arena_set_guard(server->arena, &server->guard);
    handle(server, waiting);
}

/* ---- the queue ---- */

static void cancel(Server *server, const json_t *id) {
    for (size_t i = 0; id && i < server->count; i++)
        if (json_equal(json_object_get(server->waiting[i].message, "id"), id)) server->waiting[i].cancelled = true;
}

static void wait_in_line(Server *server, json_t *message) {
    const char *method = tile_json_text_at(message, "method");
    if (method && strcmp(method, "$/cancelRequest") == 0) {
        cancel(server, tile_json_at(message, "params.id"));
        json_decref(message);
        return;
    }
    if (server->count == server->capacity) {
        size_t capacity = server->capacity ? 2 * server->capacity : 64;
        Waiting *waiting = realloc(server->waiting, capacity * sizeof *waiting);
        if (!waiting) {
            refuse(server, json_object_get(message, "id"), TILE_LSP_INTERNAL, "out of memory");
            json_decref(message);
            return;
        }
        server->waiting = waiting;
        server->capacity = capacity;
    }
    server->waiting[server->count++] = (Waiting){.message = message};
}

/* Takes what has come; waits for something if `wait`. False at the end of the input. */
static bool receive(Server *server, bool wait) {
    enum { AT_ONCE = 1024 };
    for (int i = 0; i < AT_ONCE; i++) {
        char *body = NULL;
        size_t length;
        json_error_t error;
        TileWireResult result = tile_wire_read(&server->wire, wait && i == 0, &body, &length);
        if (result == TILE_WIRE_END) return false;
        if (result == TILE_WIRE_NOTHING) return true;
        json_t *message = body ? json_loadb(body, length, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error) : NULL;
        free(body);
        if (message)
            wait_in_line(server, message);
        else
            refuse(server, NULL, TILE_LSP_PARSE_ERROR, result == TILE_WIRE_MESSAGE ? error.text : "this is no message");
    }
    return true;
}

static Waiting next_in_line(Server *server) {
    Waiting first = server->waiting[0];
    server->count--;
    memmove(server->waiting, server->waiting + 1, server->count * sizeof *server->waiting);
    return first;
}

/* ---- diagnostics ---- */

static TileDocument *unpublished(const Server *server) {
    for (size_t i = 0; i < server->workspace.count; i++)
        if (server->workspace.documents[i]->unpublished) return server->workspace.documents[i];
    return NULL;
}

static void publish(Server *server, TileDocument *document) {
    document->unpublished = false;
    tile_arena_reset(server->arena);
    if (setjmp(server->guard)) return tell_no_memory(server);
    tile_arena_set_guard(server->arena, &server->guard);
    json_t *params = tile_diagnostics_json(&server->workspace, document, server->arena);
    if (params)
        notify(server, "textDocument/publishDiagnostics", params);
    else
        tell_no_memory(server);
}

/* ---- the loop ---- */

static bool leaves(const Waiting *waiting) {
    const char *method = tile_json_text_at(waiting->message, "method");
    return method && strcmp(method, "exit") == 0;
}

static int serve(Server *server) {
    bool shut_down = false;
    for (bool open = true; server->phase != LEFT && !server->wire.broken;) {
        TileDocument *document = unpublished(server);
        if (open) open = receive(server, !server->count && !document);
        if (server->count) {
            Waiting waiting = next_in_line(server);
            shut_down = server->phase == SHUT_DOWN;
            if (leaves(&waiting))
                server->phase = LEFT;
            else
                handle_guarded(server, &waiting);
            json_decref(waiting.message);
        } else if (document) {
            publish(server, document);
        } else if (!open) {
            shut_down = server->phase == SHUT_DOWN;
            server->phase = LEFT;
        }
    }
    return server->phase == LEFT && shut_down ? 0 : 1;
}

int tile_server_run(const TileCompiler *compiler, const char *version, int in, int out) {
    Server *server = calloc(1, sizeof *server);
    if (!server) return 1;
    *server = (Server){.wire = {.in = in, .out = out}, .workspace = {.compiler = compiler}, .version = version};
    server->arena = tile_arena_create(NULL);
    int status = server->arena ? serve(server) : 1;
    for (size_t i = 0; i < server->count; i++) json_decref(server->waiting[i].message);
    free(server->waiting);
    tile_workspace_release(&server->workspace);
    tile_wire_release(&server->wire);
    tile_arena_destroy(server->arena);
    free(server);
    return status;
}
