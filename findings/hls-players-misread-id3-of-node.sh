#!/usr/bin/env bash
# Software: @svta/cml-id3 1.0.9 (npm), whose code hls.js 1.7.4 has for timed ID3, with tags of node-id3 0.2.9 and
#   browser-id3-writer 6.4.0 (npm)
# Behaviour: both writers write ID3v2.3 in UTF-16. The reader looks neither at the encoding of a text nor at the version of the tag: it takes
#   each text for UTF-8, and sizes of ID3v2.3 for those of ID3v2.4. A title has U+FFFD in front, and no letter beyond Latin-1 is right. A
#   title of 64 letters is cut, and takes the artist with it. A tag of ID3v2.4 in UTF-8 is right.
# Seen: 2026-11-30
#   UTF-8, ID3v2.4: ["TIT2","Ebbe ж"] ["TPE1","Mira"]
#   node-id3: ["TIT2","\ufffd\ufffdEbbe 6\u0004"] ["TPE1","\ufffd\ufffdMira"]
#   browser-id3-writer: ["TIT2","\ufffd\ufffdEbbe 6\u0004"] ["TPE1","\ufffd\ufffdMira"]
#   node-id3, 64 letters: 0 letters of TIT2, no TPE1
# Hub: a station that writes its titles into HLS as ID3 has broken ones in the players of browsers: docs/outputs.md, "In HLS"
# Source: @svta/cml-id3, src/util/decodeId3TextFrame.ts, which leaves the byte of the encoding out, and readId3Size.ts; ID3v2.3.0, 3.3
#   (sizes of frames have 8 bits a byte there)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @svta/cml-id3@1.0.9 node-id3@0.2.9 browser-id3-writer@6.4.0

cat >read.mjs <<'JS'
import { getId3Frames } from '@svta/cml-id3'
import { ID3Writer } from 'browser-id3-writer'
import nodeId3 from 'node-id3'

const title = 'Ebbe ж'
const artist = 'Mira'
const size = (n) => Buffer.from([(n >> 21) & 127, (n >> 14) & 127, (n >> 7) & 127, n & 127])
function frame(id, text) {
  const content = Buffer.from(`\x03${text}`) // UTF-8
  return Buffer.concat([Buffer.from(id), size(content.length), Buffer.alloc(2), content])
}
const frames = Buffer.concat([frame('TIT2', title), frame('TPE1', artist)])
const utf8 = Buffer.concat([Buffer.from('ID3'), Buffer.from([4, 0, 0]), size(frames.length), frames])
const writer = new ID3Writer(new ArrayBuffer(0))
writer.setFrame('TIT2', title).setFrame('TPE1', [artist])
const shown = (text) => JSON.stringify(text).replace(/[\ufffd]/g, '\\ufffd')
const read = (tag) => getId3Frames(new Uint8Array(tag)).map(({ key, data }) => shown([key, data]))

console.log('UTF-8, ID3v2.4:', ...read(utf8))
console.log('node-id3:', ...read(nodeId3.create({ title, artist })))
console.log('browser-id3-writer:', ...read(writer.addTag()))
const long = getId3Frames(new Uint8Array(nodeId3.create({ title: 'Flut'.repeat(16), artist })))
const letters = long.find(({ key }) => key === 'TIT2')?.data.match(/[a-z]/gi)?.length ?? 0
console.log(`node-id3, 64 letters: ${letters} letters of TIT2, ${long.some(({ key }) => key === 'TPE1') ? 'TPE1' : 'no TPE1'}`)
JS
node read.mjs | tee seen
diff seen - <<'SEEN'
UTF-8, ID3v2.4: ["TIT2","Ebbe ж"] ["TPE1","Mira"]
node-id3: ["TIT2","\ufffd\ufffdEbbe 6\u0004"] ["TPE1","\ufffd\ufffdMira"]
browser-id3-writer: ["TIT2","\ufffd\ufffdEbbe 6\u0004"] ["TPE1","\ufffd\ufffdMira"]
node-id3, 64 letters: 0 letters of TIT2, no TPE1
SEEN
echo 'as described'
