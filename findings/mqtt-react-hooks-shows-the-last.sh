#!/usr/bin/env bash
# Software: mqtt-react-hooks 3.1.0 (npm), on mqtt.js 5.16.0 and React 18.3.1; mqtt-packet 9.0.2 answers as a broker
# Behaviour: useSubscription() keeps the last message alone, whatever its topic. React renders once for messages that come together,
#   so a component sees only the last of them: of the retained messages of a filter with a wildcard nearly none. The client that it
#   returns has them all. It subscribes at QoS 0 unless told otherwise.
# Seen: 2026-11-29, 60 retained messages behind a SUBSCRIBE
#   message of useSubscription(): fewer than 10 of 60 topics
#   "message" of the client: 60 of 60 topics
# Hub: a page of all livestreams shows one of them until the others change: docs/clients/others.md
# Source: mqtt-react-hooks 3.1.0, dist/index.js, useSubscription: setMessage(receivedMessage)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts mqtt-react-hooks@3.1.0 mqtt@5.16.0 mqtt-packet@9.0.2 \
  react@18.3.1 react-dom@18.3.1 react-test-renderer@18.3.1

cat >look.cjs <<'JS'
const { once } = require('node:events')
const { createServer } = require('node:net')
const { setTimeout: pause } = require('node:timers/promises')
const { generate, parser } = require('mqtt-packet')
const { Connector, useSubscription } = require('mqtt-react-hooks')
const { createElement, useEffect } = require('react')
const { create } = require('react-test-renderer')

const filter = 'radio/+/track/playing'
const retained = Array.from({ length: 60 }, (_, nth) =>
  generate({ cmd: 'publish', qos: 0, retain: true, topic: `radio/urn:x:${nth}/track/playing`, payload: '{}' }),
)
const broker = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd, messageId }) => {
    if (cmd === 'connect') socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    const granted = () => generate({ cmd: 'suback', messageId, granted: [0] })
    if (cmd === 'subscribe') socket.write(Buffer.concat([granted(), ...retained]))
  })
})

const ofHook = new Set()
const ofClient = new Set()

function Component() {
  const { message, client } = useSubscription(filter)
  useEffect(() => {
    if (message) ofHook.add(message.topic)
  }, [message])
  useEffect(() => {
    client?.on('message', (topic) => ofClient.add(topic))
  }, [client])
  return null
}

async function main() {
  broker.listen(0, '127.0.0.1')
  await once(broker, 'listening')
  const brokerUrl = `mqtt://127.0.0.1:${broker.address().port}`
  const tree = createElement(Connector, { brokerUrl, options: { protocolVersion: 4 } }, createElement(Component))
  create(tree, { unstable_isConcurrent: true })
  await pause(3000)
  console.log(`message of useSubscription(): ${ofHook.size < 10 ? 'fewer than 10' : ofHook.size} of 60 topics`)
  console.log(`"message" of the client: ${ofClient.size} of 60 topics`)
  process.exit()
}
main()
JS
NODE_ENV=production timeout 30 node look.cjs | tee seen
diff seen - <<'SEEN'
message of useSubscription(): fewer than 10 of 60 topics
"message" of the client: 60 of 60 topics
SEEN
echo 'as described'
