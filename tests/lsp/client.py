"""A client of the language server protocol as plain as can be: it sends any bytes, and checks what comes back."""
import json
import os
import select
import subprocess
import time


class Client:
    def __init__(self, tilec, options=(), capabilities=None, root=None, environment=None):
        self.process = subprocess.Popen([tilec, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment)
        self.rest, self.number, self.notes, self.answers = b"", 0, [], {}
        self.seconds = 60
        if capabilities is not None:
            self.hello = self.call("initialize", {"processId": None, "rootUri": root, "capabilities": capabilities})
            self.tell("initialized", {})

    # ---- sending ----

    def raw(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def frame(self, body):
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def send(self, message):
        self.frame(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def call(self, method, params):
        message = self.wait(self.ask(method, params))
        if "error" in message:
            raise RuntimeError(message["error"])
        return message["result"]

    # ---- receiving ----

    def receive(self, seconds=None):
        """The next message; None at the end of the output."""
        deadline = time.monotonic() + (seconds or self.seconds)
        while True:
            head, mark, body = self.rest.partition(b"\r\n\r\n")
            if mark:
                length = int(head.split(b":")[1])
                if len(body) >= length:
                    self.rest = body[length:]
                    return json.loads(body[:length])
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError("no message in time")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.rest += more

    def wait(self, number):
        while number not in self.answers:
            message = self.receive()
            assert message is not None, "the server has left"
            assert message["jsonrpc"] == "2.0"
            if "method" in message:
                self.notes.append(message)
            else:
                self.answers[message["id"]] = message
        return self.answers.pop(number)

    def diagnostics(self, uri, version=None):
        """The diagnostics of this version, or the next ones."""
        while True:
            for i, note in enumerate(self.notes):
                params = note.get("params") or {}
                fits = note["method"] == "textDocument/publishDiagnostics" and params["uri"] == uri
                if fits and (version is None or params.get("version") == version):
                    del self.notes[: i + 1]
                    return params["diagnostics"]
            message = self.receive()
            assert message is not None, "the server has left"
            (self.notes.append(message) if "method" in message else self.answers.update({message["id"]: message}))

    # ---- documents ----

    def open(self, uri, text, version=1):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "tile", "version": version, "text": text}})

    def place(self, method, uri, line, character, **more):
        return self.call(method, {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}, **more})

    def leave(self):
        self.call("shutdown", None)
        self.tell("exit", None)
        return self.end()

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        status = self.process.wait(self.seconds)
        self.process.stdout.close()
        return status
