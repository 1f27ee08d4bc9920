#!/usr/bin/env bash
# Software: mqtt-jsonl-store 0.3.1 (npm), a store of packets under way for mqtt.js 5.16.0; mqtt-packet 9.0.2 answers as a broker
# Behaviour: It writes its files once a minute, or when more than 2,000 changes wait. An event that was sent and not acknowledged
#   is in memory alone until then: after a kill of the program the next process sends nothing. After a close() it does. With
#   `throttleFS: { maxBufferedCommands: 0 }` each change is in the file at once.
# Seen: 2026-11-29, an event 1.5 s before the end of the program, with Node.js 20 and 24
#   killed: nothing is in the file, the next process sends nothing
#   closed: the next process sends it again
#   killed, maxBufferedCommands 0: the event is in the file, the next process sends it again
# Hub: a publisher takes its events for safe, and loses what the hub had not acknowledged: docs/clients/javascript.md, "By hand"
# Source: mqtt-jsonl-store 0.3.1, build/lib/store.js, normalizeJsonlOptions and put
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts mqtt@5.16.0 mqtt-jsonl-store@0.3.1 mqtt-packet@9.0.2

cat >publish.mjs <<'JS'
import mqtt from 'mqtt'
import store from 'mqtt-jsonl-store'

const [port, folder, options, event] = process.argv.slice(2)
const kept = new store.Manager(folder, JSON.parse(options))
await kept.open()
const client = mqtt.connect(`mqtt://127.0.0.1:${port}`, {
  clientId: 'studio-1',
  clean: false,
  protocolVersion: 4,
  incomingStore: kept.incoming,
  outgoingStore: kept.outgoing,
})
if (event) client.publish('inbox/house', event, { qos: 1 })
process.on('SIGTERM', () => kept.close().then(() => process.exit()))
JS

cat >look.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'

let published = 0
let came = () => {}
// It acknowledges nothing.
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd }) => {
    if (cmd === 'connect') socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    if (cmd !== 'publish') return
    published++
    came()
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const start = (...more) => spawn(process.execPath, ['publish.mjs', server.address().port, ...more], { stdio: 'inherit' })
const sent = () => new Promise((resolve) => (came = resolve))

async function look(name, options, signal) {
  const kept = `kept-${signal}-${options.length}`
  mkdirSync(kept)
  const first = start(kept, options, 'event')
  await Promise.race([sent(), pause(10_000)])
  await pause(1500)
  const { size } = statSync(`${kept}/outgoing.jsonl`)
  first.kill(signal)
  await once(first, 'exit')
  published = 0
  const second = start(kept, options)
  await Promise.race([sent(), pause(6000)])
  second.kill('SIGKILL')
  const inFile = signal === 'SIGTERM' ? '' : size > 0 ? 'the event is in the file, ' : 'nothing is in the file, '
  console.log(`${name}: ${inFile}the next process sends ${published > 0 ? 'it again' : 'nothing'}`)
}

await look('killed', '{}', 'SIGKILL')
await look('closed', '{}', 'SIGTERM')
await look('killed, maxBufferedCommands 0', '{"throttleFS":{"maxBufferedCommands":0}}', 'SIGKILL')
process.exit()
JS
timeout 55 node look.mjs | tee seen
diff seen - <<'SEEN'
killed: nothing is in the file, the next process sends nothing
closed: the next process sends it again
killed, maxBufferedCommands 0: the event is in the file, the next process sends it again
SEEN
echo 'as described'
