#!/usr/bin/env bash
# Software: rn-eventsource-reborn 1.0.5 (npm) for React Native, whose Networking is one of Node.js here, below
# Behaviour: It takes a stream only where the Content-Type is text/event-stream and nothing else: one with charset=utf-8 it ends for good,
#   with an event "error". After a loss it tries five times, each after `retry:`, and then ends for good as well.
# Seen: 2026-11-30
#   text/event-stream: playing {"title":"Ebbe"}
#   text/event-stream; charset=utf-8: error unsupported MIME type in response: text/event-stream; charset=utf-8, closed
#   server away for ten times `retry:`: error could not reconnect after 5 attempts, closed, 0 connections when it is back
# Hub: it names the charset of its streams, for readers that take other text for Latin-1, so such an app shows no title:
#   docs/reading.md, "With a library"
# Source: rn-eventsource-reborn 1.0.5, lib/RNEventSource.js, __didReceiveResponse and __didCompleteResponse; HTML Standard, "text/event-stream":
#   the parameter charset may be given, and is utf-8
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps rn-eventsource-reborn@1.0.5

mkdir -p node_modules/react-native
cat >node_modules/react-native/index.js <<'JS'
// What the library uses of React Native: requests whose answers come in pieces, as events.
const { request } = require('node:http')

const listeners = { didReceiveNetworkResponse: [], didReceiveNetworkIncrementalData: [], didCompleteNetworkResponse: [] }
const running = new Map()
let ids = 0
const tell = (name, ...values) => listeners[name].forEach((listener) => listener(values))

exports.Networking = {
  addListener(name, listener) {
    listeners[name].push(listener)
    return { remove: () => listeners[name].splice(listeners[name].indexOf(listener), 1) }
  },
  abortRequest: (id) => running.get(id)?.destroy(),
  sendRequest(method, _, url, headers, __, ___, ____, _____, created) {
    const id = ++ids
    created(id)
    const asking = request(url, { method, headers, agent: false }, (answer) => {
      tell('didReceiveNetworkResponse', id, answer.statusCode, { ...answer.headers }, url)
      answer.setEncoding('utf8').on('data', (text) => tell('didReceiveNetworkIncrementalData', id, text, 0, 0))
      answer.on('error', () => {}).on('close', () => tell('didCompleteNetworkResponse', id, '', false))
    })
    asking.on('error', (error) => tell('didCompleteNetworkResponse', id, error.code, false)).end()
    running.set(id, asking)
  },
}
JS

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import library from 'rn-eventsource-reborn'

const retry = 100

function serve(type, port = 0) {
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', type)
    answer.write(`retry: ${retry}\n\nid: 1\nevent: playing\ndata: {"title":"Ebbe"}\n\n`)
  }).listen(port, '127.0.0.1')
  return once(server, 'listening').then(() => server)
}

/** What a page is told, until `isOver` says that it knows enough. */
async function told(server, isOver) {
  const source = new library.RNEventSource(`http://127.0.0.1:${server.address().port}/`)
  const all = []
  let enough
  const over = new Promise((resolve) => (enough = resolve))
  for (const name of ['error', 'playing']) {
    source.addEventListener(name, ({ data }) => {
      all.push(`${name} ${data}`)
      if (isOver(all.at(-1))) enough()
    })
  }
  await Promise.race([over, pause(20_000)])
  return [all.at(-1), ...(source.readyState === 2 ? ['closed'] : [])].join(', ')
}

for (const type of ['text/event-stream', 'text/event-stream; charset=utf-8']) {
  console.log(`${type}: ${await told(await serve(type), () => true)}`)
}

const server = await serve('text/event-stream')
const { port } = server.address()
const outcome = await told(server, (text) => {
  if (text.startsWith('playing')) {
    server.close()
    server.closeAllConnections()
  }
  return text.includes('attempts')
})
await pause(5 * retry)
let connections = 0
const back = await serve('text/event-stream', port)
back.on('connection', () => connections++)
await pause(20 * retry)
console.log(`server away for ten times \`retry:\`: ${outcome}, ${connections} connections when it is back`)
process.exit()
JS
timeout 60 node look.mjs | tee seen
diff seen - <<'SEEN'
text/event-stream: playing {"title":"Ebbe"}
text/event-stream; charset=utf-8: error unsupported MIME type in response: text/event-stream; charset=utf-8, closed
server away for ten times `retry:`: error could not reconnect after 5 attempts, closed, 0 connections when it is back
SEEN
echo 'as described'
