#!/usr/bin/env bash
# Software: mosquitto 2.0.11 (Debian 12, 2.0.11-1.2+deb12u2), as a bridge with `cleansession false`
# Behaviour: With every connection mosquitto sends SUBSCRIBE for its `in` topics and UNSUBSCRIBE for its `out` topics, also
#   where CONNACK says that the session is present. The broker sends all retained messages again each time.
# Seen: twice the line `connect clean=false, subscribe radio/# 1, unsubscribe inbox/1`, 2026-11-28
# Hub: The hub relies on this SUBSCRIBE to tell a bridge what has ended while it was away: docs/bridges.md
# Source: `bridge_attempt_unsubscribe` in mosquitto.conf(5); src/bridge.c of mosquitto, bridge__on_connect
set -euo pipefail

version=$(mosquitto -h | head -1 || true)
echo "$version"
[[ $version == 'mosquitto version 2.0.11' ]] || { echo 'another version of mosquitto'; exit 1; }
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2 >/dev/null

# A stand-in for the remote broker. It has the session always, and breaks the first connection after 1.5 s.
cat > remote.cjs <<'JS'
const { createServer } = require('node:net')
const { generate, parser } = require('mqtt-packet')
let connections = 0
createServer((socket) => {
  const seen = []
  const send = (packet) => socket.write(generate(packet))
  const parse = parser()
  parse.on('packet', (packet) => {
    const { cmd, messageId } = packet
    if (cmd === 'connect') {
      seen.push(`connect clean=${packet.clean}`)
      send({ cmd: 'connack', returnCode: 0, sessionPresent: true })
      setTimeout(() => {
        console.log(seen.join(', '))
        if (++connections === 2) process.exit(0)
        socket.destroy()
      }, 1500)
    } else if (cmd === 'subscribe') {
      seen.push(...packet.subscriptions.map(({ topic, qos }) => `subscribe ${topic} ${qos}`))
      send({ cmd: 'suback', messageId, granted: packet.subscriptions.map(({ qos }) => qos) })
    } else if (cmd === 'unsubscribe') {
      seen.push(...packet.unsubscriptions.map((topic) => `unsubscribe ${topic}`))
      send({ cmd: 'unsuback', messageId })
    } else if (cmd === 'pingreq') send({ cmd: 'pingresp' })
  })
  socket.on('data', (chunk) => parse.parse(chunk))
  socket.on('error', () => {})
}).listen(0, '127.0.0.1', function () {
  require('node:fs').writeFileSync('remote.port', `${this.address().port}`)
})
JS
node remote.cjs > remote.txt &
remote=$!
until [ -s remote.port ]; do sleep 0.1; done
port=$(node -e "const s = require('node:net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })")
printf '%s\n' "listener $port 127.0.0.1" 'allow_anonymous true' 'connection radio' \
  "address 127.0.0.1:$(cat remote.port)" 'topic radio/# in 1' 'topic inbox/1 out 1' 'cleansession false' \
  'restart_timeout 1 1' 'notifications false' > house.conf
[ "$(id -u)" -ne 0 ] || echo 'user root' >> house.conf
timeout 40 mosquitto -c house.conf > house.txt 2>&1 &
wait "$remote"
cat remote.txt
expected='connect clean=false, subscribe radio/# 1, unsubscribe inbox/1'
[ "$(cat remote.txt)" = "$expected"$'\n'"$expected" ]
echo 'as described'
