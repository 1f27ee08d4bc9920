#!/usr/bin/env bash
# Software: @eyevinn/m3u8 0.5.9 (npm), which programs that put HLS streams together read and write playlists with
# Behaviour: it cuts the title of #EXTINF at its first comma, and writes the playlist so. Of title="…",artist="…" the artist is lost, and
#   a quotation mark stays open. m3u8-parser and hls-parser have the whole title.
# Seen: 2026-11-30
#   @eyevinn/m3u8 reads: ["title=\"Ebbe","Mira Hollund - Ebbe"]
#   @eyevinn/m3u8 writes: #EXTINF:10.0000,title="Ebbe
#   @eyevinn/m3u8 writes: #EXTINF:10.0000,Mira Hollund - Ebbe
#   m3u8-parser reads: ["title=\"Ebbe, Flut\",artist=\"Mira Hollund\"","Mira Hollund - Ebbe, Flut"]
#   hls-parser reads: ["title=\"Ebbe, Flut\",artist=\"Mira Hollund\"","Mira Hollund - Ebbe, Flut"]
# Hub: titles that a station writes into its HLS playlist reach listeners cut: docs/outputs.md, "In HLS"
# Source: @eyevinn/m3u8, parser.js, parseInf (data.split(',')); RFC 8216, 4.3.2.1: the title is the remainder of the line
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @eyevinn/m3u8@0.5.9 m3u8-parser@7.2.0 hls-parser@0.16.1

cat >playlist.m3u8 <<'M3U'
#EXTM3U
#EXT-X-VERSION:3
#EXT-X-TARGETDURATION:10
#EXT-X-MEDIA-SEQUENCE:1
#EXTINF:10.000,title="Ebbe, Flut",artist="Mira Hollund"
1.aac
#EXTINF:10.000,Mira Hollund - Ebbe, Flut
2.aac
M3U
cat >read.mjs <<'JS'
import m3u8 from '@eyevinn/m3u8'
import hls from 'hls-parser'
import { Parser } from 'm3u8-parser'
import { once } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'

const text = readFileSync('playlist.m3u8', 'utf8')
const stream = m3u8.createStream()
createReadStream('playlist.m3u8').pipe(stream)
const [playlist] = await once(stream, 'm3u')
console.log('@eyevinn/m3u8 reads:', JSON.stringify(playlist.items.PlaylistItem.map((item) => item.get('title'))))
for (const line of playlist.toString().split('\n')) if (/^#EXTINF/.test(line)) console.log('@eyevinn/m3u8 writes:', line)
const parser = new Parser()
parser.push(text)
parser.end()
console.log('m3u8-parser reads:', JSON.stringify(parser.manifest.segments.map(({ title }) => title)))
console.log('hls-parser reads:', JSON.stringify(hls.parse(text).segments.map(({ title }) => title)))
JS
node read.mjs | tee seen
diff seen - <<'SEEN'
@eyevinn/m3u8 reads: ["title=\"Ebbe","Mira Hollund - Ebbe"]
@eyevinn/m3u8 writes: #EXTINF:10.0000,title="Ebbe
@eyevinn/m3u8 writes: #EXTINF:10.0000,Mira Hollund - Ebbe
m3u8-parser reads: ["title=\"Ebbe, Flut\",artist=\"Mira Hollund\"","Mira Hollund - Ebbe, Flut"]
hls-parser reads: ["title=\"Ebbe, Flut\",artist=\"Mira Hollund\"","Mira Hollund - Ebbe, Flut"]
SEEN
echo 'as described'
