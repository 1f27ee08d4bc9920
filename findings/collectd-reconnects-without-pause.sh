#!/usr/bin/env bash
# Software: collectd 5.12.0 (Debian collectd-core 5.12.0-14), plugin mqtt, a Subscribe block; mqtt-packet 9.0.2 answers as a
#   broker
# Behaviour: After a CONNACK other than 0, and after a connection that closes without one, it connects again at once, without any
#   pause, thousands of times a second and for ever. It also sends its SUBSCRIBE without waiting for CONNACK. Only where
#   nobody listens does it wait a second.
# Seen: 2026-11-29, 5 s each, 13,000 to 20,000 connections
#   CONNACK 4: more than 1000 connections, SUBSCRIBE before CONNACK
#   CONNACK 3: more than 1000 connections, SUBSCRIBE before CONNACK
#   closed: more than 1000 connections, SUBSCRIBE before CONNACK
# Hub: 20 failed log-ins block the whole address for a minute, again and again while it runs: docs/clients/others.md.
# Source: collectd 5.12.0, src/mqtt.c, subscribers_thread and mqtt_connect
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${broker:-}" "${collectd:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' collectd-core)
echo "collectd-core $version"
[ "$version" = 5.12.0-14 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2

cat >broker.mjs <<'END'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { generate, parser } from 'mqtt-packet'

const [answer] = process.argv.slice(2)
let connects = 0
let early = 0
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd }) => {
    if (cmd === 'subscribe') early++
    if (cmd !== 'connect') return
    connects++
    // What came in the meantime is read first.
    setImmediate(() => {
      if (answer === 'closed') socket.destroy()
      else socket.end(generate({ cmd: 'connack', returnCode: Number(answer.slice(-1)), sessionPresent: false }))
    })
  })
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
process.on('SIGTERM', () => {
  console.log(`${answer}: ${connects > 1000 ? 'more than 1000' : connects} connections, ${
    early > 0 ? 'SUBSCRIBE before CONNACK' : 'no SUBSCRIBE'}`)
  process.exit()
})
END

for answer in 'CONNACK 4' 'CONNACK 3' closed; do
  rm -f port
  node broker.mjs "$answer" >>seen &
  broker=$!
  until [ -s port ]; do sleep 0.1; done
  cat >collectd.conf <<CONF
FQDNLookup false
Hostname "house"
BaseDir "$folder"
PIDFile "$folder/pid"
LoadPlugin mqtt
<Plugin mqtt>
  <Subscribe "titles">
    Host "127.0.0.1"
    Port $(cat port)
    User "sub-house"
    Password "old"
    ClientId "house"
    QoS 1
    Topic "radio/#"
  </Subscribe>
</Plugin>
CONF
  collectd -f -C collectd.conf >/dev/null 2>&1 &
  collectd=$!
  sleep 5
  kill "$broker"
  wait "$broker"
  kill "$collectd"
  wait "$collectd" || true
done
cat seen
diff seen - <<'END'
CONNACK 4: more than 1000 connections, SUBSCRIBE before CONNACK
CONNACK 3: more than 1000 connections, SUBSCRIBE before CONNACK
closed: more than 1000 connections, SUBSCRIBE before CONNACK
END
echo 'as described'
