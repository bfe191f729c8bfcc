"""The process of a server of faults: `python fault_worker.py ROOT KIND [CERTIFICATE KEY]`, KIND being `http`, `s3` or `az`.

Commands are lines of JSON on standard input, each answered by a line on standard output. The end of the input ends the process.
"""
import asyncio
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, unquote

import fault_answers
import fault_azure
import fault_rules
from fault_rules import Answer


class Worker:
    def __init__(self, root, kind):
        self.files, self.rules = fault_answers.Files(root), fault_rules.Rules()
        self.kind, self.records, self.lock = kind, [], threading.Lock()
        self.in_flight = self.most_in_flight = self.connections = 0

    async def serve(self, reader, writer):
        """One connection, which carries one request after the other."""
        self.connections += 1
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if not await self.answer(head.decode("latin-1"), writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def answer(self, head, writer):
        """Answers one request, and returns whether the connection goes on."""
        lines = head.split("\r\n")
        verb, target, _ = lines[0].split(" ", 2)
        headers = dict((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line))
        path, _, query = target.partition("?")
        query = dict(parse_qsl(query, keep_blank_values=True, errors="surrogateescape"))
        key = unquote(path, errors="surrogateescape").removeprefix("/")
        key = fault_azure.without_account(key) if self.kind == "az" else key
        method = "LIST" if "list-type" in query or query.get("comp") == "list" else verb
        record = {"method": method, "key": key, "range": headers.get("range"), "headers": headers, "query": query,
                  "begun": time.monotonic(), "ended": None, "status": None, "bytes": 0}
        with self.lock:
            self.records.append(record)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            rules = self.rules.about(method, key, headers)
            record["faults"] = [rule["fault"] for rule in rules]
            made = self.make(method, key, headers, query, rules)
            made.headers["X-Key"] = quote(key, errors="surrogateescape")
            made = fault_rules.change(made, rules, method)
            made.headers.pop("X-Key", None)
            record["status"], record["bytes"] = made.status, len(made.body)
            return await self.send(verb, made, writer, record)
        finally:
            with self.lock:
                self.in_flight -= 1

    def make(self, method, key, headers, query, rules):
        faults = {rule["fault"] for rule in rules}
        bucket, _, name = key.partition("/")
        answers = fault_azure if self.kind == "az" else fault_answers
        if method == "LIST":
            return answers.list_answer(self.files, bucket, query)
        if method not in ("GET", "HEAD"):
            return Answer(405, {"Allow": "GET, HEAD"}, b"no")
        if self.kind == "s3" and not self.files.bucket(bucket):
            return fault_answers.missing(bucket, "NoSuchBucket")
        if self.kind == "s3" and not name:
            return Answer(200, {"x-amz-bucket-region": "us-east-1"})
        shift = sum(rule.get("by", 1) for rule in rules if rule["fault"] == "shift")
        return answers.object_answer(self.files, method, key, headers, faults, shift)

    async def send(self, verb, made, writer, record):
        if made.wait:
            await asyncio.sleep(made.wait)
        rules = self.rules.rules
        while made.is_held and self.rules.rules is rules:
            await asyncio.sleep(0.005)
        stops = made.stop_after is not None
        body = b"" if verb == "HEAD" or made.status == 304 else made.body
        if not made.says_nothing:
            told = {"Date": formatdate(usegmt=True), "Server": "faults", **made.headers}
            if made.chunked:
                told["Transfer-Encoding"] = "chunked"
                body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n" if body else b"0\r\n\r\n"
                body = b"" if verb == "HEAD" else body
            elif made.status != 304:
                told["Content-Length"] = str(len(made.body))
            head = [f"HTTP/1.1 {made.status} {phrase(made.status)}", *(f"{name}: {value}" for name, value in told.items())]
            sent = body[:made.stop_after] if stops else body
            record["ended"] = time.monotonic()
            writer.write("\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + sent)
            await writer.drain()
        if not stops or verb == "HEAD" and not made.says_nothing:
            return True
        if made.stop_how == "stall":
            await asyncio.sleep(made.stall)
        elif made.stop_how == "reset":
            await asyncio.sleep(0.02)  # what was sent before must arrive before the reset
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False

    def command(self, line):
        asked = json.loads(line)
        what = asked.pop("do")
        if what == "rules":
            self.rules.replace(asked["rules"], asked.get("seed", 0))
        elif what == "hits":
            return [rule["hit"] for rule in self.rules.rules]
        elif what == "snapshot":
            self.files.take_snapshot()
        elif what == "records":
            with self.lock:
                found = list(self.records)
                if asked.get("clear"):
                    self.records, self.most_in_flight, self.connections = [], self.in_flight, 0
            return found
        elif what == "load":
            return {"in_flight": self.in_flight, "most_in_flight": self.most_in_flight, "connections": self.connections}
        return None


def phrase(status):
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


async def main(root, kind, certificate=None, key=None):
    worker, context = Worker(root, kind), None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(worker.serve, "127.0.0.1", 0, limit=1 << 20, backlog=1024, ssl=context)
    print(json.dumps(server.sockets[0].getsockname()[1]), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(worker.command(line)), flush=True)
    os._exit(0)  # connections that stall are dropped, not waited for


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
