#!/usr/bin/env bash
# Software: paho for JavaScript 1.1.0 (npm paho-mqtt); paho for Go 1.1.1-1.1 (Debian's
#   golang-github-eclipse-paho.mqtt.golang-dev); mqtt-packet 9.0.2 and ws 8.23.0 answer as a broker of MQTT 3.1.1 alone
# Behaviour: after a CONNACK 4 (wrong password) they connect a second time with MQTT 3.1 (level 3), and report only what
#   came then: "unacceptable protocol version". Asked for version 4, they connect once and report the wrong password.
# Seen: 2026-11-28
#   JavaScript default: levels 4 3, AMQJS0006E Bad Connack return code:1 Connection Refused: unacceptable protocol version.
#   JavaScript 4: levels 4, AMQJS0006E Bad Connack return code:4 Connection Refused: bad user name or password.
#   Go default: levels 4 3, Unnacceptable protocol version
#   Go 4: levels 4, Bad user name or password
# Hub: it refuses level 3 with CONNACK 1, as MQTT 3.1.1 says, so a wrong password looks like a wrong version.
#   docs/clients/others.md, "At a refusal"
# Source: connect and _disconnected (mqttVersionExplicit) in paho-mqtt.js; Connect in client.go (protocolVersionExplicit)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
installed=$(dpkg-query -W -f '${Version}' golang-github-eclipse-paho.mqtt.golang-dev)
echo "paho for Go $installed"
[ "$installed" = 1.1.1-1.1 ]
cd "$folder"
echo '{"type":"module"}' > package.json
npm install --silent --no-audit --no-fund paho-mqtt@1.1.0 mqtt-packet@9.0.2 ws@8.23.0
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

func main() {
	options := mqtt.NewClientOptions().AddBroker("tcp://127.0.0.1:" + os.Args[1]).SetUsername("u").SetPassword("wrong")
	if os.Args[2] == "4" {
		options.SetProtocolVersion(4)
	}
	token := mqtt.NewClient(options).Connect()
	token.Wait()
	fmt.Print(token.Error())
}
END
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$folder/cache" go build -o paho main.go
cat > look.mjs <<'END'
import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { generate, parser } from 'mqtt-packet'
import { WebSocket, WebSocketServer } from 'ws'

let levels = []
function answer(parse, write) {
  parse.on('packet', ({ cmd, protocolVersion }) => {
    if (cmd !== 'connect') return
    levels.push(protocolVersion)
    write(generate({ cmd: 'connack', returnCode: protocolVersion === 4 ? 4 : 1, sessionPresent: false }))
  })
}

const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: ([first]) => first })
sockets.on('connection', (socket) => {
  const parse = parser()
  socket.on('message', (bytes) => parse.parse(bytes))
  answer(parse, (bytes) => {
    socket.send(bytes)
    socket.close()
  })
})
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  answer(parse, (bytes) => socket.end(bytes))
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

globalThis.WebSocket = WebSocket
const { default: paho } = await import('paho-mqtt')
for (const version of ['default', '4']) {
  levels = []
  const client = new paho.Client('127.0.0.1', sockets.address().port, '/mqtt', 'x')
  const said = await new Promise((onFailure) =>
    client.connect({ userName: 'u', password: 'wrong', onFailure, ...(version === '4' && { mqttVersion: 4 }) }),
  )
  console.log(`JavaScript ${version}: levels ${levels.join(' ')}, ${said.errorMessage}`)
}
for (const version of ['default', '4']) {
  levels = []
  const { stdout } = await promisify(execFile)('./paho', [String(server.address().port), version])
  console.log(`Go ${version}: levels ${levels.join(' ')}, ${stdout}`)
}
process.exit()
END
timeout 50 node look.mjs | tee seen
diff seen - <<'END'
JavaScript default: levels 4 3, AMQJS0006E Bad Connack return code:1 Connection Refused: unacceptable protocol version.
JavaScript 4: levels 4, AMQJS0006E Bad Connack return code:4 Connection Refused: bad user name or password.
Go default: levels 4 3, Unnacceptable protocol version
Go 4: levels 4, Bad user name or password
END
echo 'as described'
