#!/usr/bin/env bash
# Software: paho_cs_pub, paho_c_pub, paho_cs_sub and paho_c_sub of paho.mqtt.c-examples 1.3.12-1 (Debian); mqtt-packet 9.0.2 (npm)
#   answers as a broker
# Behaviour: paho_cs_pub ends with exit code 0 whatever happens: also when the log-in was refused, and when no acknowledgement came
#   within five seconds. paho_c_pub tries again for ever after a refused log-in; where the connection is lost before the
#   acknowledgement it connects again, sends the message no more, and never ends. Both subscribers connect again after a lost
#   connection, and subscribe to nothing. paho_cs_sub ends with 0 after a refused log-in and a denied filter.
# Seen: 2026-11-29
#   paho_cs_pub, CONNACK 4: ends with 0
#   paho_cs_pub, no PUBACK: ends with 0
#   paho_c_pub, CONNACK 4: runs, CONNECT 2, PUBLISH 0
#   paho_c_pub, lost before the PUBACK: runs, CONNECT 2, PUBLISH 1
#   paho_cs_sub, CONNACK 4: ends with 0
#   paho_cs_sub, a denied filter: ends with 0
#   paho_cs_sub, lost: runs, CONNECT 2, SUBSCRIBE 1
#   paho_c_sub, lost: runs, CONNECT 2, SUBSCRIBE 1
# Hub: a script takes an event that was never sent for a published one: docs/clients/shell.md
# Source: paho.mqtt.c 1.3.12, src/samples/paho_cs_pub.c, paho_c_pub.c, paho_cs_sub.c, paho_c_sub.c
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' paho.mqtt.c-examples)
echo "paho.mqtt.c-examples $version"
[ "$version" = 1.3.12-1 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts mqtt-packet@9.0.2

cat >look.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'

/** A broker that answers in this way. */
async function openBroker({ returnCode = 0, granted = 1, cutAt }) {
  const counts = { connect: 0, publish: 0, subscribe: 0 }
  const server = createServer((socket) => {
    const parse = parser()
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('packet', ({ cmd, messageId }) => {
      if (cmd in counts) counts[cmd]++
      if (cmd === 'connect') {
        socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
        if (returnCode) socket.end()
      }
      if (cmd === 'subscribe') socket.write(generate({ cmd: 'suback', messageId, granted: [granted] }))
      if (cmd === cutAt) setTimeout(() => socket.destroy(), 300)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: server.address().port, counts }
}

async function look(program, what, way) {
  const { port, counts } = await openBroker(way)
  const isPublisher = program.endsWith('pub')
  const to = isPublisher ? ['-t', 'inbox/x', '-m', '{}'] : ['-t', 'radio/#']
  const args = ['-c', `tcp://127.0.0.1:${port}`, '-i', 'house', '-V', '311', '-u', 'u', '-P', 'p', '-q', '1', ...to]
  const child = spawn(program, args, { stdio: 'ignore' })
  const ended = once(child, 'exit').then(([code]) => `ends with ${code}`)
  const running = pause(9000).then(
    () => `runs, CONNECT ${Math.min(counts.connect, 2)}, ${isPublisher ? `PUBLISH ${counts.publish}` : `SUBSCRIBE ${counts.subscribe}`}`,
  )
  const seen = await Promise.race([ended, running])
  child.kill('SIGKILL')
  return `${program}, ${what}: ${seen}`
}

const seen = await Promise.all([
  look('paho_cs_pub', 'CONNACK 4', { returnCode: 4 }),
  look('paho_cs_pub', 'no PUBACK', {}),
  look('paho_c_pub', 'CONNACK 4', { returnCode: 4 }),
  look('paho_c_pub', 'lost before the PUBACK', { cutAt: 'publish' }),
  look('paho_cs_sub', 'CONNACK 4', { returnCode: 4 }),
  look('paho_cs_sub', 'a denied filter', { granted: 0x80 }),
  look('paho_cs_sub', 'lost', { cutAt: 'subscribe' }),
  look('paho_c_sub', 'lost', { cutAt: 'subscribe' }),
])
console.log(seen.join('\n'))
process.exit()
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
paho_cs_pub, CONNACK 4: ends with 0
paho_cs_pub, no PUBACK: ends with 0
paho_c_pub, CONNACK 4: runs, CONNECT 2, PUBLISH 0
paho_c_pub, lost before the PUBACK: runs, CONNECT 2, PUBLISH 1
paho_cs_sub, CONNACK 4: ends with 0
paho_cs_sub, a denied filter: ends with 0
paho_cs_sub, lost: runs, CONNECT 2, SUBSCRIBE 1
paho_c_sub, lost: runs, CONNECT 2, SUBSCRIBE 1
SEEN
echo 'as described'
