#!/usr/bin/env bash
# Software: @nestjs/microservices 12.1.1 (npm), its MQTT transport, on mqtt.js 5.16.0; mqtt-packet 9.0.2 answers as a broker
# Behaviour: A message of JSON that has a member `data` or `pattern` counts as an envelope of NestJS: the handler gets the value of
#   `data` alone, and nothing else of the message. Where it has an `id` as well NestJS takes it for a request, and publishes to the
#   topic with /reply behind it. Other messages reach the handler whole. A deserializer that returns { pattern: channel, data: value }
#   ends both. A denied filter (0x80) is not told.
# Seen: 2026-11-29
#   track/playing: whole, no reply
#   data: only `data`, publishes to radio/x/data/reply
#   data, own deserializer: whole, no reply
#   denied: no error
# Hub: events of the kind radio.data lose their start, cycle and services on the way to the handler: docs/clients/others.md.
# Source: @nestjs/microservices 12.1.1, deserializers/incoming-request.deserializer.js, isExternal; server/server-mqtt.js,
#   handleMessage and getReplyPattern
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @nestjs/microservices@12.1.1 @nestjs/common@12.5.1 \
  @nestjs/core@12.5.1 reflect-metadata@0.2.2 rxjs@7.8.2 mqtt@5.16.0 mqtt-packet@9.0.2

cat >look.mjs <<'JS'
import 'reflect-metadata'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { ServerMqtt } from '@nestjs/microservices'
import mqtt from 'mqtt-packet'

const events = {
  'track/playing': { event: 'playing', id: '901', start: '2026-01-31T12:00:00+01:00', title: 'T', length: 3 },
  data: {
    event: 'data',
    id: '900',
    start: '2026-01-31T12:00:00+01:00',
    cycle: 30,
    data: [{ type: 'radiotext', id: 0, value: 'Hello' }],
  },
}

/** What the handler of a topic gets, and what NestJS publishes, in a second after its SUBSCRIBE. */
async function look(name, options = {}, granted = 1) {
  const event = events[name]
  const got = []
  const published = []
  const told = []
  let subscribed
  const isSubscribed = new Promise((resolve) => {
    subscribed = resolve
  })
  const broker = createServer((socket) => {
    const parser = mqtt.parser()
    const send = (packet) => socket.write(mqtt.generate(packet))
    socket.on('error', () => {})
    socket.on('data', (bytes) => parser.parse(bytes))
    parser.on('packet', ({ cmd, messageId, topic }) => {
      if (cmd === 'connect') send({ cmd: 'connack', returnCode: 0, sessionPresent: false })
      if (cmd === 'publish') published.push(topic)
      if (cmd !== 'subscribe') return
      send({ cmd: 'suback', messageId, granted: [granted] })
      if (granted !== 0x80) send({ cmd: 'publish', topic: `radio/x/${name}`, qos: 0, payload: JSON.stringify(event) })
      subscribed()
    })
  })
  await new Promise((resolve) => broker.listen(0, '127.0.0.1', resolve))
  const server = new ServerMqtt({ url: `mqtt://127.0.0.1:${broker.address().port}`, protocolVersion: 4, ...options })
  server.logger = { error: (text) => told.push(text), warn() {}, log() {}, debug() {}, verbose() {} }
  server.addHandler(`radio/+/${name}`, async (data) => void got.push(data), true)
  server.listen((error) => error && told.push(error.message))
  await isSubscribed
  await pause(1000)
  await server.close()
  broker.close()
  if (granted === 0x80) return told.length === 0 ? 'no error' : `told: ${told}`
  const whole = JSON.stringify(got[0]) === JSON.stringify(event)
  const part = JSON.stringify(got[0]) === JSON.stringify(event.data)
  const reply = published.length === 0 ? 'no reply' : `publishes to ${published}`
  return `${whole ? 'whole' : part ? 'only `data`' : JSON.stringify(got)}, ${reply}`
}

const deserializer = { deserialize: (value, { channel }) => ({ pattern: channel, data: value }) }
console.log('track/playing:', await look('track/playing'))
console.log('data:', await look('data'))
console.log('data, own deserializer:', await look('data', { deserializer }))
console.log('denied:', await look('track/playing', {}, 0x80))
process.exit()
JS
timeout 40 node look.mjs | tee seen

cat >expected <<'TEXT'
track/playing: whole, no reply
data: only `data`, publishes to radio/x/data/reply
data, own deserializer: whole, no reply
denied: no error
TEXT
diff expected seen
echo 'as described'
