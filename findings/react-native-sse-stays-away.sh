#!/usr/bin/env bash
# Software: react-native-sse 1.2.1 (npm), with the XMLHttpRequest of jsdom 26.1.0
# Behaviour: It connects again after a stream that the server ended, after `retry:`, with the last id. After a connection that failed
#   it does not: an event "error" with xhrStatus 0 is all. After an answer of 401 it asks again for ever. In Chromium 156 a line that
#   is cut while the stream runs ends it in the same way.
# Seen: 2026-11-29
#   ended by the server: connects again with the id 42
#   server away for a second: error 0, then nothing, though the server is back
#   401: error 401, connects again
# Hub: a listener that goes silent for good with the first restart of a node: docs/reading.md, "With a library". The XMLHttpRequest
#   of React Native itself was not tried.
# Source: react-native-sse 1.2.1, src/EventSource.js: open() calls _pollAgain() only where `status` is not 0; onerror does not
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts react-native-sse@1.2.1 jsdom@26.1.0
# The package names its one file as CommonJS, and it is a module: bundlers of React Native take both.
cp node_modules/react-native-sse/src/EventSource.js event-source.mjs

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { JSDOM } from 'jsdom'
import EventSource from './event-source.mjs'

/** A server that answers the nth connection in the nth way, and further ones in the last. */
async function open(...ways) {
  const ids = []
  const server = createServer((request, response) => {
    const way = ways[Math.min(ids.length, ways.length - 1)]
    ids.push(request.headers['last-event-id'])
    if (typeof way === 'number') return response.writeHead(way).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('retry: 500\n\nid: 42\nevent: playing\ndata: {}\n\n')
    if (way === 'end') setTimeout(() => response.end(), 300)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  globalThis.XMLHttpRequest = new JSDOM('', { url: `http://127.0.0.1:${port}/` }).window.XMLHttpRequest
  const source = new EventSource(`http://127.0.0.1:${port}/`)
  const errors = []
  source.addEventListener('error', ({ xhrStatus }) => errors.push(xhrStatus))
  return { ids, errors, port, server }
}

const ended = await open('end', 'stay')
await pause(3000)
console.log(`ended by the server: connects again with the id ${ended.ids[1]}`)

const away = await open('end', 'stay')
while (away.ids.length === 0) await pause(50)
away.server.close()
while (away.errors.length === 0) await pause(50)
away.server.listen(away.port, '127.0.0.1')
await pause(4000)
const after = away.ids.length === 1 ? 'nothing, though the server is back' : 'it connects'
console.log(`server away for a second: error ${away.errors[0]}, then ${after}`)

const refused = await open(401)
await pause(7000)
console.log(`401: error ${refused.errors[0]}, ${refused.ids.length > 1 ? 'connects again' : 'and no more'}`)
process.exit()
JS
timeout 50 node look.mjs 2>/dev/null | tee seen
diff seen - <<'SEEN'
ended by the server: connects again with the id 42
server away for a second: error 0, then nothing, though the server is back
401: error 401, connects again
SEEN
echo 'as described'
