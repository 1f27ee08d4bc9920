#!/usr/bin/env bash
# Software: aws-crt 1.33.2 (npm), the MQTT 3.1.1 client below aws-iot-device-sdk-v2; mqtt-packet 9.0.2 answers as a broker
# Behaviour: It writes behind the user name what it is and where it runs, also where the broker is none of its cloud, and where no
#   user name was set. `disable_metrics: true` ends that. A refused log-in is told as a protocol error, without the code of the
#   CONNACK; one after a lost connection is not told at all. It comes back after a lost connection, and subscribes to nothing
#   again. A denied filter is no error: `qos` is 128.
# Seen: 2026-11-29
#   user name "house": house?SDK=IoTDeviceSDK/JS&…
#   no user name: ?SDK=IoTDeviceSDK/JS&…
#   disable_metrics: house
#   CONNACK 4: AWS_ERROR_MQTT_PROTOCOL_ERROR
#   a denied filter: fulfilled, qos 128, error_code 0
#   lost after a SUBSCRIBE: CONNECT 2, SUBSCRIBE 1
#   CONNACK 4 after a loss: interrupt, and no other event
# Hub: no log-in with the right password succeeds, and nothing says that the user name is another: docs/clients/others.md
# Source: aws-crt 1.33.2, dist/native/mqtt.js (`disable_metrics`) and dist/native/aws_iot_metrics.js, create_metrics_mqtt3
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts aws-crt@1.33.2 mqtt-packet@9.0.2

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import crt from 'aws-crt'
import { generate, parser } from 'mqtt-packet'

/** A broker that gives these CONNACKs, one to each connection, the last one to all further ones. */
async function openBroker(connacks, granted = 1) {
  const counts = { connect: 0, subscribe: 0 }
  const sockets = new Set()
  const names = []
  const server = createServer((socket) => {
    const parse = parser()
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('packet', ({ cmd, messageId, username }) => {
      if (cmd === 'connect') {
        names.push(String(username))
        const returnCode = connacks[Math.min(counts.connect, connacks.length - 1)]
        socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
        if (returnCode) socket.end()
      }
      if (cmd === 'subscribe') socket.write(generate({ cmd: 'suback', messageId, granted: [granted] }))
      if (cmd in counts) counts[cmd]++
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => sockets.forEach((socket) => socket.destroy())
  return { port: server.address().port, counts, names, cut }
}

function open({ port }, options = {}) {
  const connection = new crt.mqtt.MqttClient(new crt.io.ClientBootstrap()).new_connection({
    client_id: 'house',
    host_name: '127.0.0.1',
    port,
    clean_session: true,
    socket_options: new crt.io.SocketOptions(),
    username: 'house',
    password: 'secret',
    reconnect_min_sec: 1,
    reconnect_max_sec: 1,
    ...options,
  })
  connection.on('error', () => {})
  return connection
}

for (const [name, options] of [
  ['user name "house"', {}],
  ['no user name', { username: undefined, password: undefined }],
  ['disable_metrics', { disable_metrics: true }],
]) {
  const broker = await openBroker([0])
  await open(broker, options).connect()
  console.log(`${name}: ${broker.names[0].replace(/(JS&).*/, '$1…')}`)
}

const refused = open(await openBroker([4]))
const failed = once(refused, 'connection_failure')
await refused.connect().catch(() => {})
const [{ error }] = await failed
console.log(`CONNACK 4: ${error.error_name}`)

const denied = open(await openBroker([0], 128))
await denied.connect()
const { qos, error_code } = await denied.subscribe('radio/#', 1)
console.log(`a denied filter: fulfilled, qos ${qos}, error_code ${error_code}`)

const broker = await openBroker([0])
const lost = open(broker)
await lost.connect()
await lost.subscribe('radio/#', 1)
broker.cut()
await once(lost, 'resume')
await pause(2000)
console.log(`lost after a SUBSCRIBE: CONNECT ${broker.counts.connect}, SUBSCRIBE ${broker.counts.subscribe}`)

const revoking = await openBroker([0, 4])
const revoked = open(revoking)
const told = new Set()
await revoked.connect()
for (const event of ['interrupt', 'resume', 'error', 'disconnect', 'connection_failure', 'closed']) {
  revoked.on(event, () => told.add(event))
}
revoking.cut()
while (revoking.counts.connect < 3) await pause(100)
console.log(`CONNACK 4 after a loss: ${[...told]}, and no other event`)
process.exit()
JS
timeout 50 node --no-deprecation look.mjs 2>/dev/null | tee seen
diff seen - <<'SEEN'
user name "house": house?SDK=IoTDeviceSDK/JS&…
no user name: ?SDK=IoTDeviceSDK/JS&…
disable_metrics: house
CONNACK 4: AWS_ERROR_MQTT_PROTOCOL_ERROR
a denied filter: fulfilled, qos 128, error_code 0
lost after a SUBSCRIBE: CONNECT 2, SUBSCRIBE 1
CONNACK 4 after a loss: interrupt, and no other event
SEEN
echo 'as described'
