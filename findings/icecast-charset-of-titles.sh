#!/usr/bin/env bash
# Software: Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1)
# Behaviour: On a mount of MP3, a title in UTF-8 comes right to listeners without charset=, and wrong on the status page. With
#   charset=UTF-8 listeners get Latin-1, and what Latin-1 lacks as a character reference of HTML, which players show as it is.
# Seen: 2026-11-29, the title "ÄЖ"
#   no charset: listener c384d096, status page Ã\x84Ð\x96
#   charset=UTF-8: listener c42623313034363b, status page Ä&#1046;
# Hub: the output icecast sends UTF-8 and no charset; <charset>UTF-8</charset> of the mount makes both right: docs/outputs.md,
#   "icecast".
# Source: icecast 2.4.4, src/format_mp3.c, format_mp3_apply_settings and mp3_set_tag
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


def look(label, **fields):
    text = shown(song="\u00c4\u0416", **fields)
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/status-json.xsl") as answer:
        page = json.load(answer)["icestats"]["source"]["title"]
    page = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in page)
    print(f"{label}: listener {text[13:-2].hex()}, status page {page}", flush=True)


look("no charset")
look("charset=UTF-8", charset="UTF-8")
PY
python3 look.py "$port" | tee seen

diff seen - <<'SEEN'
no charset: listener c384d096, status page Ã\x84Ð\x96
charset=UTF-8: listener c42623313034363b, status page Ä&#1046;
SEEN
echo 'as described'
