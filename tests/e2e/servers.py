"""Servers on loopback that a test starts: real ones for mail (aiosmtpd) and the web, and such as misbehave."""
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import threading

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

HOST = "127.0.0.1"


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Authority:
    """A certificate authority of the test's own for a server at 127.0.0.1."""

    def __init__(self, directory):
        self.file = pathlib.Path(directory) / "ca.pem"
        key, wish, mine = (self.file.with_name(name) for name in ("server.key", "server.csr", "server.pem"))
        extension = self.file.with_name("server.ext")
        extension.write_text("subjectAltName=IP:127.0.0.1\n")
        for words in (
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.file.with_name("ca.key"), "-out",
             self.file, "-days", "2", "-subj", "/CN=authority of a test"],
            ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", wish, "-subj", "/CN=127.0.0.1"],
            ["x509", "-req", "-in", wish, "-CA", self.file, "-CAkey", self.file.with_name("ca.key"),
             "-CAcreateserial", "-out", mine, "-days", "2", "-extfile", extension],
        ):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(mine, key)


class MailServer:
    """A real mail server that keeps what it gets. `users`: who may log in, with their passwords."""

    def __init__(self, users=None, **options):
        self.mails, self.logins = [], []
        self.users = users
        if users is not None:
            options.update(authenticator=self.authenticate, auth_required=True)
        self.port = free_port()
        self.controller = Controller(self, hostname=HOST, port=self.port, **options)
        self.controller.start()

    def authenticate(self, _server, session, _envelope, mechanism, data):
        user, password = data.login.decode(), data.password.decode()
        self.logins.append((user, mechanism, session.ssl is not None))
        return AuthResult(success=self.users.get(user) == password, handled=False)

    async def handle_DATA(self, _server, session, envelope):
        self.mails.append({"from": envelope.mail_from, "to": envelope.rcpt_tos, "bytes": envelope.content,
                           "encrypted": session.ssl is not None})
        return "250 taken"

    def stop(self):
        self.controller.stop()


class WebServer:
    """Keeps the JSON that is posted. `answers`: the status of each answer, the last one for all that follow;
    `context`: it speaks TLS."""

    def __init__(self, answers=(200,), location=None, context=None):
        self.posts = []
        answers = list(answers)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append({"path": self.path, "type": self.headers["Content-Type"], "json": json.loads(body)})
                self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
                if location:
                    self.send_header("Location", location)
                said = f"no {self.path} here".encode()
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_words):
                pass

        self.server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class BadServer:
    """Takes connections, and does with each what `act` does. An `act` that sends nothing, `lambda talk: talk.recv(1)`,
    waits for ever only as long as its other end does."""

    def __init__(self, act):
        self.connections = 0
        self.socket = socket.create_server((HOST, 0))
        self.port = self.socket.getsockname()[1]
        self.act = act
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                talk, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.talk, args=(talk,), daemon=True).start()

    def talk(self, talk):
        with talk:
            try:
                self.act(talk)
            except OSError:
                pass

    def stop(self):
        # The thread ends first: the number of a closed descriptor may be that of the next test's server, from which it
        # would take a connection.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


def say_nothing(talk):
    """Never answers; ends when its other end does."""
    while talk.recv(65536):
        pass


def drop_in_mid_mail(talk):
    """Says what a mail server says, and hangs up while the mail is coming."""
    lines = talk.makefile("rwb", buffering=0)
    lines.write(b"220 here\r\n")
    for line in lines:
        if line.upper().startswith(b"DATA"):
            lines.write(b"354 go on\r\n")
            talk.recv(100)
            return
        lines.write(b"250 yes\r\n")


def refuse_receiver(talk):
    lines = talk.makefile("rwb", buffering=0)
    lines.write(b"220 here\r\n")
    for line in lines:
        lines.write(b"550 no such user\r\n" if line.upper().startswith(b"RCPT") else b"250 yes\r\n")
