#!/usr/bin/env bash
# Software: shout2send of GStreamer 1.22.0 (Debian gstreamer1.0-plugins-good 1.22.0-5+deb12u4) as a source of Icecast 2.4.4 (Debian
#   icecast2 2.4.4-4+b1)
# Behaviour: it tells Icecast a title when the source begins, also where the sound has no tags: "Unknown - Unknown". To a title without an
#   artist, such as that of news, it gives the artist "Unknown".
# Seen: 2026-11-30
#   no tags: StreamTitle='Unknown - Unknown';
#   title: StreamTitle='Unknown - Ebbe';
#   title and artist: StreamTitle='Mira - Ebbe';
# Hub: listeners read this until the output icecast has looked, and each file with tags replaces the title of the hub. Where titles go from
#   the stream to the hub, it gets the artist Unknown. docs/outputs.md, "icecast"
# Source: gst-plugins-good 1.22, ext/shout2/gstshout2.c
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" ${sources:-} 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

versions=$(dpkg-query -W -f '${Package} ${Version}\n' gstreamer1.0-plugins-good icecast2)
echo "$versions"
[ "$versions" = $'gstreamer1.0-plugins-good 1.22.0-5+deb12u4\nicecast2 2.4.4-4+b1' ]

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
for _ in $(seq 100); do
  curl -s "http://127.0.0.1:$port/" >/dev/null && break
  sleep 0.1
done

# source MOUNT TAGGER…: a tone as MP3.
source() {
  local mount=$1
  shift
  timeout 40 gst-launch-1.0 -q audiotestsrc is-live=true ! "$@" lamemp3enc target=bitrate bitrate=128 cbr=true \
    ! shout2send ip=127.0.0.1 port="$port" password=source mount="$mount" >/dev/null 2>&1 &
  sources="${sources:-} $!"
}
source /none.mp3
source /title.mp3 taginject tags=title=Ebbe !
source /both.mp3 taginject tags=title=Ebbe,artist=Mira !
sleep 5

cat >title.py <<'PY'
import socket, sys

s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
s.sendall(f"GET {sys.argv[2]} HTTP/1.0\r\nIcy-MetaData: 1\r\n\r\n".encode())
f = s.makefile("rb")
head = list(iter(lambda: f.readline().strip().lower(), b""))
f.read(next(int(line[12:]) for line in head if line.startswith(b"icy-metaint:")))
print(f.read(f.read(1)[0] * 16).rstrip(b"\0").decode())
PY
{
  echo "no tags: $(python3 title.py "$port" /none.mp3)"
  echo "title: $(python3 title.py "$port" /title.mp3)"
  echo "title and artist: $(python3 title.py "$port" /both.mp3)"
} | tee seen
diff seen - <<'SEEN'
no tags: StreamTitle='Unknown - Unknown';
title: StreamTitle='Unknown - Ebbe';
title and artist: StreamTitle='Mira - Ebbe';
SEEN
echo 'as described'
