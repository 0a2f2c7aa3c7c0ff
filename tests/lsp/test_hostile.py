"""What `tilec lsp` survives: bytes that are no messages, messages that are none of the protocol, absurd parameters, texts
that are huge or deep, a client that leaves in the middle. Nothing of it may end the server, keep it from answering, or
make it answer something that is no JSON."""
import json
import os
import random
import signal
import time

import pytest

from client import Client

TILEC = os.environ["TILEC"]
URI = "file:///texts/hostile.tile"
TEXT = "kernel k(x: in f32[N], y: out f32[N]) {\n    grid n in tiles(N, 64) { y[n] = x[n] + 1 }\n}\n"
METHODS = """textDocument/hover textDocument/definition textDocument/references textDocument/documentHighlight
textDocument/prepareRename textDocument/rename textDocument/completion textDocument/formatting textDocument/inlayHint
textDocument/codeAction textDocument/documentSymbol workspace/textDocumentContent initialize shutdown_not
textDocument/unknown workspace/executeCommand $/odd""".split()
NOTES = """textDocument/didOpen textDocument/didChange textDocument/didClose textDocument/didSave
workspace/didChangeWatchedFiles workspace/didChangeWorkspaceFolders initialized $/setTrace $/cancelRequest
odd""".split()


@pytest.fixture
def client():
    client = Client(TILEC, capabilities={})
    yield client
    if client.process.poll() is None:
        client.process.kill()
        client.process.wait()
    client.process.stdin.close()
    client.process.stdout.close()


def is_alive(client):
    client.open(URI, TEXT, 77)
    assert client.diagnostics(URI, 77) == []
    assert client.place("textDocument/hover", URI, 1, 37)["contents"]["value"]
    assert client.leave() == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: abc\r\n\r\n{}",
        b"Content-Length: 0\r\n\r\n",
        b"content-length:4\r\n\r\nnull",
        b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2\n\n[]",
        b"Content-Length: 5\r\n\r\n{\"a\":",
        b"Content-Length: 3\r\n\r\n\xff\xfe\x00",
        b"Content-Length: 8\r\n\r\n\"\\ud800\"",
        b"A" * 100000 + b"\r\n\r\n",
        b"Content-Length: 20000\r\n\r\n" + b"[" * 20000,
        b"Content-Length: 70000000\r\n\r\n" + b" " * 70000000,
        bytes(range(256)) * 64 + b"\r\n\r\n",
    ],
    ids=lambda data: repr(data[:32]),
)
def test_bytes_that_are_no_messages(client, data):
    client.raw(data)
    is_alive(client)


@pytest.mark.parametrize(
    "message, code",
    [
        ([], -32600),
        (1, -32600),
        ("text", -32600),
        (None, -32600),
        ({}, -32600),
        ({"id": 5}, -32600),
        ({"id": 5, "method": 7}, -32600),
        ({"id": 5, "method": "no/such"}, -32601),
        ({"id": 5, "method": "initialize", "params": {}}, -32600),
        ({"id": 5, "method": "textDocument/hover"}, -32602),
        ({"id": 5, "method": "textDocument/hover", "params": [1, 2]}, -32602),
        ({"id": {"odd": [1]}, "method": "textDocument/hover", "params": {"textDocument": {"uri": "file:///not/open"}}}, -32602),
        ({"id": "five", "method": "workspace/textDocumentContent", "params": {"uri": "file:///etc/passwd"}}, -32602),
    ],
)
def test_messages_that_are_refused(client, message, code):
    client.frame(json.dumps(message).encode())
    while True:
        answer = client.receive()
        if "error" in answer:
            break
    assert answer["error"]["code"] == code
    assert answer["id"] == (message.get("id") if isinstance(message, dict) else None)
    is_alive(client)


def test_requests_out_of_place():
    client = Client(TILEC)
    number = client.ask("textDocument/hover", {})
    assert client.wait(number)["error"]["code"] == -32002
    client.open(URI, TEXT)  # is ignored
    client.call("initialize", {"capabilities": {}})
    assert client.wait(client.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}}))["error"]
    client.call("shutdown", None)
    assert client.wait(client.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}}))["error"]["code"] == -32600
    client.tell("exit", None)
    assert client.end() == 0


