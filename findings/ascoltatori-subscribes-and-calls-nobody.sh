#!/usr/bin/env bash
# Software: ascoltatori 4.3.0 (npm), of the type mqtt, with mqtt.js 4.3.8; mqtt-packet 9.0.2 answers as a broker
# Behaviour: It hands a filter with # on to the broker, which sends what matches it, but compares topics by a wildcard of its own, which is
#   * as it is set at first: no function is called. With `wildcardSome: '#'` it is. Its keep alive is 3,000 s. A denied filter (0x80) is
#   not told.
# Seen: 2026-11-30, a message of radio/urn:org:permanent-livestream:1/track/playing behind each SUBSCRIBE
#   radio/#: subscribed radio/#, called 0 times
#   radio/*: subscribed radio/#, called 1 time
#   radio/#, wildcardSome #: subscribed radio/#, called 1 time
#   denied: no error
#   keep alive: 3000
# Hub: a program that subscribes as every MQTT client does hears nothing, though each event is sent to it and acknowledged; a dead line is
#   noticed after more than an hour: docs/clients/others.md
# Source: ascoltatori 4.3.0, lib/mqtt_ascoltatore.js (`keepalive`, _subTopic) and lib/abstract_ascoltatore.js (`wildcardSome`)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ascoltatori@4.3.0 mqtt@4.3.8 mqtt-packet@9.0.2

cat >look.cjs <<'JS'
const { once } = require('node:events')
const { createServer } = require('node:net')
const { setTimeout: pause } = require('node:timers/promises')
const { promisify } = require('node:util')
const ascoltatori = require('ascoltatori')
const mqtt = require('mqtt')
const { generate, parser } = require('mqtt-packet')

const topic = 'radio/urn:org:permanent-livestream:1/track/playing'
let denied = false
let filters = []
let keepalive
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', (packet) => {
    const { cmd, messageId } = packet
    if (cmd === 'connect') {
      keepalive = packet.keepalive
      socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    }
    if (cmd !== 'subscribe') return
    filters.push(packet.subscriptions[0].topic)
    socket.write(generate({ cmd: 'suback', messageId, granted: [denied ? 128 : 1] }))
    if (!denied) socket.write(generate({ cmd: 'publish', topic, payload: 'Ebbe', qos: 0 }))
  })
})

async function look(filter, settings = {}) {
  filters = []
  let calls = 0
  const url = `mqtt://127.0.0.1:${server.address().port}`
  const bus = await promisify(ascoltatori.build)({ type: 'mqtt', json: false, mqtt, url, ...settings })
  const error = await new Promise((resolve) => bus.subscribe(filter, () => calls++, resolve))
  await pause(1000)
  bus.close(() => {})
  if (denied) return error ? `${error.message}` : 'no error'
  return `subscribed ${filters}, called ${calls} time${calls === 1 ? '' : 's'}`
}

async function main() {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  console.log(`radio/#: ${await look('radio/#')}`)
  console.log(`radio/*: ${await look('radio/*')}`)
  console.log(`radio/#, wildcardSome #: ${await look('radio/#', { wildcardSome: '#' })}`)
  denied = true
  console.log(`denied: ${await look('radio/#')}`)
  console.log(`keep alive: ${keepalive}`)
  process.exit(0)
}
main()
JS
timeout 50 node look.cjs | tee seen
diff seen - <<'SEEN'
radio/#: subscribed radio/#, called 0 times
radio/*: subscribed radio/#, called 1 time
radio/#, wildcardSome #: subscribed radio/#, called 1 time
denied: no error
keep alive: 3000
SEEN
echo 'as described'
