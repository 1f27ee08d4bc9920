#!/usr/bin/env bash
# Software: @microsoft/fetch-event-source 2.0.1 and its copies @fortaine/fetch-event-source 3.0.6, @ardatan/fetch-event-source 2.0.2 and
#   @ai-zen/node-fetch-event-source 2.1.4 (npm), with the fetch of Node.js
# Behaviour: They make a message of each empty line, also behind `retry:` or a comment: its `data` is an empty text. What onmessage throws,
#   such as the error of JSON.parse(''), counts as a lost connection: they connect again, for ever.
# Seen: 2026-11-30, a stream with `retry: 300` that stays open, two seconds
#   empty lines behind retry and comment: each of the four connects more than 3 times, titles 0
#   empty lines behind events alone: each of the four connects 1 time, titles 2
# Hub: that is why its streams have an empty line behind events alone; a proxy may add others: docs/reading.md, "With a library"
# Source: @microsoft/fetch-event-source, src/parse.ts, getMessages, and src/fetch.ts, create; HTML Living Standard 9.2.6: no event where the
#   data buffer is empty
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @microsoft/fetch-event-source@2.0.1 @fortaine/fetch-event-source@3.0.6 \
  @ardatan/fetch-event-source@2.0.2 @ai-zen/node-fetch-event-source@2.1.4

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

// What these libraries want of a page.
globalThis.window = globalThis
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
const libraries = await Promise.all(
  ['@microsoft/fetch-event-source', '@fortaine/fetch-event-source', '@ardatan/fetch-event-source', '@ai-zen/node-fetch-event-source'].map(
    (name) => import(name),
  ),
)

const title = 'event: playing\ndata: {"title":"Ebbe"}\n\n'
const streams = {
  'empty lines behind retry and comment': `retry: 300\n\n${title}:\n\n${title}`,
  'empty lines behind events alone': `retry: 300\n${title}:\n${title}`,
}
let text = ''
let connections = 0
const server = createServer((_request, response) => {
  connections++
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(text)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}/`

for (const [name, bytes] of Object.entries(streams)) {
  text = bytes
  const seen = new Set()
  for (const { fetchEventSource } of libraries) {
    const titles = []
    const ending = new AbortController()
    connections = 0
    const { signal } = ending
    const onmessage = ({ data }) => titles.push(JSON.parse(data).title)
    fetchEventSource(url, { signal, fetch, openWhenHidden: true, onmessage }).catch(() => {})
    await pause(2000)
    ending.abort()
    seen.add(`${connections > 3 ? 'more than 3 times' : `${connections} time`}, titles ${titles.length}`)
  }
  console.log(`${name}: each of the four connects ${[...seen].join(' or ')}`)
}
process.exit(0)
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
empty lines behind retry and comment: each of the four connects more than 3 times, titles 0
empty lines behind events alone: each of the four connects 1 time, titles 2
SEEN
echo 'as described'
