#!/usr/bin/env bash
# Software: react-native-paho-mqtt 0.1.1 (npm), in Node.js with ws 8.23.0, with its types taken out by flow-remove-types 2.323.0 and
#   bundled by esbuild 0.28.2, as bundlers of React Native do; mqtt-packet 9.0.2 answers as a broker
# Behaviour: It sends PINGREQ and does not wait for PINGRESP: a dead line, as after a change of the phone's network, is not noticed.
#   After a connection that was closed it says `connectionLost`, and does not come back by itself. A refused log-in and a denied
#   filter reject.
# Seen: 2026-11-29
#   no PINGRESP: PINGREQ 3 or more, and no event
#   closed: connectionLost, CONNECT 1
#   CONNACK 4: rejected, return code:4
#   denied: rejected, Suback error
# Hub: docs/clients/others.md
# Source: react-native-paho-mqtt 0.1.1, src/Pinger.js, _doPing: the one of paho for JavaScript ends the connection where no PINGRESP
#   came since the last PINGREQ
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts react-native-paho-mqtt@0.1.1 flow-remove-types@2.323.0 \
  esbuild@0.28.2 ws@8.23.0 mqtt-packet@9.0.2

mkdir plain
cp -r node_modules/react-native-paho-mqtt/index.js node_modules/react-native-paho-mqtt/src plain
rm -rf plain/src/oldtests
npx flow-remove-types --all --quiet --out-dir plain plain >/dev/null
npx esbuild --bundle --log-level=warning --platform=node --format=cjs plain/index.js --outfile=client.cjs

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'
import WebSocket, { createWebSocketStream, WebSocketServer } from 'ws'

// What React Native has.
Object.assign(globalThis, { window: globalThis, self: globalThis, WebSocket })
const { Client } = await import('./client.cjs').then((found) => found.default)

let answer
const counts = {}
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
await once(server, 'listening')
server.on('connection', (socket) => {
  const stream = createWebSocketStream(socket)
  const parse = parser()
  stream.on('error', () => {})
  stream.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd, messageId }) => {
    counts[cmd] = (counts[cmd] ?? 0) + 1
    if (cmd === 'connect') {
      const returnCode = answer === 'CONNACK 4' ? 4 : 0
      stream.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
      if (returnCode) socket.close()
    }
    if (cmd === 'subscribe') {
      stream.write(generate({ cmd: 'suback', messageId, granted: [answer === 'denied' ? 128 : 1] }))
      if (answer === 'closed') setTimeout(() => socket.close(), 1000)
    }
    if (cmd === 'pingreq' && answer !== 'no PINGRESP') stream.write(generate({ cmd: 'pingresp' }))
  })
})

const items = new Map()
const storage = {
  setItem: (key, value) => void items.set(key, value),
  getItem: (key) => items.get(key),
  removeItem: (key) => void items.delete(key),
}
async function look(name) {
  answer = name
  for (const cmd of Object.keys(counts)) delete counts[cmd]
  const told = []
  const uri = `ws://127.0.0.1:${server.address().port}/mqtt`
  const client = new Client({ uri, clientId: 'phone', storage, webSocket: WebSocket })
  client.on('connectionLost', () => told.push('connectionLost'))
  try {
    await client.connect({ userName: 'u', password: 'p', keepAliveInterval: 1 })
    await client.subscribe('radio/#', { qos: 1 })
  } catch ({ message }) {
    told.push(`rejected, ${/return code:\d|Suback error/.exec(message)?.[0] ?? message}`)
  }
  await pause(answer === 'no PINGRESP' || answer === 'closed' ? 5000 : 100)
  if (answer === 'closed') told.push(`CONNECT ${counts.connect}`)
  if (answer === 'no PINGRESP')
    told.push(`PINGREQ ${counts.pingreq > 2 ? '3 or more' : counts.pingreq}, and ${told.join() || 'no event'}`)
  console.log(`${name}: ${told.join(', ')}`)
  await client.disconnect().catch(() => {})
}

for (const name of ['no PINGRESP', 'closed', 'CONNACK 4', 'denied']) await look(name)
process.exit()
JS
timeout 40 node look.mjs | tee seen
diff seen - <<'SEEN'
no PINGRESP: PINGREQ 3 or more, and no event
closed: connectionLost, CONNECT 1
CONNACK 4: rejected, return code:4
denied: rejected, Suback error
SEEN
echo 'as described'
