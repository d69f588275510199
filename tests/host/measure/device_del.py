"""Deletes a vfio-user-pci device in QEMU with device_del. The server contains no WARP code, and its
PCI device does nothing.

    device_del.py SYSTEM [without-msix]     SYSTEM is the first folder of `warp guest --build-only`

Prints the exit status of QEMU. If the device has MSI-X, QEMU 11.1.3 ends with signal 6 for any
answer of the server. The reset completes device_del, which otherwise waits for a guest.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

CONFIG_BYTES, BAR_BYTES, CONFIG_REGION, MSIX = 4096, 4096, 7, 2
VERSION, DMA_UNMAP, DEVICE_INFO, REGION_INFO, IRQ_INFO, REGION_READ, REGION_WRITE = 1, 3, 4, 5, 7, 9, 10
REPLY, NO_REPLY = 0x1, 0x10


def config_space(has_msix: bool) -> bytearray:
    """Returns the configuration space of a device with one BAR. With MSI-X it has one interrupt,
    whose table and bits are in that BAR."""
    space = bytearray(CONFIG_BYTES)
    struct.pack_into("<HHHHI", space, 0, 0x1AF4, 0x10F0, 0, 0x10 if has_msix else 0, 0xFF000000)
    if has_msix:
        space[0x34] = 0x40
        struct.pack_into("<BBHII", space, 0x40, 0x11, 0, 0, 0, 0x800)
    return space


def answer(command: int, body: bytes, space: bytearray, has_msix: bool) -> bytes:
    """Returns the body of the reply to a message."""
    sizes = {0: BAR_BYTES, CONFIG_REGION: CONFIG_BYTES}
    if command == VERSION:
        return struct.pack("<HH", 0, 0) + b"{}\0"
    if command == DEVICE_INFO:
        return struct.pack("<IIII", 16, 3, 9, 5)
    if command == REGION_INFO:
        region = struct.unpack_from("<I", body, 8)[0]
        size = sizes.get(region, 0)
        return struct.pack("<IIIIQQ", 32, 3 if size else 0, region, 0, size, 0)
    if command == IRQ_INFO:
        index = struct.unpack_from("<I", body, 8)[0]
        count = int(has_msix and index == MSIX)
        return struct.pack("<IIII", 16, count, index, count)
    if command in (REGION_READ, REGION_WRITE):
        offset, region, count = struct.unpack_from("<QII", body)
        if command == REGION_READ:
            return body[:16] + (bytes(space[offset : offset + count]) if region == CONFIG_REGION else bytes(count))
        if region == CONFIG_REGION and offset == 0x10:
            address = struct.unpack_from("<I", body, 16)[0] & -BAR_BYTES & 0xFFFFFFFF
            struct.pack_into("<I", space, offset, address)
        return body[:16]
    return body if command == DMA_UNMAP else b""


def serve(listener: socket.socket, has_msix: bool) -> None:
    """Serves one client until it disconnects."""
    client, _ = listener.accept()
    space = config_space(has_msix)
    while True:
        header, _, _, _ = client.recvmsg(16, socket.CMSG_SPACE(64), socket.MSG_WAITALL)
        if len(header) < 16:
            return
        number, command, size, flags, _ = struct.unpack("<HHIII", header)
        body = client.recv(size - 16, socket.MSG_WAITALL) if size > 16 else b""
        reply = answer(command, body, space, has_msix)
        if not flags & NO_REPLY:
            client.sendall(struct.pack("<HHIII", number, command, 16 + len(reply), REPLY, 0) + reply)


def main(system: str, has_msix: bool) -> None:
    """Attaches the device, deletes it, and prints the exit status of QEMU."""
    folder = tempfile.mkdtemp()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/device")
    listener.listen()
    threading.Thread(target=serve, args=(listener, has_msix), daemon=True).start()
    device = {"driver": "vfio-user-pci", "id": "d", "bus": "root", "socket": {"type": "unix", "path": f"{folder}/device"}}
    qemu = [f"{system}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", f"{system}/usr/lib/x86_64-linux-gnu"]
    qemu += [f"{system}/usr/bin/qemu-system-x86_64", "-L", f"{system}/usr/share/qemu", "-L", f"{system}/usr/share/seabios"]
    qemu += ["-M", "q35,memory-backend=ram", "-m", "64M", "-object", "memory-backend-memfd,id=ram,size=64M,share=on"]
    qemu += ["-nodefaults", "-display", "none", "-accel", "tcg", "-S", "-qmp", "stdio"]
    qemu += ["-device", "pcie-root-port,id=root", "-device", json.dumps(device)]
    commands = [{"execute": "qmp_capabilities"}, {"execute": "device_del", "arguments": {"id": "d"}}]
    commands += [{"execute": "system_reset"}]
    pipe = subprocess.PIPE
    process = subprocess.Popen(qemu, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    assert process.stdin is not None
    process.stdin.write("".join(json.dumps(command) + "\n" for command in commands))
    process.stdin.flush()
    # QEMU destroys a deleted device a little later.
    time.sleep(2)
    process.terminate()
    print(process.communicate()[0] + f"QEMU ended with {process.returncode}")
    os.unlink(f"{folder}/device")
    os.rmdir(folder)


main(sys.argv[1], "without-msix" not in sys.argv[2:])
