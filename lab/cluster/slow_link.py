#!/usr/bin/env python3
"""slow_link.py NAME1 NAME2 MILLISECONDS: a cable between two tun devices that keeps every packet for
so long, for machines whose kernel has no netem. Makes the devices, prints "ready" when they may be
moved into namespaces, and forwards until it is ended. Needs root."""
import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def device(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def main():
    ends = [device(sys.argv[1]), device(sys.argv[2])]
    delay = float(sys.argv[3]) / 1000
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    waiting = collections.deque()  # (when it is due, where to, packet)
    print("ready", flush=True)
    while True:
        pause = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        for fd in select.select(ends, [], [], pause)[0]:
            try:
                while True:
                    waiting.append((time.monotonic() + delay, other[fd], os.read(fd, 65536)))
            except BlockingIOError:
                pass
        while waiting and waiting[0][0] <= time.monotonic():
            _, fd, packet = waiting.popleft()
            try:
                os.write(fd, packet)
            except OSError:
                pass  # the device is down: a cable loses what nobody takes


if __name__ == "__main__":
    main()
