#!/usr/bin/env bash
# Software: mqtt.js 5.16.0 (npm mqtt); mqtt-packet 9.0.2 answers as a broker
# Behaviour: when one of several filters of a subscribe() is denied (0x80 in the SUBACK), mqtt.js forgets the granted
#   ones too: after the connection is lost and back it subscribes to none of them. With one subscribe() for each filter
#   it asks for the granted one again.
# Seen: 2026-11-28
#   together: subscribes radio/#,feedback/x then nothing
#   apart: subscribes radio/#|feedback/x then radio/#
# Hub: the client is connected, and gets nothing. docs/clients/others.md, "At a denied filter", says to subscribe one by one.
# Source: handleAck in build/lib/handlers/ack.js of mqtt.js 5.16.0 (messageIdToTopic), MQTT 3.1.1 section 3.9.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' > package.json
npm install --silent --no-audit --no-fund mqtt@5.16.0 mqtt-packet@9.0.2
cat > look.mjs <<'END'
import { createServer } from 'node:net'
import mqtt from 'mqtt'
import { generate, parser } from 'mqtt-packet'

const how = process.argv[2]
const asked = [[], []]
let connects = 0
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', (packet) => {
    if (packet.cmd === 'connect') {
      connects++
      socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
      // By then each client that asks again has done so.
      if (connects === 2) setTimeout(tell, 1500)
    }
    if (packet.cmd !== 'subscribe') return
    const topics = packet.subscriptions.map(({ topic }) => topic)
    asked[connects - 1].push(topics.join())
    const granted = topics.map((topic) => (topic.startsWith('feedback/') ? 0x80 : 1))
    socket.write(generate({ cmd: 'suback', messageId: packet.messageId, granted }))
    if (connects === 1 && asked[0].join().split(',').length === 2) setTimeout(() => socket.destroy(), 500)
  })
})
server.listen(0, '127.0.0.1', () => {
  const client = mqtt.connect(`mqtt://127.0.0.1:${server.address().port}`, { protocolVersion: 4, reconnectPeriod: 200 })
  client.on('error', () => {})
  const filters = ['radio/#', 'feedback/x']
  for (const filter of how === 'apart' ? filters : [filters]) client.subscribe(filter, { qos: 1 }, () => {})
})

function tell() {
  console.log(`${how}: subscribes ${asked[0].join('|')} then ${asked[1].join('|') || 'nothing'}`)
  process.exit()
}
END
{
  timeout 20 node look.mjs together
  timeout 20 node look.mjs apart
} | tee seen
diff seen - <<'END'
together: subscribes radio/#,feedback/x then nothing
apart: subscribes radio/#|feedback/x then radio/#
END
echo 'as described'
