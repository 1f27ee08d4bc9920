#!/usr/bin/env bash
# Software: paho for C 1.3.12 (Debian libpaho-mqtt-dev 1.3.12-1), MQTTAsync with automaticReconnect; mqtt-packet 9.0.2 answers as a
#   broker of MQTT 3.1.1 alone
# Behaviour: Without MQTTVersion, the first try after a lost connection asks for MQTT 3.1 (level 3), although 3.1.1 was accepted
#   before. After its CONNACK 1 it tries 3.1.1 again, one pause later. With MQTTVERSION_3_1_1 it asks for that alone.
# Seen: 2026-11-29, a broker that ends each accepted connection after half a second
#   default: levels 4 3 4 3
#   MQTTVERSION_3_1_1: levels 4 4 4 4
# Hub: a listener is away for one pause more after each restart of a node: docs/clients/others.md, "At a refusal".
# Source: paho.mqtt.c 1.3.12, src/MQTTAsyncUtils.c: MQTTAsync_connecting and nextOrClose (MQTTVERSION_DEFAULT)
set -euo pipefail

folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' libpaho-mqtt-dev)
echo "libpaho-mqtt-dev $version"
[ "$version" = 1.3.12-1 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2

# Ends after four log-ins, and has written their levels.
cat >broker.mjs <<'END'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { generate, parser } from 'mqtt-packet'

const levels = []
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd, protocolVersion }) => {
    if (cmd !== 'connect') return
    levels.push(protocolVersion)
    const returnCode = protocolVersion === 4 ? 0 : 1
    socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
    setTimeout(() => socket.destroy(), returnCode ? 50 : 500)
    if (levels.length < 4) return
    writeFileSync('levels', levels.join(' '))
    process.exit()
  })
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
END
cat >client.c <<'END'
#include <MQTTAsync.h>
#include <stdio.h>
#include <unistd.h>

static int message(void *context, char *topic, int length, MQTTAsync_message *message) { return 1; }

int main(int argc, char **argv) {
  MQTTAsync client;
  char url[100];
  MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
  snprintf(url, sizeof url, "tcp://127.0.0.1:%s", argv[1]);
  MQTTAsync_create(&client, url, "house", MQTTCLIENT_PERSISTENCE_NONE, NULL);
  MQTTAsync_setCallbacks(client, NULL, NULL, message, NULL);
  if (argc > 2) options.MQTTVersion = MQTTVERSION_3_1_1;
  options.automaticReconnect = 1;
  options.minRetryInterval = 1;
  options.maxRetryInterval = 2;
  MQTTAsync_connect(client, &options);
  sleep(25);
}
END
gcc client.c -o client -lpaho-mqtt3a

run() { # name, arguments of the client
  rm -f port levels
  node broker.mjs &
  local broker=$!
  until [ -s port ]; do sleep 0.1; done
  ./client "$(cat port)" "${@:2}" &
  local client=$!
  timeout 24 tail --pid="$broker" -f /dev/null || true
  kill "$client" "$broker" 2>/dev/null || true
  wait "$client" "$broker" 2>/dev/null || true
  echo "$1: levels $(cat levels)" >>seen
}
run default
run MQTTVERSION_3_1_1 3.1.1
cat seen
diff seen - <<'END'
default: levels 4 3 4 3
MQTTVERSION_3_1_1: levels 4 4 4 4
END
echo 'as described'
