#!/usr/bin/env bash
# Software: Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1)
# Behaviour: A title that is set with song= comes with the artist that somebody set before with artist=, also where song= and
#   an empty artist= come together. An empty artist= with title= leaves " - " before this title and all later ones.
# Seen: 2026-11-29, a mount of audio/mpeg, what a listener gets
#   song=One: StreamTitle='One';
#   title=Two artist=Somebody: StreamTitle='Somebody - Two';
#   song=Three: StreamTitle='Somebody - Three';
#   song=Four artist=: StreamTitle='Somebody - Four';
#   title=Five artist=: StreamTitle=' - Five';
#   song=Six: StreamTitle=' - Six';
# Hub: the output icecast sends song= alone, and no other program may set the artist: docs/outputs.md, "icecast".
# Source: icecast 2.4.4, src/admin.c, command_metadata; src/format_mp3.c, mp3_set_tag and mp3_set_title
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
import base64, json, socket, sys, threading, time, urllib.parse, urllib.request

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


titles = []


def listen(mount):
    f = opened(f"GET {mount} HTTP/1.0\r\nIcy-MetaData: 1\r\n\r\n").makefile("rb")
    every = 0
    while (line := f.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"icy-metaint"):
            every = int(line.split(b":")[1])

    def read():
        while len(f.read(every)) == every:
            block = f.read(16 * f.read(1)[0])
            if block:
                titles.append(block.rstrip(b"\0"))

    threading.Thread(target=read, daemon=True).start()


def mp3():
    while True:
        yield bytes([0xFF, 0xFB, 0x90, 0x64]) + bytes(413)


def shown(**fields):
    before = len(titles)
    update("/live.mp3", **fields)
    while len(titles) == before:
        time.sleep(0.05)
    return titles[-1]


source("/live.mp3", "audio/mpeg", mp3())
listen("/live.mp3")
while not titles:
    time.sleep(0.05)

for fields in (
    {"song": "One"},
    {"title": "Two", "artist": "Somebody"},
    {"song": "Three"},
    {"song": "Four", "artist": ""},
    {"title": "Five", "artist": ""},
    {"song": "Six"},
):
    asked = " ".join(f"{name}={value}" for name, value in fields.items())
    print(f"{asked}: {shown(**fields).decode()}", flush=True)
PY
python3 look.py "$port" | tee seen

diff seen - <<'SEEN'
song=One: StreamTitle='One';
title=Two artist=Somebody: StreamTitle='Somebody - Two';
song=Three: StreamTitle='Somebody - Three';
song=Four artist=: StreamTitle='Somebody - Four';
title=Five artist=: StreamTitle=' - Five';
song=Six: StreamTitle=' - Six';
SEEN
echo 'as described'
