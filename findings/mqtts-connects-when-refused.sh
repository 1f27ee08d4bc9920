#!/usr/bin/env bash
# Software: mqtts 1.5.0 (npm); mqtt-packet 9.0.2 answers as a broker
# Behaviour: The promise of connect() is fulfilled also when the log-in is refused, and when the connection closes without CONNACK.
#   The refusal is an event "error" beside it. After a lost connection it connects again after a second, each time, and
#   subscribes to nothing again. It sends PINGREQ and does not wait for PINGRESP: a dead line is never noticed.
# Seen: 2026-11-29
#   CONNACK 4: error BadUsernameOrPassword, connect() fulfilled, CONNECT 1, SUBSCRIBE 0
#   lost after a second: connect() fulfilled, CONNECT 2, SUBSCRIBE 1
#   no PINGRESP: connect() fulfilled, CONNECT 1, SUBSCRIBE 1, PINGREQ 3 or more
# Hub: docs/clients/others.md
# Source: mqtts 1.5.0, dist/mqtt.client.js, _connect, setDisconnected and the keep-alive timer
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund mqtts@1.5.0 mqtt-packet@9.0.2

cat >look.mjs <<'END'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'
import mqtts from 'mqtts'

const counts = { connect: 0, subscribe: 0, pingreq: 0 }
let answer
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd, messageId }) => {
    counts[cmd]++
    if (cmd === 'connect') {
      const returnCode = answer === 'CONNACK 4' ? 4 : 0
      socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
      if (returnCode) socket.end()
    }
    if (cmd === 'subscribe') {
      socket.write(generate({ cmd: 'suback', messageId, granted: [1] }))
      if (answer === 'lost after a second') setTimeout(1000).then(() => socket.destroy())
    }
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

for (answer of ['CONNACK 4', 'lost after a second', 'no PINGRESP']) {
  Object.assign(counts, { connect: 0, subscribe: 0, pingreq: 0 })
  const told = []
  const transport = new mqtts.TcpTransport({ host: '127.0.0.1', port: server.address().port })
  const client = new mqtts.MqttClient({ transport, autoReconnect: true })
  client.on('error', (error) => /Bad/.test(error.message) && told.push(`error ${error.message}`))
  try {
    await client.connect({ protocolLevel: 4, clientId: 'house', username: 'u', password: 'p', keepAlive: 1 })
    told.push('connect() fulfilled')
    await client.subscribe({ topic: 'radio/#', qosLevel: 1 })
  } catch {}
  await setTimeout(5000)
  const pings = answer === 'no PINGRESP' ? [`PINGREQ ${counts.pingreq > 2 ? '3 or more' : counts.pingreq}`] : []
  console.log(`${answer}: ${[...told, `CONNECT ${counts.connect}`, `SUBSCRIBE ${counts.subscribe}`, ...pings].join(', ')}`)
  await client.disconnect().catch(() => {})
}
process.exit()
END
node look.mjs | tee seen
diff seen - <<'END'
CONNACK 4: error BadUsernameOrPassword, connect() fulfilled, CONNECT 1, SUBSCRIBE 0
lost after a second: connect() fulfilled, CONNECT 2, SUBSCRIBE 1
no PINGRESP: connect() fulfilled, CONNECT 1, SUBSCRIBE 1, PINGREQ 3 or more
END
echo 'as described'
