#!/usr/bin/env bash
# Software: readers of the tags of an MP3 file. Debian: ffprobe 7:5.1.9-0+deb12u1, Liquidsoap 2.1.3-2, eyeD3 0.9.7-1, python3-mutagen 1.46.0-1;
#   npm: jsmediatags 3.9.7, id3js 2.1.1, node-id3 0.2.9, music-metadata 7.14.0
# Behaviour: ID3v2.4 puts U+0000 between several artists of a song. Most readers give the first artist alone, node-id3 both as one word, and
#   eyeD3 both with the U+0000 between them. mutagen, and music-metadata in `artists`, have a list.
# Seen: 2026-11-30, a file of the artists Mira Hollund and Jonte Brink
#   ffprobe: "Mira Hollund"
#   Liquidsoap: "Mira Hollund"
#   eyeD3: "Mira Hollund\u0000Jonte Brink"
#   mutagen: ["Mira Hollund", "Jonte Brink"]
#   jsmediatags: "Mira Hollund"
#   id3js: "Mira Hollund"
#   node-id3: "Mira HollundJonte Brink"
#   music-metadata: "Mira Hollund", ["Mira Hollund","Jonte Brink"]
# Hub: a publisher that takes artists from files sends half of them, a word that nobody is called, or the warning text.nul:
#   docs/publishers.md, "Warnings"
# Source: ID3v2.4.0 "Main Structure", 4.2 (text information frames); node-id3, src/ID3Util.js,
#   bufferToDecodedString, which takes each U+0000 away
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

for package in 'ffmpeg 7:5.1.9-0+deb12u1' 'liquidsoap 2.1.3-2' 'eyed3 0.9.7-1' 'python3-mutagen 1.46.0-1'; do
  echo "$package"
  [ "$(dpkg-query -W -f '${Package} ${Version}' "${package% *}")" = "$package" ]
done
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts jsmediatags@3.9.7 id3js@2.1.1 node-id3@0.2.9 music-metadata@7.14.0

cat >write.mjs <<'JS'
import { writeFileSync } from 'node:fs'

const size = (n) => Buffer.from([(n >> 21) & 127, (n >> 14) & 127, (n >> 7) & 127, n & 127])
function frame(id, text) {
  const content = Buffer.from(`\x03${text}`) // UTF-8
  return Buffer.concat([Buffer.from(id), size(content.length), Buffer.alloc(2), content])
}
const frames = Buffer.concat([frame('TIT2', 'Ebbe und Flut'), frame('TPE1', 'Mira Hollund\0Jonte Brink')])
const tag = Buffer.concat([Buffer.from('ID3'), Buffer.from([4, 0, 0]), size(frames.length), frames])
const silence = Buffer.alloc(417)
silence.set([0xff, 0xfb, 0x90, 0xc4]) // MPEG-1, layer 3, 128 kbit/s, 44.1 kHz
writeFileSync('song.mp3', Buffer.concat([tag, ...Array(400).fill(silence)]))
JS
node write.mjs

cat >song.liq <<'LIQ'
set("log.stdout", false)
set("init.allow_root", true)
song = single("song.mp3")
def tell(m) =
  print(json.stringify(m["artist"]))
  shutdown()
end
song.on_metadata(tell)
output.dummy(fallible=true, song)
LIQ
cat >read.mjs <<'JS'
import { fromPath } from 'id3js'
import jsmediatags from 'jsmediatags'
import { parseFile } from 'music-metadata'
import nodeId3 from 'node-id3'

const tags = await new Promise((onSuccess, onError) => new jsmediatags.Reader('song.mp3').read({ onSuccess, onError }))
console.log(`jsmediatags: ${JSON.stringify(tags.tags.artist)}`)
console.log(`id3js: ${JSON.stringify((await fromPath('song.mp3')).artist)}`)
console.log(`node-id3: ${JSON.stringify(nodeId3.read('song.mp3').artist)}`)
const { artist, artists } = (await parseFile('song.mp3')).common
console.log(`music-metadata: ${JSON.stringify(artist)}, ${JSON.stringify(artists)}`)
process.exit()
JS
cat >read.py <<'PY'
import json
import mutagen

print("mutagen:", json.dumps(list(mutagen.File("song.mp3")["TPE1"].text)))
PY
{
  echo "ffprobe: \"$(ffprobe -v error -show_entries format_tags=artist -of default=nw=1:nk=1 song.mp3)\""
  echo "Liquidsoap: $(timeout 30 liquidsoap song.liq 2>/dev/null | grep Mira)"
  echo "eyeD3: \"$(eyeD3 song.mp3 2>/dev/null | sed -n 's/^artist: //p' | sed 's/\x00/\\u0000/')\""
  /usr/bin/python3 read.py
  node read.mjs
} | tee seen
diff seen - <<'SEEN'
ffprobe: "Mira Hollund"
Liquidsoap: "Mira Hollund"
eyeD3: "Mira Hollund\u0000Jonte Brink"
mutagen: ["Mira Hollund", "Jonte Brink"]
jsmediatags: "Mira Hollund"
id3js: "Mira Hollund"
node-id3: "Mira HollundJonte Brink"
music-metadata: "Mira Hollund", ["Mira Hollund","Jonte Brink"]
SEEN
echo 'as described'
