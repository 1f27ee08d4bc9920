#!/usr/bin/env bash
# Software: mosquitto_sub 2.0.11 and libmosquitto (Debian 2.0.11-1.2+deb12u2) with OpenSSL 3.0; mqtt-packet 9.0.2 answers as a
#   broker over TLS
# Behaviour: When a TLS connection ends without close_notify, as it does where a broker was killed or a balancer cuts it,
#   mosquitto_loop_forever returns MOSQ_ERR_CONN_LOST, and mosquitto_sub ends with 7. After close_notify, and without TLS, it
#   comes back after a second. OpenSSL before 3.0 did not call that end an error.
# Seen: 2026-11-29
#   tls, close_notify: connects 2
#   tls, cut: connects 1, exit code 7
#   tcp, cut: connects 2
# Hub: a listener with mosquitto_sub needs a loop around it also for lost connections: docs/clients/shell.md, "Listen".
# Source: mosquitto 2.0.11, lib/loop.c, mosquitto_loop_forever (errno EPROTO); OpenSSL 3.0, SSL_get_error(3), "unexpected EOF"
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

versions=$(dpkg-query -W -f '${Package} ${Version}\n' mosquitto-clients libmosquitto1)
echo "$versions"
[ "$versions" = $'libmosquitto1 2.0.11-1.2+deb12u2\nmosquitto-clients 2.0.11-1.2+deb12u2' ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null

cat >look.mjs <<'END'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createTcpServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { generate, parser } from 'mqtt-packet'

const tls = { key: readFileSync('key.pem'), cert: readFileSync('cert.pem') }
for (const [transport, way] of [['tls', 'close_notify'], ['tls', 'cut'], ['tcp', 'cut']]) {
  let connects = 0
  let subscriber
  const serve = (socket) => {
    const parse = parser()
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('packet', ({ cmd, messageId }) => {
      if (cmd === 'connect' && ++connects === 2) subscriber.kill()
      if (cmd === 'connect') socket.write(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
      if (cmd !== 'subscribe') return
      socket.write(generate({ cmd: 'suback', messageId, granted: [1] }))
      setTimeout(() => (way === 'cut' ? socket.destroy() : socket.end()), 500)
    })
  }
  const server = transport === 'tls' ? createTlsServer(tls, serve) : createTcpServer(serve)
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const secure = transport === 'tls' ? ['--cafile', 'cert.pem'] : []
  subscriber = spawn(
    'mosquitto_sub',
    ['-h', 'localhost', '-p', server.address().port, ...secure, '-V', 'mqttv311', '-q', '1', '-t', 'radio/#'],
    { stdio: 'ignore' },
  )
  const late = setTimeout(() => subscriber.kill('SIGKILL'), 10_000)
  const [code] = await once(subscriber, 'exit')
  clearTimeout(late)
  console.log(`${transport}, ${way}: connects ${connects}${connects < 2 ? `, exit code ${code}` : ''}`)
  server.close()
}
process.exit()
END
node look.mjs | tee seen
diff seen - <<'END'
tls, close_notify: connects 2
tls, cut: connects 1, exit code 7
tcp, cut: connects 2
END
echo 'as described'
