#!/usr/bin/env bash
# Software: the node "MQTT Trigger" of n8n, n8n-nodes-base 2.41.2 (npm), on mqtt.js 5.7.2; mqtt-packet 9.0.2 answers as a broker
# Behaviour: In its field "Topics" a colon stands before the QoS. A topic that has colons of its own, as one with a URN has, is cut at
#   the first: the node subscribes to what stands before it, says nothing, and waits. A wildcard in place of the part with the colons
#   is right.
# Seen: 2026-11-29, what it subscribes to
#   radio/+/track/playing:1 → radio/+/track/playing, QoS 1
#   radio/urn:org:permanent-livestream:4638c4eac849c618/track/playing → radio/urn, QoS 0
# Hub: the livestream in a topic is a URN: docs/clients/others.md
# Source: n8n-nodes-base 2.41.2, dist/nodes/MQTT/MqttTrigger.node.js, trigger: data.split(':')
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts n8n-workflow@2.41.0 @n8n/utils@1.48.0 mqtt@5.7.2 mqtt-packet@9.0.2
# All nodes of n8n together need hundreds of packages: the files of this one are enough.
tar xzf "$(npm pack --silent n8n-nodes-base@2.41.2)" package/dist/nodes/MQTT

cat >look.cjs <<'JS'
const { once } = require('node:events')
const { createServer } = require('node:net')
const { generate, parser } = require('mqtt-packet')
const { MqttTrigger } = require('./package/dist/nodes/MQTT/MqttTrigger.node.js')

/** What the node subscribes to where this stands in its field "Topics". */
async function look(topics) {
  const asked = []
  const broker = createServer((socket) => {
    const parse = parser()
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('packet', ({ cmd, messageId, subscriptions }) => {
      if (cmd === 'connect') socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
      if (cmd !== 'subscribe') return
      asked.push(...subscriptions.map(({ topic, qos }) => `${topic}, QoS ${qos}`))
      socket.write(generate({ cmd: 'suback', messageId, granted: subscriptions.map(({ qos }) => qos) }))
    })
  })
  broker.listen(0, '127.0.0.1')
  await once(broker, 'listening')
  const ofN8n = {
    getNode: () => ({ name: 'MQTT Trigger' }),
    getNodeParameter: (name) => (name === 'topics' ? topics : {}),
    getCredentials: async () => ({ protocol: 'mqtt', host: '127.0.0.1', port: broker.address().port, clean: true }),
    getMode: () => 'trigger',
    helpers: { createDeferredPromise: () => ({ promise: Promise.resolve() }), returnJsonArray: (items) => items },
    emit() {},
  }
  await new MqttTrigger().trigger.call(ofN8n)
  console.log(`${topics} → ${asked}`)
}

async function main() {
  await look('radio/+/track/playing:1')
  await look('radio/urn:org:permanent-livestream:4638c4eac849c618/track/playing')
  process.exit()
}
main()
JS
timeout 30 node look.cjs 2>&1 | tee seen
diff seen - <<'SEEN'
radio/+/track/playing:1 → radio/+/track/playing, QoS 1
radio/urn:org:permanent-livestream:4638c4eac849c618/track/playing → radio/urn, QoS 0
SEEN
echo 'as described'
