#!/usr/bin/env bash
# Software: paho for C 1.3.12 (Debian libpaho-mqtt-dev 1.3.12-1), MQTTAsync with automaticReconnect; mqtt-packet 9.0.2 answers as a
#   broker
# Behaviour: A log-in that is refused when it connects again by itself, because the credential was revoked, does not reach the
#   program: onFailure comes once, for the loss of the connection, with -1 and not the code of the CONNACK. It tries on for ever,
#   after pauses that double up to maxRetryInterval. A refusal of the first MQTTAsync_connect has the code.
# Seen: 2026-11-29
#   first: connect failed 4
#   later: connected, lost, connect failed -1; refused by the broker 2 times or more
# Hub: a listener whose credential was revoked looks as if the line were down: docs/clients/others.md.
# Source: paho.mqtt.c 1.3.12, src/MQTTAsyncUtils.c, nextOrClose and MQTTAsync_startConnectRetry
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${broker:-}" "${client:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' libpaho-mqtt-dev)
echo "libpaho-mqtt-dev $version"
[ "$version" = 1.3.12-1 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund mqtt-packet@9.0.2

# Accepts so many log-ins, and refuses all later ones.
cat >broker.mjs <<'END'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { generate, parser } from 'mqtt-packet'

const accepted = Number(process.argv[2])
let connects = 0
const server = createServer((socket) => {
  const parse = parser()
  socket.on('error', () => {})
  socket.on('data', (bytes) => parse.parse(bytes))
  parse.on('packet', ({ cmd }) => {
    if (cmd !== 'connect') return
    const returnCode = ++connects > accepted ? 4 : 0
    socket.write(generate({ cmd: 'connack', returnCode, sessionPresent: false }))
    setTimeout(() => socket.destroy(), returnCode ? 50 : 500)
  })
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
process.on('SIGTERM', () => {
  writeFileSync('refused', String(connects - accepted))
  process.exit()
})
END
cat >client.c <<'END'
#include <MQTTAsync.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void connected(void *context, char *cause) { puts("connected"); }
static void lost(void *context, char *cause) { puts("lost"); }
static void failed(void *context, MQTTAsync_failureData *data) { printf("connect failed %d\n", data ? data->code : 0); }
static int message(void *context, char *topic, int length, MQTTAsync_message *message) { return 1; }

int main(int argc, char **argv) {
  MQTTAsync client;
  char url[100];
  MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
  setvbuf(stdout, NULL, _IONBF, 0);
  snprintf(url, sizeof url, "tcp://127.0.0.1:%s", argv[1]);
  MQTTAsync_create(&client, url, "house", MQTTCLIENT_PERSISTENCE_NONE, NULL);
  MQTTAsync_setCallbacks(client, NULL, lost, message, NULL);
  MQTTAsync_setConnected(client, NULL, connected);
  options.MQTTVersion = MQTTVERSION_3_1_1;
  options.username = "sub-house";
  options.password = "secret";
  options.automaticReconnect = 1;
  options.minRetryInterval = 1;
  options.maxRetryInterval = 4;
  options.onFailure = failed;
  MQTTAsync_connect(client, &options);
  sleep(atoi(argv[2]));
}
END
gcc client.c -o client -lpaho-mqtt3a

run() {
  rm -f port
  node broker.mjs "$1" &
  broker=$!
  until [ -s port ]; do sleep 0.1; done
  ./client "$(cat port)" "$2" >told &
  client=$!
  wait "$client" || true
  kill "$broker"
  wait "$broker"
}

run 0 1
echo "first: $(head -n 1 told)" >seen
run 1 20
refused=$(cat refused)
[ "$refused" -lt 2 ] || refused='2 times or more'
echo "later: $(paste -sd, told | sed 's/,/, /g'); refused by the broker $refused" >>seen
cat seen
diff seen - <<'END'
first: connect failed 4
later: connected, lost, connect failed -1; refused by the broker 2 times or more
END
echo 'as described'
