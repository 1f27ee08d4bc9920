#!/usr/bin/env bash
# Software: Liquidsoap 2.1.3 (Debian liquidsoap 2.1.3-2), input.harbor
# Behaviour: input.harbor takes titles at the address of Icecast's admin interface, with an answer of its own: a line of plain
#   text, without Icecast's words and without XML. It gives that answer also after the source has gone, which is a 400
#   of Icecast; before the first source it is a 405. /admin/stats, where Icecast says what a mount shows, is not there.
# Seen: 2026-11-29
#   metadata, before a source: 405 Method Not Allowed
#   metadata, after a source: 200 Updated metadatas for mount /studio
#   metadata, another mount: 400 Source is not available
#   stats: 400 unrecognised command
# Hub: the output icecast reads the answer, and knows both: docs/outputs.md, "icecast".
# Source: liquidsoap 2.1.3, src/core/harbor/harbor.ml, handle_source_request and the admin handlers beside it
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' liquidsoap)
echo "liquidsoap $version"
[ "$version" = 2.1.3-2 ]

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >studio.liq <<LIQ
settings.init.allow_root.set(true)
settings.harbor.bind_addrs.set(["127.0.0.1"])
output.dummy(fallible=true, input.harbor("studio", port=$port, user="source", password="source"))
LIQ
liquidsoap studio.liq >log 2>&1 &
server=$!

ask() {
  curl -s -w ' %{http_code}' -u source:source "http://127.0.0.1:$port/admin/$1" |
    python3 -c '
import re, sys
text, code = sys.stdin.read().rsplit(" ", 1)
print(code, *(re.findall("<p>(.*)</p>", text) or [text]))'
}

for _ in $(seq 100); do
  ! curl -s "http://127.0.0.1:$port/" >/dev/null || break
  sleep 0.3
done
title='metadata?mode=updinfo&mount=/studio&song=A%20-%20T'
{
  echo "metadata, before a source: $(ask "$title")"
  python3 - "$port" <<'PY'
import base64, socket, sys, time

s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
login = base64.b64encode(b"source:source").decode()
s.sendall(f"SOURCE /studio HTTP/1.0\r\nAuthorization: Basic {login}\r\nContent-Type: audio/mpeg\r\n\r\n".encode())
assert b"200" in s.recv(1000)
for _ in range(100):
    s.sendall(bytes([0xFF, 0xFB, 0x90, 0x64]) + bytes(413))
    time.sleep(0.02)
s.close()
PY
  sleep 1
  echo "metadata, after a source: $(ask "$title")"
  echo "metadata, another mount: $(ask 'metadata?mode=updinfo&mount=/other&song=A%20-%20T')"
  echo "stats: $(ask 'stats?mount=/studio')"
} | tee seen
diff seen - <<'SEEN'
metadata, before a source: 405 Method Not Allowed
metadata, after a source: 200 Updated metadatas for mount /studio
metadata, another mount: 400 Source is not available
stats: 400 unrecognised command
SEEN
echo 'as described'
