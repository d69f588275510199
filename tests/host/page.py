#!/usr/bin/env python3
"""Opens the page of a served drive without a browser, and writes its values into files.

    page.py http://127.0.0.1:PORT/ TOKEN-FILE FOLDER

FOLDER/open names the program. FOLDER/hosts has IOPS and queue depth of a host on vfio-user, as
soon as both are above zero. FOLDER/waf has the current write amplification since the drive was
made. The program ends with the connection or by a signal.
"""

import base64
import json
import os
import socket
import struct
import sys
from pathlib import Path
from urllib.parse import urlparse

HEAD = struct.Struct("<dd")
HOST_BYTES_AT = 24  # and media bytes behind them (docs/reference/studio.md, "Protocol")


class Page:
    """WebSocket client (RFC 6455) of a page that sends no requests."""

    def __init__(self, address: str, token: str) -> None:
        place = urlparse(address)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=60)
        shown = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /api/drive/live HTTP/1.1\r\nHost: {place.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: warp.token.{shown}\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.bytes(1)
        if not head.startswith(b"HTTP/1.1 101"):
            sys.exit(f"page.py: the server refuses the page: {head.decode(errors='replace').splitlines()[0]}")

    def bytes(self, count: int) -> bytes:
        parts = b""
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                sys.exit("page.py: the server has closed the connection")
            parts += part
        return parts

    def message(self) -> tuple[int, bytes]:
        """Returns the next message of the page, as 1 and a text or as 2 and a frame."""
        while True:
            first, short = self.bytes(2)
            length = short & 127
            if length == 126:
                (length,) = struct.unpack(">H", self.bytes(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.bytes(8))
            payload = self.bytes(length)
            opcode = first & 15
            if opcode in (1, 2):
                return opcode, payload
            if opcode == 8:
                sys.exit("page.py: the server ends the conversation")
            if opcode == 9:
                # The mask is zero, because no proxy can be confused by data that the server sent
                # itself.
                self.socket.sendall(bytes([0x8A, 0x80 | len(payload)]) + bytes(4) + payload)


def put(file: Path, text: str) -> None:
    """Writes a file that no reader sees incomplete."""
    part = file.with_suffix(".part")
    part.write_text(text + "\n")
    part.rename(file)


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    address, token, folder = sys.argv[1], Path(sys.argv[2]).read_text().splitlines()[0].strip(), Path(sys.argv[3])
    page = Page(address, token)
    put(folder / "open", "a program")
    shown = None
    while True:
        opcode, payload = page.message()
        if opcode == 1:
            message = json.loads(payload)
            for host in message.get("hosts", []) if message["type"] == "hosts" else []:
                is_busy = host["iops"] > 0 and host["queue_depth"] >= 0.05
                if host["transport"] == "vfio-user" and is_busy and not (folder / "hosts").exists():
                    put(folder / "hosts", f"{host['iops']:.0f} {host['queue_depth']:.1f}")
        else:
            host_bytes, media_bytes = HEAD.unpack_from(payload, HOST_BYTES_AT)
            waf = f"{media_bytes / host_bytes:.3f}" if host_bytes > 0 else "–"
            if waf != shown:
                put(folder / "waf", waf)
                shown = waf


if __name__ == "__main__":
    main()
