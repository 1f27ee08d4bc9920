#!/usr/bin/env bash
# Software: mosquitto 2.0.11 (Debian 12, 2.0.11-1.2+deb12u2), as a bridge
# Behaviour: A broker that answers the CONNECT of a bridge (level 0x84) with CONNACK 1 gets a second one, as of an
#   ordinary client (level 4), and mosquitto says nothing of it. Live messages then come with RETAIN 0, as MQTT
#   demands, and the broker of the house keeps the message of its SUBSCRIBE: a new client there gets `old`.
# Seen: `level 0x84, level 0x04, retained at home: old` with CONNACK 1, and without it `level 0x84, retained at
#   home: new`, 2026-11-28
# Hub: The hub takes level 0x84, and sets RETAIN on live messages to a bridge: docs/bridges.md
# Source: `try_private` in mosquitto.conf(5); src/handle_connack.c of mosquitto, and MQTT-3.3.1-9
set -euo pipefail

version=$(mosquitto -h | head -1 || true)
echo "$version"
[[ $version == 'mosquitto version 2.0.11' ]] || { echo 'another version of mosquitto'; exit 1; }
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2 mqtt@5.16.0 >/dev/null

# A stand-in for the remote broker. `refuse`: it knows no bridges. To those it knows, RETAIN says what is retained.
cat > remote.cjs <<'JS'
const { createServer } = require('node:net')
const { generate, parser } = require('mqtt-packet')
const refuses = process.argv[2] === 'refuse'
const server = createServer((socket) => {
  let isBridge = false
  const send = (packet) => socket.write(generate(packet))
  const message = (payload, retain) => ({ cmd: 'publish', topic: 'radio/1', payload, qos: 0, retain, dup: false })
  const parse = parser()
  parse.on('packet', (packet) => {
    if (packet.cmd === 'connect') {
      isBridge = packet.bridgeMode === true
      console.log(`level 0x${(isBridge ? 0x84 : 4).toString(16).padStart(2, '0')}`)
      const returnCode = isBridge && refuses ? 1 : 0
      send({ cmd: 'connack', returnCode, sessionPresent: false })
      if (returnCode !== 0) socket.end()
    } else if (packet.cmd === 'subscribe') {
      send({ cmd: 'suback', messageId: packet.messageId, granted: [0] })
      send(message('old', true))
      send(message('new', isBridge))
    } else if (packet.cmd === 'pingreq') send({ cmd: 'pingresp' })
  })
  socket.on('data', (chunk) => parse.parse(chunk))
  socket.on('error', () => {})
})
server.listen(0, '127.0.0.1', () => require('node:fs').writeFileSync('remote.port', `${server.address().port}`))
JS

# Waits at the house for the live message, and then asks as a new client what is retained.
cat > home.cjs <<'JS'
const { connect } = require('mqtt')
const url = `mqtt://127.0.0.1:${process.argv[2]}`
const until = (wanted) => new Promise((resolve) => {
  const client = connect(url, { reconnectPeriod: 200 })
  client.on('connect', () => client.subscribe('radio/#'))
  client.on('message', (_topic, payload) => {
    if (!wanted(String(payload))) return
    client.end(true)
    resolve(String(payload))
  })
})
until((text) => text === process.argv[3] || text === 'new')
  .then(() => new Promise((resolve) => setTimeout(resolve, 1000)))
  .then(() => until(() => true))
  .then((text) => console.log(`retained at home: ${text}`))
JS

look() {
  rm -f remote.port
  node remote.cjs "$1" > "remote-$1.txt" &
  local remote=$!
  until [ -s remote.port ]; do sleep 0.1; done
  local port
  port=$(node -e "const s = require('node:net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })")
  printf '%s\n' "listener $port 127.0.0.1" 'allow_anonymous true' 'connection radio' \
    "address 127.0.0.1:$(cat remote.port)" 'topic radio/# in 0' 'restart_timeout 1 1' \
    'notifications false' > "house-$1.conf"
  [ "$(id -u)" -ne 0 ] || echo 'user root' >> "house-$1.conf"
  mosquitto -c "house-$1.conf" > "house-$1.txt" 2>&1 &
  local house=$!
  timeout 20 node home.cjs "$port" old > "home-$1.txt"
  kill "$house" "$remote"
  wait "$house" "$remote" 2>/dev/null || true
  cat "remote-$1.txt" "home-$1.txt" | paste -sd, | sed 's/,/, /g'
}

refused=$(look refuse)
taken=$(look take)
echo "with CONNACK 1:    $refused"
echo "without CONNACK 1: $taken"
[ "$refused" = 'level 0x84, level 0x04, retained at home: old' ]
[ "$taken" = 'level 0x84, retained at home: new' ]
echo 'as described'
