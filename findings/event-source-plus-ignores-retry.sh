#!/usr/bin/env bash
# Software: event-source-plus 0.1.15 (npm), in Node.js
# Behaviour: It takes no notice of `retry:`. After a stream that ended it connects again at once, and a 200 resets its pauses to
#   2 ms: of a server that answers each connection with a 200 and ends it, it asks hundreds of times a second. After an answer
#   of 401 it goes on for ever, with pauses that begin at 2 ms and double up to `maxRetryInterval` (30 s). The last id is sent.
# Seen: 2026-11-29
#   a server that says `retry: 30000` and ends: more than 100 connections in 3 s
#   401: 10 connections or more in 3 s
#   after id 42: Last-Event-ID 42
# Hub: a node without room for a stream says so with a 200, `bye` and `retry:`: docs/reading.md, "With a library".
# Source: event-source-plus 0.1.15, dist/index.mjs, _handleRetry and _handleConnection; `retry:` is parsed, and not used
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts event-source-plus@0.1.15

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { EventSourcePlus } from 'event-source-plus'

/** How often it connects in three seconds, and with which ids. */
async function look(answer) {
  const ids = []
  const server = createServer((request, response) => {
    ids.push(request.headers['last-event-id'])
    answer(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const source = new EventSourcePlus(`http://127.0.0.1:${server.address().port}/`)
  const controller = source.listen({ onMessage() {} })
  await pause(3000)
  controller.abort()
  server.close()
  server.closeAllConnections()
  return ids
}

const type = { 'content-type': 'text/event-stream' }
const full = await look((response) => response.writeHead(200, type).end('retry: 30000\n\nevent: bye\ndata: {}\n\n'))
console.log(`a server that says \`retry: 30000\` and ends: ${full.length > 100 ? 'more than 100' : full.length} connections in 3 s`)
const refused = await look((response) => response.writeHead(401).end())
console.log(`401: ${refused.length >= 10 ? '10 connections or more' : refused.length} in 3 s`)
const known = await look((response) => response.writeHead(200, type).end('id: 42\ndata: {}\n\n'))
console.log(`after id 42: Last-Event-ID ${known[1]}`)
process.exit()
JS
timeout 30 node look.mjs | tee seen
diff seen - <<'SEEN'
a server that says `retry: 30000` and ends: more than 100 connections in 3 s
401: 10 connections or more in 3 s
after id 42: Last-Event-ID 42
SEEN
echo 'as described'
