#!/usr/bin/env bash
# Software: u8-mqtt 0.6.7 (npm), with_autoreconnect(); mqtt-packet 9.0.2 answers as a broker
# Behaviour: After a lost connection it connects again and subscribes to nothing. subscribe_topic() is fulfilled in the same way where
#   the broker denied the filter (0x80), and asks for QoS 0.
# Seen: 2026-11-29
#   lost after a second: connect() fulfilled, subscribe_topic() fulfilled, CONNECT 2, SUBSCRIBE 1 at QoS 0
#   0x80: connect() fulfilled, subscribe_topic() fulfilled, CONNECT 1, SUBSCRIBE 1 at QoS 0
# Hub: docs/clients/others.md
# Source: u8-mqtt 0.6.7, esm/node/index.js: with_autoreconnect, _use_conn and subscribe_topic
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund u8-mqtt@0.6.7 mqtt-packet@9.0.2

cat >look.mjs <<'END'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'
import mqtt_client from 'u8-mqtt'

console.warn = console.info = () => {}
const answer = process.argv[2]
let connects = 0
const subscribed = []
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd, messageId, subscriptions }) => {
    if (cmd === 'connect') {
      connects++
      socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    }
    if (cmd === 'subscribe') {
      subscribed.push(subscriptions[0].qos)
      socket.write(generate({ cmd: 'suback', messageId, granted: [answer === '0x80' ? 0x80 : 0] }))
      if (answer === 'lost after a second') setTimeout(1000).then(() => socket.destroy())
    }
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const told = []
const client = mqtt_client().with_tcp(`tcp://127.0.0.1:${server.address().port}`).with_autoreconnect(500)
const settled = (name) => [() => told.push(`${name} fulfilled`), () => told.push(`${name} rejected`)]
client
  .connect({ client_id: 'house', username: 'u', password: 'p' })
  .then(...settled('connect()'))
  .then(() => client.subscribe_topic('radio/:rest*', () => {}))
  .then(...settled('subscribe_topic()'))
await setTimeout(8000)
const level = subscribed.length > 0 ? ` at QoS ${subscribed[0]}` : ''
process.stderr.write(`${[...told, `CONNECT ${connects}`, `SUBSCRIBE ${subscribed.length}`].join(', ')}${level}\n`)
process.exit()
END
for answer in 'lost after a second' 0x80; do
  echo "$answer: $(node look.mjs "$answer" 2>&1 >/dev/null)"
done | tee seen
diff seen - <<'END'
lost after a second: connect() fulfilled, subscribe_topic() fulfilled, CONNECT 2, SUBSCRIBE 1 at QoS 0
0x80: connect() fulfilled, subscribe_topic() fulfilled, CONNECT 1, SUBSCRIBE 1 at QoS 0
END
echo 'as described'
