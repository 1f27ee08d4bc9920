#!/usr/bin/env bash
# Software: ezstream 1.0.2 (Debian ezstream 1.0.2-2) as the source of Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1)
# Behaviour: ezstream sets artist= and title= for each file that it plays. Icecast keeps the artist, so a title that another
#   program sends with song= comes behind the artist of ezstream's file. With <no_updates> in ezstream's <metadata> it
#   comes alone.
# Seen: 2026-11-29, a file with the artist F and the title G, and then song=A - T from outside
#   no_updates no: F - G, then F - A - T
#   no_updates yes: none, then A - T
# Hub: a station that plays with ezstream, and lets the output icecast set its titles: docs/outputs.md, "icecast".
# Source: ezstream.1 of ezstream 1.0.2, "no_updates"; the Icecast side is icecast-artist-stays.sh
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" "${player:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

versions=$(dpkg-query -W -f '${Package} ${Version}\n' ezstream icecast2)
echo "$versions"
[ "$versions" = $'ezstream 1.0.2-2\nicecast2 2.4.4-4+b1' ]

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >icecast.xml <<XML
<icecast>
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

# A minute of silence as MP3, with a tag of ID3v1.
python3 - <<'PY'
frames = (bytes([0xFF, 0xFB, 0x90, 0x64]) + bytes(413)) * 2300
open("file.mp3", "wb").write(frames + b"TAG" + b"G".ljust(30, b"\0") + b"F".ljust(30, b"\0") + bytes(64) + b"\xff")
PY

shown() {
  curl -s "http://127.0.0.1:$port/status-json.xsl" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["icestats"].get("source", {}).get("title", "none"))'
}

until curl -s "http://127.0.0.1:$port/status-json.xsl" >/dev/null; do sleep 0.2; done
for no_updates in no yes; do
  cat >ezstream.xml <<XML
<ezstream>
  <servers><server><name>default</name><protocol>HTTP</protocol><hostname>127.0.0.1</hostname><port>$port</port>
    <user>source</user><password>source</password></server></servers>
  <streams><stream><name>default</name><mountpoint>/$no_updates.mp3</mountpoint><format>MP3</format></stream></streams>
  <intakes><intake><name>default</name><type>file</type><filename>$folder/file.mp3</filename></intake></intakes>
  <metadata><no_updates>$no_updates</no_updates></metadata>
</ezstream>
XML
  chmod 600 ezstream.xml
  ezstream -c ezstream.xml >/dev/null 2>&1 &
  player=$!
  sleep 3
  before=$(shown)
  curl -s -G -u admin:admin -d mode=updinfo -d "mount=/$no_updates.mp3" --data-urlencode 'song=A - T' \
    "http://127.0.0.1:$port/admin/metadata" >/dev/null
  sleep 1
  echo "no_updates $no_updates: $before, then $(shown)"
  kill "$player"
  wait "$player" || true
  sleep 1
done >seen
cat seen
diff seen - <<'SEEN'
no_updates no: F - G, then F - A - T
no_updates yes: none, then A - T
SEEN
echo 'as described'
