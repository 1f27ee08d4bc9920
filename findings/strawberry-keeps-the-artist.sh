#!/usr/bin/env bash
# Software: Strawberry 1.0.14 (Debian strawberry 1.0.14-1) with GStreamer, a mount of MP3 of Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1);
#   Xvfb, a session bus and playerctl (Debian) look at what it shows
# Behaviour: Of a title with " - " it makes artist and title. A title without one is shown with the artist of the title before.
# Seen: 2026-11-30
#   Mira Hollund - Ebbe: artist Mira Hollund, title Ebbe
#   Nachrichten: artist Mira Hollund, title Nachrichten
#   Küstenfunk 1 - Nachrichten: artist Küstenfunk 1, title Nachrichten
# Hub: the output icecast sends the title alone where an element has no artist, and the idle text: docs/outputs.md, "What players show"
# Source: strawberry 1.0.14, src/engine/gstenginepipeline.cpp, TagMessageReceived; src/core/song.cpp, MergeFromEngineMetadata, which keeps
#   what a new title does not have
set -euo pipefail

folder=$(mktemp -d)
server=
trap 'kill $server $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

for wanted in strawberry=1.0.14-1 icecast2=2.4.4-4+b1; do
  version=$(dpkg-query -W -f '${Version}' "${wanted%=*}")
  echo "${wanted%=*} $version"
  [ "$version" = "${wanted#*=}" ]
done

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

cat >source.py <<'PY'
import base64, socket, sys, time

login = base64.b64encode(b"source:source").decode()
while True:
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.1)
s.sendall(f"SOURCE /live.mp3 HTTP/1.0\r\nAuthorization: Basic {login}\r\nContent-Type: audio/mpeg\r\n\r\n".encode())
while True:  # silence, as MP3
    s.sendall(bytes([0xFF, 0xFB, 0x90, 0x64]) + bytes(413))
    time.sleep(0.02)
PY
python3 source.py "$port" &

mkdir -p home/.config/strawberry home/run
chmod 700 home/run
printf '[Backend]\nengine=GStreamer\noutput=fakesink\n' >home/.config/strawberry/strawberry.conf

cat >look.sh <<'SH'
tell() {
  curl -s -G -u admin:admin "http://127.0.0.1:$1/admin/metadata" --data-urlencode mode=updinfo \
    --data-urlencode mount=/live.mp3 --data-urlencode "song=$2" >/dev/null
}
until tell "$1" 'Mira Hollund - Ebbe' && curl -sf -m 1 -r 0-10 -o /dev/null "http://127.0.0.1:$1/live.mp3" || [ $? = 28 ]; do
  sleep 0.2
done
strawberry --play --load "http://127.0.0.1:$1/live.mp3" >/dev/null 2>&1 &
for title in 'Mira Hollund - Ebbe' Nachrichten 'Küstenfunk 1 - Nachrichten'; do
  tell "$1" "$title"
  until [ "$(playerctl metadata title 2>/dev/null)" = "${title#* - }" ] && [ "$title" = Nachrichten -o \
    "$(playerctl metadata artist 2>/dev/null)" = "${title% - *}" ]; do sleep 0.5; done
  sleep 1
  echo "$title: artist $(playerctl metadata artist), title $(playerctl metadata title)"
done
kill $!
SH
HOME=$folder/home XDG_RUNTIME_DIR=$folder/home/run TMPDIR=$folder timeout 80 dbus-run-session -- \
  xvfb-run -a bash look.sh "$port" 2>/dev/null | tee seen
diff seen - <<'SEEN'
Mira Hollund - Ebbe: artist Mira Hollund, title Ebbe
Nachrichten: artist Mira Hollund, title Nachrichten
Küstenfunk 1 - Nachrichten: artist Küstenfunk 1, title Nachrichten
SEEN
echo 'as described'
