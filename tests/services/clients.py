"""Clients of `headroom serve` and of the C library, for the tests of this folder."""

import atexit
import contextlib
import ctypes
import http.client
import json
import subprocess
import urllib.error
import urllib.request


class Mcp:
    """A client of `headroom serve --stdio`: a message a line."""

    def __init__(self, program, *flags):
        self.process = subprocess.Popen([program, "serve", "--stdio", *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8")
        atexit.register(self.process.kill)  # also where a test fails
        self.asked = 0

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def request(self, method, params=None):
        """The result, or the error, of a request; others' messages before it are dropped."""
        self.asked += 1
        message = {"jsonrpc": "2.0", "id": self.asked, "method": method}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message))
        while True:
            reply = json.loads(self.line())
            if reply.get("id") == self.asked:
                return reply.get("result", reply.get("error"))

    def close(self):
        """Ends the input. Returns the lines that were left, and the exit code."""
        self.process.stdin.close()
        rest = self.process.stdout.read().splitlines()
        return rest, self.process.wait(timeout=60)


class Http:
    """A server `headroom serve --http` on a free port, and questions to it."""

    def __init__(self, program, *flags):
        self.process = subprocess.Popen([program, "serve", "--http", "127.0.0.1:0", *flags], stderr=subprocess.PIPE,
                                        text=True)
        atexit.register(self.process.kill)
        line = self.process.stderr.readline()
        if "serving http://" not in line:
            raise RuntimeError(line + self.process.stderr.read())
        self.address = line.split()[2]

    def get(self, path, headers=None):
        return self._answer(urllib.request.Request(self.address + path, headers=headers or {}))

    def post(self, path, body, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self._answer(urllib.request.Request(self.address + path, data, headers))

    def begin(self, path, headers):
        """Posts only the headers and waits for the answer. A server that refuses may close before a body arrives."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=600)
        connection.putrequest("POST", path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        with contextlib.closing(connection), connection.getresponse() as reply:
            return reply.status, reply.read().decode()

    @staticmethod
    def _answer(request):
        try:
            with urllib.request.urlopen(request, timeout=600) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def close(self):
        """Asks the server to end. Returns its exit code."""
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.process.stderr.close()
        return code


class Library:
    """The C library."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        watch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
        self.library.headroom_ask.restype = ctypes.c_void_p
        self.library.headroom_ask.argtypes = [ctypes.c_char_p, ctypes.c_size_t, watch, ctypes.c_void_p]
        self.library.headroom_free.argtypes = [ctypes.c_void_p]
        self.no_watch = watch()

    def ask(self, question):
        text = json.dumps(question).encode() if isinstance(question, dict) else question
        reply = self.library.headroom_ask(text, len(text), self.no_watch, None)
        try:
            return ctypes.string_at(reply).decode()
        finally:
            self.library.headroom_free(reply)


def raw_reply(envelope):
    """The bytes of `reply` in an envelope, as they stand there."""
    begin = envelope.index('"reply":') + len('"reply":')
    return envelope[begin:envelope.rindex(',"messages":')]
