#!/usr/bin/env bash
# Software: ejabberd 23.01 (Debian ejabberd 23.01-1), mod_mqtt_bridge; mqtt-packet 9.0.2 answers as a broker
# Behaviour: The bridge subscribes and publishes at QoS 0, with a clean session and a number as its client id, which is another
#   one at each start. When its connection is lost, or its log-in is refused, it never connects again, and says so at the
#   log level debug alone.
# Seen: 2026-11-29, 20 s each
#   lost after a second: CONNECT 1, clean true, SUBSCRIBE radio/# at QoS 0
#   CONNACK 4: CONNECT 1, clean true
# Hub: a house with ejabberd gets no title after a restart of a node: docs/bridges.md, "What may go wrong".
# Source: ejabberd 23.01, src/mod_mqtt_bridge_session.erl, handle_info (tcp_closed) and terminate; mod_mqtt_bridge.erl starts each
#   session once
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${broker:-}" "${house:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' ejabberd)
echo "ejabberd $version"
[ "$version" = 23.01-1 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2

cat >broker.mjs <<'END'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { generate, parser } from 'mqtt-packet'

const [answer] = process.argv.slice(2)
let connects = 0
const seen = []
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', (packet) => {
    if (packet.cmd === 'connect') {
      connects++
      if (connects === 1) seen.push(`clean ${packet.clean}`)
      const returnCode = answer === 'CONNACK 4' ? 4 : 0
      socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
      if (returnCode > 0) socket.end()
    }
    if (packet.cmd === 'subscribe') {
      for (const { topic, qos } of packet.subscriptions) seen.push(`SUBSCRIBE ${topic} at QoS ${qos}`)
      socket.write(generate({ cmd: 'suback', messageId: packet.messageId, granted: [0] }))
      setTimeout(() => socket.destroy(), 1000)
    }
  })
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
process.on('SIGTERM', () => {
  console.log(`${answer}: ${[`CONNECT ${connects}`, ...seen].join(', ')}`)
  process.exit()
})
END

for answer in 'lost after a second' 'CONNACK 4'; do
  rm -rf port mnesia
  node broker.mjs "$answer" >>seen &
  broker=$!
  until [ -s port ]; do sleep 0.1; done
  cat >ejabberd.yml <<YML
hosts: [localhost]
listen: []
auth_method: [anonymous]
modules:
  mod_mqtt: {}
  mod_mqtt_bridge:
    replication_user: "house@localhost"
    servers:
      "mqtt://127.0.0.1:$(cat port)":
        authentication: {username: "sub-house", password: "secret"}
        publish: {}
        subscribe: {"radio/#": "house/radio"}
YML
  # Alone, without the network of Erlang nodes.
  HOME=$folder erl -noinput -pa /usr/lib/x86_64-linux-gnu/ejabberd-23.01-1/ebin -mnesia dir "\"$folder/mnesia\"" \
    -ejabberd config "\"$folder/ejabberd.yml\"" log_path "\"$folder/log\"" -s ejabberd >/dev/null 2>&1 &
  house=$!
  sleep 20
  kill "$broker"
  wait "$broker"
  kill "$house"
  wait "$house" || true
done
cat seen
diff seen - <<'END'
lost after a second: CONNECT 1, clean true, SUBSCRIBE radio/# at QoS 0
CONNACK 4: CONNECT 1, clean true
END
echo 'as described'
