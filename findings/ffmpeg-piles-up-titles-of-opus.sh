#!/usr/bin/env bash
# Software: mpv 0.35.1 (Debian mpv 0.35.1-4) and ffmpeg 5.1.9 (Debian ffmpeg 7:5.1.9-0+deb12u1), which it reads with
# Behaviour: In Ogg each title begins a new chain, with comments of its own. Of Opus, mpv adds each title to those before, with a semicolon
#   between them. Of FLAC it shows the first for ever. Of Vorbis it shows each title.
# Seen: 2026-11-30, a stream of three chains
#   Opus: Mira Hollund - Ebbe
#   Opus: Mira Hollund - Ebbe;Jonte Brink - Wellen
#   Opus: Mira Hollund - Ebbe;Jonte Brink - Wellen;Nachrichten
#   FLAC: Mira Hollund - Ebbe
#   Vorbis: Mira Hollund - Ebbe
#   Vorbis: Jonte Brink - Wellen
#   Vorbis: Nachrichten
# Hub: a station of Opus gives its titles to Liquidsoap, which writes such chains, and some players show more than one: docs/outputs.md,
#   "Opus and FLAC"
# Source: ffmpeg 5.1, libavformat/oggparsevorbis.c: ff_vorbis_comment appends to a key that is there; vorbis_update_metadata frees the old
#   comments first, opus_header of oggparseopus.c does not
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

for wanted in mpv=0.35.1-4 ffmpeg=7:5.1.9-0+deb12u1; do
  version=$(dpkg-query -W -f '${Version}' "${wanted%%=*}")
  echo "${wanted%%=*} $version"
  [ "$version" = "${wanted#*=}" ]
done

while read -r name codec; do
  for title in 'Mira Hollund - Ebbe' 'Jonte Brink - Wellen' Nachrichten; do
    ffmpeg -nostdin -v error -f lavfi -i sine=duration=3 -metadata title="$title" -c:a "$codec" -f ogg -
  done >stream
  # From a pipe, as from a server: nothing can be looked up further on.
  timeout 20 mpv --no-config --ao=null --vo=null --untimed --term-status-msg= - <stream |
    sed -n "s/^ *Title: /$name: /p"
done <<'CODECS' | tee seen
Opus libopus
FLAC flac
Vorbis libvorbis
CODECS
diff seen - <<'SEEN'
Opus: Mira Hollund - Ebbe
Opus: Mira Hollund - Ebbe;Jonte Brink - Wellen
Opus: Mira Hollund - Ebbe;Jonte Brink - Wellen;Nachrichten
FLAC: Mira Hollund - Ebbe
Vorbis: Mira Hollund - Ebbe
Vorbis: Jonte Brink - Wellen
Vorbis: Nachrichten
SEEN
echo 'as described'
