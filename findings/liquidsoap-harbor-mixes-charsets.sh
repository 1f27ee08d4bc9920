#!/usr/bin/env bash
# Software: Liquidsoap 2.1.3 (Debian liquidsoap 2.1.3-2), output.harbor of an MP3 stream
# Behaviour: Without `encoding` it writes titles in Latin-1, and what Latin-1 lacks in UTF-8: both in one title, so that no reader can
#   be right. With encoding="UTF-8" all is UTF-8. Where artist and title are empty it writes " - ".
# Seen: 2026-11-29, StreamTitle of the titles "Bö - Ж’", "Bö - Ä", "Му - Ж" and an empty one, in hexadecimal, a space as _
#   default: 42f6_-_d096e28099, 42f6_-_c4, d09cd183_-_d096, _-_
#   UTF-8: 42c3b6_-_d096e28099, 42c3b6_-_c384, d09cd183_-_d096, _-_
# Hub: a program that reads titles from such a stream gets wrong letters: README of client/examples/icecast-to-hub
# Source: `liquidsoap -h output.harbor` of 2.1.3: "encoding … If empty, defaults to ISO-8859-1 for non-ogg formats"
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

version=$(dpkg-query -W -f '${Package} ${Version}\n' liquidsoap)
echo "$version"
[ "$version" = 'liquidsoap 2.1.3-2' ]

read -r plain unicode < <(python3 -c '
import socket
free = [socket.socket() for _ in range(2)]
for s in free: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in free))')
cat >station.liq <<LIQ
settings.init.allow_root.set(true)
settings.harbor.bind_addrs.set(["127.0.0.1"])
settings.log.level.set(2)
s = insert_metadata(blank())
def tell(delay, artist, title) =
  thread.run(delay=delay, {s.insert_metadata([("artist", artist), ("title", title)])})
end
tell(5., "Bö", "Ж’")
tell(8., "Bö", "Ä")
tell(11., "Му", "Ж")
tell(14., "", "")
output.harbor(%mp3(bitrate=128), mount="/a.mp3", port=$plain, s)
output.harbor(%mp3(bitrate=128), encoding="UTF-8", mount="/a.mp3", port=$unicode, s)
LIQ
LC_ALL=C.UTF-8 liquidsoap station.liq >log 2>&1 &
server=$!

cat >look.py <<'PY'
import re, socket, sys, threading, time

seen = {}


def look(name, port):
    titles = seen[name] = []
    for _ in range(100):
        try:
            stream = socket.create_connection(("127.0.0.1", int(port))).makefile("rwb")
            break
        except OSError:
            time.sleep(0.1)
    stream.write(b"GET /a.mp3 HTTP/1.0\r\nIcy-MetaData: 1\r\n\r\n")
    stream.flush()
    interval = 0
    while (line := stream.readline().strip().lower()) != b"":
        if line.startswith(b"icy-metaint:"):
            interval = int(line.split(b":")[1])
    while len(titles) < 4:
        stream.read(interval)
        block = stream.read(stream.read(1)[0] * 16)
        if found := re.search(rb"StreamTitle='(.*)';", block):
            title = "_-_".join(part.hex() for part in found[1].split(b" - "))
            if titles[-1:] != [title]:
                titles.append(title)


looks = [threading.Thread(target=look, args=case, daemon=True) for case in zip(("default", "UTF-8"), sys.argv[1:])]
for one in looks:
    one.start()
for one in looks:
    one.join(40)
for name, titles in seen.items():
    print(f"{name}: {', '.join(titles)}")
PY
timeout 50 python3 look.py "$plain" "$unicode" | tee seen

cat >expected <<'TEXT'
default: 42f6_-_d096e28099, 42f6_-_c4, d09cd183_-_d096, _-_
UTF-8: 42c3b6_-_d096e28099, 42c3b6_-_c384, d09cd183_-_d096, _-_
TEXT
diff expected seen
echo 'as described'
