#!/usr/bin/env bash
# Software: Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1)
# Behaviour: A title for a mount of Ogg Opus is not taken. The answer says so in its message alone: status 200 and <return>1,
#   which is what success has, too.
# Seen: 2026-11-29
#   audio/mpeg: 200 Metadata update successful, return 1
#   Ogg Opus: 200 Mountpoint will not accept URL updates, return 1
# Hub: the output icecast reads the message, and is refused there: docs/outputs.md, "icecast".
# Source: icecast 2.4.4, src/admin.c, command_metadata
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

version=$(dpkg-query -W -f '${Version}' icecast2)
echo "icecast2 $version"
[ "$version" = 2.4.4-4+b1 ]

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >icecast.xml <<XML
<icecast>
  <limits><burst-size>0</burst-size></limits>
  <authentication><source-password>source</source-password>
    <admin-user>admin</admin-user><admin-password>admin</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>$port</port><bind-address>127.0.0.1</bind-address></listen-socket>
  <paths><logdir>$folder</logdir><webroot>/usr/share/icecast2/web</webroot>
    <adminroot>/usr/share/icecast2/admin</adminroot></paths>
  <logging><loglevel>1</loglevel></logging>
</icecast>
XML
# It does not run as root.
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_user[@]}" /usr/bin/icecast2 -c "$folder/icecast.xml" >/dev/null 2>&1 &
server=$!

cat >look.py <<'PY'
import base64, re, socket, struct, sys, threading, time, urllib.parse, urllib.request

PORT = int(sys.argv[1])


def opened(head):
    for _ in range(100):
        try:
            s = socket.create_connection(("127.0.0.1", PORT))
            break
        except OSError:
            time.sleep(0.1)
    s.sendall(head.encode())
    return s


def source(mount, kind, sound):
    login = base64.b64encode(b"source:source").decode()
    s = opened(f"SOURCE {mount} HTTP/1.0\r\nAuthorization: Basic {login}\r\nContent-Type: {kind}\r\n\r\n")
    assert b"200" in s.recv(1000)

    def send():
        for piece in sound:
            s.sendall(piece)
            time.sleep(0.02)

    threading.Thread(target=send, daemon=True).start()


def update(mount, **fields):
    query = urllib.parse.urlencode({"mode": "updinfo", "mount": mount, **fields})
    login = base64.b64encode(b"admin:admin").decode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/admin/metadata?{query}", headers={"Authorization": f"Basic {login}"}
    )
    with urllib.request.urlopen(asked) as answer:
        return answer.status, answer.read().decode()


def mp3():
    while True:
        yield bytes([0xFF, 0xFB, 0x90, 0x64]) + bytes(413)


def crc(data):
    value = 0
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = ((value << 1) ^ 0x04C11DB7 if value & 0x80000000 else value << 1) & 0xFFFFFFFF
    return value


def page(kind, position, number, packet):
    """A page of Ogg (RFC 3533) with one packet of less than 255 bytes."""
    head = struct.pack("<4sBBqIIIBB", b"OggS", 0, kind, position, 1, number, 0, 1, len(packet))
    whole = head + packet
    return whole[:22] + struct.pack("<I", crc(whole)) + whole[26:]


def opus():
    """Silence in Ogg Opus (RFC 7845)."""
    yield page(2, 0, 0, struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, 0, 48000, 0, 0))
    yield page(0, 0, 1, struct.pack("<8sI4sI", b"OpusTags", 4, b"none", 0))
    number = 2
    while True:
        yield page(0, 960 * (number - 1), number, bytes([0xF8, 0xFF, 0xFE]))
        number += 1


for name, mount, kind, sound in (
    ("audio/mpeg", "/a.mp3", "audio/mpeg", mp3()),
    ("Ogg Opus", "/b.opus", "audio/ogg", opus()),
):
    source(mount, kind, sound)
    time.sleep(1)
    status, text = update(mount, song="Title")
    message, result = re.search(r"<message>(.*)</message><return>(.*)</return>", text).groups()
    print(f"{name}: {status} {message}, return {result}", flush=True)
PY
python3 look.py "$port" | tee seen

diff seen - <<'SEEN'
audio/mpeg: 200 Metadata update successful, return 1
Ogg Opus: 200 Mountpoint will not accept URL updates, return 1
SEEN
echo 'as described'
