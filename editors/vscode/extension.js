// Starts `tilec lsp` for files of the language, and shows the standard library, which is part of tilec.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate(context) {
    const command = vscode.workspace.getConfiguration("tile").get("compiler");
    client = new LanguageClient(
        "tile",
        "Tile",
        { command, args: ["lsp"] },
        {
            documentSelector: [{ language: "tile" }],
            synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.tile") },
        },
    );
    const provider = {
        async provideTextDocumentContent(uri) {
            const answer = await client.sendRequest("workspace/textDocumentContent", { uri: uri.toString() });
            return answer.text;
        },
    };
    context.subscriptions.push(vscode.workspace.registerTextDocumentContentProvider("tile-stdlib", provider));
    try {
        await client.start();
    } catch (error) {
        vscode.window.showErrorMessage(`${command} lsp does not start: ${error.message}. Set tile.compiler.`);
    }
}

function deactivate() {
    return client && client.stop();
}

module.exports = { activate, deactivate };