def test_statuses_at_the_end():
    client = Client(TILEC, capabilities={})
    client.tell("exit", None)
    assert client.end() == 1, "without shutdown"
    client = Client(TILEC, capabilities={})
    assert client.end() == 1, "the input ends"
    client = Client(TILEC, capabilities={})
    client.raw(b"Content-Length: 100\r\n\r\n{")
    assert client.end() == 1, "the input ends within a message"
    client = Client(TILEC, capabilities={})
    client.process.stdout.close()
    client.process.stdout = open(os.devnull, "rb")
    for i in range(50):
        client.open(URI, TEXT, i)
    assert client.end() == 1, "nobody reads"


VALUES = [None, True, -1, 2**31, 2**63 - 1, -(2**63), 1e308, "", "text", "\0", "file:///%00%ff/../..", [], [[]], {}, {"a": {}}, "x" * 10000]


def absurd(random, depth=0):
    """Parameters of the right shape here and there, and any values in it."""
    if depth > 3 or random.random() < 0.2:
        return random.choice(VALUES)
    place = lambda: {"line": random.choice([0, 1, 5, -1, 2**40, "1", None]), "character": random.choice([0, 7, 10**9, -3, 2.5])}
    shapes = {
        "textDocument": lambda: {"uri": random.choice([URI, URI, URI, "file:///tmp", absurd(random, depth + 1)]), "version": random.choice(VALUES), "text": random.choice(["", TEXT, "kernel", "\0\0", absurd(random, depth + 1)])},
        "position": place,
        "range": lambda: {"start": place(), "end": place()},
        "contentChanges": lambda: [{"range": random.choice([None, {"start": place(), "end": place()}]), "text": random.choice(["a", "}", "\n", "", None, 3])} for _ in range(3)],
        "newName": lambda: random.choice(["a", "", "kernel", "é", None, 5]),
        "context": lambda: random.choice(VALUES),
        "changes": lambda: [random.choice(VALUES), {"uri": URI}],
        "event": lambda: {"added": [random.choice(VALUES), {"uri": "file:///nonexistent"}]},
        "uri": lambda: random.choice(["tile-stdlib:/math.tile", "tile-stdlib://///", URI, None]),
        "id": lambda: random.choice(VALUES),
    }
    return {name: make() for name, make in shapes.items() if random.random() < 0.8}


@pytest.mark.parametrize("seed", range(6))
def test_absurd_parameters(client, seed):
    rng = random.Random(seed)
    client.open(URI, TEXT)
    asked = []
    for _ in range(300):
        if rng.random() < 0.4:
            client.tell(rng.choice(NOTES), absurd(rng))
        else:
            asked.append(client.ask(rng.choice(METHODS), absurd(rng)))
    for number in asked:
        answer = client.wait(number)
        assert ("result" in answer) != ("error" in answer)
    is_alive(client)


