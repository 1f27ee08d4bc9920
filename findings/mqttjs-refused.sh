#!/usr/bin/env bash
# Software: mqtt.js 5.16.0 (npm mqtt), with 5.15.0 beside it; mqtt-packet 9.0.2 answers as a broker
# Behaviour: after a CONNACK other than 0, mqtt.js 5.16.0 never connects again, although reconnectPeriod is set; 5.15.0
#   did. With reconnectOnConnackError, 5.16.0 does. After a connection that closes without CONNACK both come back.
# Seen: 2026-11-28
#   5.15.0 connack-3 connects 2
#   5.15.0 closed connects 2
#   5.16.0 connack-3 connects 1
#   5.16.0 closed connects 2
#   5.16.0 with reconnectOnConnackError connack-3 connects 2
# Hub: CONNACK 3 means "later": a client that stops at it stays away for good. docs/clients/others.md, "At a refusal". It is why
#   the hub closes without CONNACK when it fails itself (docs/decisions).
# Source: handleConnack in build/lib/handlers/connack.js of mqtt.js 5.16.0 (reconnectSuppressed)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' > package.json
npm install --silent --no-audit --no-fund mqtt@5.16.0 mqtt-before@npm:mqtt@5.15.0 mqtt-packet@9.0.2
cat > look.mjs <<'END'
import { createServer } from 'node:net'
import { generate, parser } from 'mqtt-packet'

const [version, answer, more] = process.argv.slice(2)
const { default: mqtt } = await import(version === '5.15.0' ? 'mqtt-before' : 'mqtt')
let connects = 0
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd }) => {
    if (cmd !== 'connect') return
    connects++
    if (connects > 1) socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    else if (answer === 'closed') socket.destroy()
    else socket.end(generate({ cmd: 'connack', returnCode: 3, sessionPresent: false }))
  })
})
server.listen(0, '127.0.0.1', () => {
  const options = { protocolVersion: 4, reconnectPeriod: 200, ...(more && { [more]: true }) }
  const client = mqtt.connect(`mqtt://127.0.0.1:${server.address().port}`, options)
  client.on('error', () => {})
  // Fifteen times the period.
  setTimeout(() => {
    console.log(version, ...(more ? ['with', more] : []), answer, 'connects', connects)
    process.exit()
  }, 3000)
})
END
{
  for version in 5.15.0 5.16.0; do
    node look.mjs "$version" connack-3
    node look.mjs "$version" closed
  done
  node look.mjs 5.16.0 connack-3 reconnectOnConnackError
} | tee seen
diff seen - <<'END'
5.15.0 connack-3 connects 2
5.15.0 closed connects 2
5.16.0 connack-3 connects 1
5.16.0 closed connects 2
5.16.0 with reconnectOnConnackError connack-3 connects 2
END
echo 'as described'
