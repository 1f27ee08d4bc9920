#!/usr/bin/env bash
# Software: Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1), a mount of Ogg Vorbis; ffmpeg 5.1.9 (Debian 7:5.1.9-0+deb12u1) is its source
# Behaviour: A title that is set with song= replaces the TITLE of the source's own comments, and leaves their ARTIST: players and the
#   status page have the artist of the file beside artist and title of the programme. An empty artist= beside song= changes nothing.
#   Of a source without ARTIST the title comes alone.
# Seen: 2026-11-29, song=A - T
#   source with ARTIST=F TITLE=G: ARTIST=F TITLE=A - T
#   the same, with an empty artist=: ARTIST=F TITLE=A - T
#   source without comments: TITLE=A - T
# Hub: the output icecast sends song= alone, so the source must send no artist: docs/outputs.md, "icecast".
# Source: icecast 2.4.4, src/format_vorbis.c, vorbis_set_tag
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" "${sources[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
sources=()
chmod 777 "$folder"
cd "$folder"

versions=$(dpkg-query -W -f '${Package} ${Version}\n' ffmpeg icecast2)
echo "$versions"
[ "$versions" = $'ffmpeg 7:5.1.9-0+deb12u1\nicecast2 2.4.4-4+b1' ]

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >icecast.xml <<XML
<icecast>
  <limits><burst-size>8000</burst-size></limits>
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
until curl -s -o /dev/null "http://127.0.0.1:$port/status-json.xsl"; do sleep 0.1; done

# One file for each mount, with the comments that follow its name.
play() {
  ffmpeg -v error -f lavfi -i anoisesrc=sample_rate=44100 -t 50 -c:a libvorbis -b:a 64k "${@:2}" "$1.ogg"
  ffmpeg -v error -re -i "$1.ogg" -c copy -content_type application/ogg -f ogg \
    "icecast://source:source@127.0.0.1:$port/$1.ogg" </dev/null >/dev/null 2>&1 &
  sources+=($!)
}
play tagged -metadata artist=F -metadata title=G
play bare

update() {
  curl -s -G -u admin:admin "http://127.0.0.1:$port/admin/metadata" -d mode=updinfo -d "mount=/$1.ogg" "${@:2}"
}
# What a new listener gets as comments. Icecast takes a title with the next page of sound.
comments() {
  curl -s --max-time 3 "http://127.0.0.1:$port/$1.ogg" >heard || true
  { head -c 4000 heard | LC_ALL=C grep -aoiE '(artist|title)=[ -~]+' || true; } |
    sed 's/^[a-z]*/\U&/' | sort | paste -sd ' '
}
look() { # name, mount, fields
  until update "$2" "${@:3}" | grep -q 'Metadata update successful'; do sleep 0.3; done
  local seen=
  for _ in {1..8}; do
    sleep 0.5
    seen=$(comments "$2")
    [[ $seen != *'TITLE=A - T'* ]] || break
  done
  echo "$1: $seen"
}

{
  look 'source with ARTIST=F TITLE=G' tagged --data-urlencode 'song=A - T'
  update tagged -d 'song=between' >/dev/null
  look 'the same, with an empty artist=' tagged --data-urlencode 'song=A - T' -d artist=
  look 'source without comments' bare --data-urlencode 'song=A - T'
} | tee seen

cat >expected <<'TEXT'
source with ARTIST=F TITLE=G: ARTIST=F TITLE=A - T
the same, with an empty artist=: ARTIST=F TITLE=A - T
source without comments: TITLE=A - T
TEXT
diff expected seen
echo 'as described'