@pytest.mark.parametrize("seed", range(4))
def test_edits_at_random_are_those_of_the_editor(client, seed):
    """Incremental edits, in UTF-16: formatting shows the text that the server has."""
    rng = random.Random(seed)
    text = "// é \U0001f600 x\r\nconst A = 1\n"
    client.open(URI, text)
    for version in range(2, 120):
        ends = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        new = rng.choice(["", "a", "\n", "\r\n", "é", "\U0001f600", "const B = 2\n", "// x\n"])
        places = []
        for at in ends:
            line = text.count("\n", 0, at)
            begin = text.rfind("\n", 0, at) + 1
            if at > begin and text[at - 1] == "\r" and text[at:at + 1] == "\n":
                at -= 1  # an editor has no place between both
            places.append((at, {"line": line, "character": len(text[begin:at].encode("utf-16-le")) // 2}))
        text = text[: places[0][0]] + new + text[places[1][0] :]
        change = {"range": {"start": places[0][1], "end": places[1][1]}, "text": new}
        client.tell("textDocument/didChange", {"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]})
    # A comment with all of the text: hover on nothing, but the diagnostics' places tell whether both agree.
    whole = client.diagnostics(URI, 119)
    client.tell("textDocument/didChange", {"textDocument": {"uri": URI, "version": 500}, "contentChanges": [{"text": text}]})
    assert client.diagnostics(URI, 500) == whole
    is_alive(client)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100000,
        "kernel k() { " + "if true { " * 5000,
        "const A = " + "-" * 100000 + "1\n",
        "fn f(a: f32) -> f32 { return " + "(" * 300 + "a" + ")" * 300 + " }\n",
        "".join("const A%d = A%d + A%d\n" % (i, i - 1, i - 1) for i in range(1, 3000)),
        "import \"/dev/zero\"\n",
        "import \"/proc/self/mem\"\n",
        "import \"hostile.tile\"\n",
        "import \"/tmp\"\n",
        "\0" * 100000,
        "é" * 100000,
        "\n" * 300000,
        "x" * 3000000,
        "".join(TEXT.replace("kernel k", "kernel k%d" % i) for i in range(3000)),
        "kernel k(x: in f32[N]) { grid n in tiles(N, 4) { static for i in 0..100000000 { let a = i } } }\n",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_hostile_texts(client, text):
    client.seconds = 120
    client.open(URI, text)
    found = client.diagnostics(URI, 1)
    assert isinstance(found, list)
    for method in METHODS[:11]:
        answer = client.wait(
            client.ask(method, {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 12}, "newName": "q"})
        )
        assert ("result" in answer) != ("error" in answer), method
    is_alive(client)


def test_what_waits_can_be_cancelled(client):
    # Written at once, so that all of it lies there when the first is handled.
    parts = []
    for number in range(100, 140):
        parts.append({"jsonrpc": "2.0", "id": number, "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": URI}}})
    parts.append({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 139}})
    client.open(URI, TEXT)
    bodies = [json.dumps(part).encode() for part in parts]
    client.raw(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies))
    assert client.wait(139)["error"]["code"] == -32800
    assert client.wait(100)["result"]
    client.tell("$/cancelRequest", {"id": 100})  # answered already
    client.tell("$/cancelRequest", {"id": {"odd": 1}})
    is_alive(client)


def test_a_client_that_writes_much_before_it_reads(client):
    """Both pipes are full by then: the server must go on reading."""
    client.open(URI, TEXT * 1)
    for _ in range(3000):
        client.ask("textDocument/completion", {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 30}})
    assert len(client.wait(client.number)["result"]) > 50
    is_alive(client)


def test_of_many_keystrokes_the_last_is_checked(client):
    client.open(URI, TEXT)
    bodies = []
    for version in range(2, 500):
        change = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": TEXT + "//" + " " * version}]}
        bodies.append(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": change}).encode())
    client.raw(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies))
    client.diagnostics(URI, 499)
    is_alive(client)


def test_memory_does_not_grow(client):
    def used():
        with open("/proc/%d/statm" % client.process.pid) as file:
            return int(file.read().split()[1]) * 4096

    client.leave()
    # Sanitizers keep what was released for a while.
    environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4"}
    client.__init__(TILEC, capabilities={}, environment=environment)
    client.open(URI, TEXT)
    sizes = []
    for round in range(4):
        for version in range(250):
            text = TEXT * 1 + "// %d\n" % version
            client.tell("textDocument/didChange", {"textDocument": {"uri": URI, "version": 10 + version}, "contentChanges": [{"text": text}]})
            client.place("textDocument/hover", URI, 1, 37)
        sizes.append(used())
    assert sizes[-1] - sizes[1] < (32 << 20), sizes
    is_alive(client)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it(client, number):
    client.open(URI, TEXT)
    client.process.send_signal(number)
    assert client.process.wait(20) == -number


def test_two_servers_know_nothing_of_each_other():
    one, two = Client(TILEC, capabilities={}), Client(TILEC, capabilities={})
    one.open(URI, TEXT)
    two.open(URI, "kernel")
    assert one.diagnostics(URI, 1) == [] and two.diagnostics(URI, 1)
    assert one.leave() == 0 and two.leave() == 0
