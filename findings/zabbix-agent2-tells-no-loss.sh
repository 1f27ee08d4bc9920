#!/usr/bin/env bash
# Software: zabbix-agent2 6.0.14 (Debian zabbix-agent2 1:6.0.14+dfsg-1+b1), its item mqtt.get; mqtt-packet 9.0.2 answers as a broker,
#   and a program below as the Zabbix server
# Behaviour: Of all items with the same broker and user name it makes one connection, and gives each message to every item whose filter
#   matches. A filter that the broker denied is not told, and its item gets what another one asked for. When the connection is lost,
#   and the broker refuses it from then on, the items stay as they were: no error reaches the server, and the newest value stays. A
#   broker that refuses from the beginning is told, as a wrong version.
# Seen: 2026-11-30
#   radio/# alone, which is denied: no value, no error
#   radio/# beside radio/+/track/playing, which is granted: radio/+/track/playing has a value, radio/# has a value
#   refused after a loss: 3 attempts or more, no error
#   refused from the beginning: Unnacceptable protocol version
# Hub: a display of Zabbix shows an old title for ever, and no trigger tells of it: docs/clients/others.md
# Source: zabbix-agent2 6.0.14, src/go/plugins/mqtt/mqtt.go, connect, onConnect, getItems; paho for Go below it
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' zabbix-agent2)
echo "zabbix-agent2 $version"
[ "$version" = '1:6.0.14+dfsg-1+b1' ]

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts mqtt-packet@9.0.2

cat >look.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { inflateSync } from 'node:zlib'
import { generate, parser } from 'mqtt-packet'

const granted = 'radio/+/track/playing'
const topic = 'radio/urn:org:permanent-livestream:1/track/playing'

async function listen(serve) {
  const server = createServer((socket) => serve(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

/** A broker that grants one filter, and sends its retained message. */
async function openBroker() {
  const broker = { isRefusing: false, refused: 0, sockets: new Set() }
  broker.port = await listen((socket) => {
    const parse = parser()
    broker.sockets.add(socket)
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('error', () => socket.destroy())
    parse.on('packet', ({ cmd, messageId, subscriptions, protocolVersion }) => {
      if (cmd === 'connect' && broker.isRefusing) {
        broker.refused++
        socket.end(generate({ cmd: 'connack', returnCode: protocolVersion === 4 ? 5 : 1 }))
      } else if (cmd === 'connect') {
        socket.write(generate({ cmd: 'connack', returnCode: 0 }))
      } else if (cmd === 'pingreq') {
        socket.write(generate({ cmd: 'pingresp' }))
      } else if (cmd === 'subscribe') {
        const answers = subscriptions.map((one) => (one.topic === granted ? 0 : 128))
        socket.write(generate({ cmd: 'suback', messageId, granted: answers }))
        const title = { cmd: 'publish', topic, payload: '{"title":"Salt"}', qos: 0, retain: true }
        if (answers.includes(0)) socket.write(generate(title))
      }
    })
  })
  return broker
}

/** The Zabbix server: it gives the agent its items, and notes what comes of each. */
function openServer(filters, url) {
  const seen = Object.fromEntries(filters.map((filter) => [filter, { values: 0, error: undefined }]))
  const answer = (value) => {
    const body = Buffer.from(JSON.stringify(value))
    const header = Buffer.alloc(13)
    header.write('ZBXD\x01')
    header.writeUInt32LE(body.length, 5)
    return Buffer.concat([header, body])
  }
  const port = listen((socket) => {
    let read = Buffer.alloc(0)
    socket.on('data', (bytes) => {
      read = Buffer.concat([read, bytes])
      if (read.length < 13 || read.length < 13 + read.readUInt32LE(5)) return
      const body = read.subarray(13)
      const { request, data = [] } = JSON.parse(read[4] & 2 ? inflateSync(body) : body)
      if (request === 'active checks') {
        const items = filters.map((filter, index) => {
          const key = `mqtt.get[${url},${filter},sub-house,secret]`
          return { key, itemid: index + 1, delay: '1s', lastlogsize: 0, mtime: 0 }
        })
        socket.end(answer({ response: 'success', data: items }))
        return
      }
      for (const { itemid, state, value } of data) {
        const item = seen[filters[itemid - 1]]
        if (state === 1) item.error = value
        else item.values++
      }
      socket.end(answer({ response: 'success', info: '' }))
    })
  })
  return { port, seen }
}

/** Runs the agent with one item for each filter, until `during` has ended. */
async function watch(filters, broker, during) {
  const { port, seen } = openServer(filters, `tcp://127.0.0.1:${broker.port}`)
  const settings = `LogType=console\nHostname=house\nServer=127.0.0.1\nServerActive=127.0.0.1:${await port}
ListenIP=127.0.0.1
ListenPort=${20_000 + (process.pid % 10_000)}\nBufferSend=1\nControlSocket=${process.cwd()}/control.sock
PluginSocket=${process.cwd()}/plugin.sock\nPidFile=${process.cwd()}/agent.pid\n`
  writeFileSync('agent.conf', settings)
  const agent = spawn('timeout', ['30', 'zabbix_agent2', '-c', 'agent.conf'], { stdio: 'ignore' })
  await during(seen)
  agent.kill()
  await once(agent, 'exit')
  return seen
}

const told = ({ values, error }) => `${values ? 'a value' : 'no value'}, ${error ?? 'no error'}`
const broker = await openBroker()
const everything = 'radio/#'

const alone = await watch([everything], broker, () => pause(7000))
console.log(`radio/# alone, which is denied: ${told(alone[everything])}`)

const both = await watch([granted, everything], broker, async (seen) => {
  await pause(8000)
  const has = (filter) => `${filter} has ${seen[filter].values ? 'a' : 'no'} value`
  console.log(`radio/# beside radio/+/track/playing, which is granted: ${has(granted)}, ${has(everything)}`)
  broker.isRefusing = true
  for (const socket of broker.sockets) socket.destroy()
  await pause(12_000)
})
console.log(`refused after a loss: ${broker.refused > 2 ? '3 attempts or more' : broker.refused}, ${both[granted].error ?? 'no error'}`)

const refused = await watch([granted], broker, () => pause(7000))
console.log(`refused from the beginning: ${refused[granted].error}`)
process.exit()
JS
timeout 58 node look.mjs | tee seen
diff seen - <<'SEEN'
radio/# alone, which is denied: no value, no error
radio/# beside radio/+/track/playing, which is granted: radio/+/track/playing has a value, radio/# has a value
refused after a loss: 3 attempts or more, no error
refused from the beginning: Unnacceptable protocol version
SEEN
echo 'as described'
