#!/usr/bin/env bash
# Software: vue-paho-mqtt 0.6.1 (npm) with Vue 3.5.45, in the page of jsdom 26.1.0; ws 8.23.0 and mqtt-packet 9.0.2 answer as a broker
# Behaviour: It puts a word of its own before each topic, unless told otherwise. It hands a message to the callback of a filter with one wildcard, but not
#   with two: the message is acknowledged, and left out with "Unhandled topic!" on the console. Where a topic has a callback of its own,
#   filters that match it, too, have none of its messages. A callback gets the payload alone. A denied filter (0x80) is not told.
# Seen: 2026-11-30, a message of radio/urn:org:permanent-livestream:1/track/playing
#   as installed: subscribes vue-paho-mqtt-test/radio/#
#   radio/#: called with 1 argument
#   radio/+/track/playing: called with 1 argument
#   radio/+/track/+: not called
#   radio/# beside the topic itself: not called
#   denied: status connected
# Hub: a page of all titles, now and next, stays empty: docs/clients/others.md
# Source: vue-paho-mqtt 0.6.1, dist/vue-paho-mqtt.js, the function that makes the filters of a topic (called by onMessageArrived): one level
#   is a + in each of them; README, "enableMainTopic", which calls the word MAIN
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts vue-paho-mqtt@0.6.1 vue@3.5.45 jsdom@26.1.0 ws@8.23.0 mqtt-packet@9.0.2
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { JSDOM } from 'jsdom'
import { generate, parser } from 'mqtt-packet'
import WebSocket, { createWebSocketStream, WebSocketServer } from 'ws'

const topic = 'radio/urn:org:permanent-livestream:1/track/playing'
const cert = readFileSync('cert.pem')
const server = createServer({ cert, key: readFileSync('key.pem') }).listen(0, '127.0.0.1')
await once(server, 'listening')
let denied = false
const filters = []
new WebSocketServer({ server }).on('connection', (socket) => {
  const stream = createWebSocketStream(socket)
  const parse = parser()
  stream.on('error', () => {})
  stream.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd, messageId, subscriptions }) => {
    if (cmd === 'connect') stream.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    if (cmd === 'unsubscribe') stream.write(generate({ cmd: 'unsuback', messageId, granted: [] }))
    if (cmd !== 'subscribe') return
    filters.push(subscriptions[0].topic)
    stream.write(generate({ cmd: 'suback', messageId, granted: [denied ? 128 : 0] }))
    if (!denied) stream.write(generate({ cmd: 'publish', topic, payload: '{"title":"Ebbe"}', qos: 0 }))
  })
})

// A page, whose WebSocket trusts the certificate.
const page = new JSDOM('<div id="app"></div>', { url: 'https://localhost/' }).window
class Trusting extends WebSocket {
  constructor(url, protocols) {
    super(url, protocols, { ca: cert })
  }
}
const { document, location, localStorage, HTMLElement, Element, Node, SVGElement } = page
Object.assign(page, { WebSocket: Trusting })
Object.assign(globalThis, { window: page, self: page, document, location, localStorage, HTMLElement, Element, Node, SVGElement })
Object.assign(globalThis, { WebSocket: Trusting })
Object.defineProperty(globalThis, 'navigator', { value: page.navigator, configurable: true })
console.warn = () => {}
const log = console.log
console.log = () => {}

const { createApp, h } = await import('vue')
const { $mqtt, createPahoMqttPlugin } = await import('vue-paho-mqtt')
const { port } = server.address()
createApp({ render: () => h('p') })
  .use(
    createPahoMqttPlugin({
      PluginOptions: { autoConnect: false, showNotifications: false },
      MqttOptions: { host: 'localhost', port, clientId: 'page', useSSL: true, username: 'u', password: 'p' },
    }),
  )
  .mount('#app')
await $mqtt.connect()

async function look(name, others = []) {
  let called
  filters.length = 0
  for (const other of others) $mqtt.subscribe(other, () => {}, false)
  $mqtt.subscribe(name, (...given) => (called = given.length), false)
  while (filters.length < 1 + others.length) await pause(50)
  await pause(500)
  for (const one of [name, ...others]) $mqtt.unsubscribe(one, false)
  return called ? `called with ${called} argument` : 'not called'
}

$mqtt.subscribe('radio/#', () => {})
while (filters.length < 1) await pause(50)
log(`as installed: subscribes ${filters[0]}`)
$mqtt.unsubscribe('radio/#')
for (const name of ['radio/#', 'radio/+/track/playing', 'radio/+/track/+']) log(`${name}: ${await look(name)}`)
log(`radio/# beside the topic itself: ${await look('radio/#', [topic])}`)
denied = true
await look('radio/#')
log(`denied: status ${$mqtt.status()}`)
process.exit(0)
JS
timeout 55 node look.mjs | tee seen
diff seen - <<'SEEN'
as installed: subscribes vue-paho-mqtt-test/radio/#
radio/#: called with 1 argument
radio/+/track/playing: called with 1 argument
radio/+/track/+: not called
radio/# beside the topic itself: not called
denied: status connected
SEEN
echo 'as described'
