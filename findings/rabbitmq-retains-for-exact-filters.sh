#!/usr/bin/env bash
# Software: RabbitMQ 3.10.8 (Debian rabbitmq-server 3.10.8-1.1+deb12u1), plugin rabbitmq_mqtt; mosquitto 2.0.11 (Debian 2.0.11-1.2+deb12u2)
#   as a bridge that publishes to it
# Behaviour: A subscriber gets the retained message of a topic only if its filter is that topic: with a wildcard it gets none, at once or
#   later, and live messages as usual. A CONNECT of a bridge (protocol level 0x84) is closed without CONNACK, so mosquitto does
#   not fall back to an ordinary one: it tries again for ever. With `try_private false` it bridges, and messages stay retained.
# Seen: 2026-11-30
#   try_private true: never connected
#   try_private false: connected
#   radio/urn:org:permanent-livestream:1/track/playing: A
#   radio/#: nothing
#   radio/+/track/playing: nothing, and live B
# Hub: in a house whose broker is RabbitMQ a display with a wildcard shows nothing until the next title: docs/bridges.md, "RabbitMQ,
#   NATS and ActiveMQ"
# Source: RabbitMQ 3.10.8, deps/rabbitmq_mqtt: rabbit_mqtt_processor.erl, maybe_send_retained_message; rabbit_mqtt_frame.erl,
#   protocol_name_approved. https://github.com/rabbitmq/rabbitmq-server/issues/8824 is about the filters
set -euo pipefail

folder=$(mktemp -d)
mosquitto= rabbit= epmd= fourth=
end() {
  kill $mosquitto $rabbit 2>/dev/null || true
  [ -z "$rabbit" ] || wait $rabbit || true
  kill $epmd $fourth 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT
cd "$folder"

for package in 'rabbitmq-server 3.10.8-1.1+deb12u1' 'mosquitto 2.0.11-1.2+deb12u2' 'mosquitto-clients 2.0.11-1.2+deb12u2'; do
  echo "$package"
  [ "$(dpkg-query -W -f '${Package} ${Version}' "${package% *}")" = "$package" ]
done
free() { node -e "s=net.createServer().listen(0,'127.0.0.1',()=>{console.log(s.address().port);s.close()})"; }
open() {
  for _ in $(seq 300); do
    if (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  return 1
}

export ERL_EPMD_PORT=$(free) ERL_EPMD_ADDRESS=127.0.0.1 HOME=$folder
"$(command -v epmd)" -port "$ERL_EPMD_PORT" -address 127.0.0.1 >/dev/null 2>&1 &
epmd=$!
open "$ERL_EPMD_PORT"
mqtt=$(free)
cat >rabbitmq.conf <<CONF
listeners.tcp.1 = 127.0.0.1:$(free)
mqtt.listeners.tcp.1 = 127.0.0.1:$mqtt
mqtt.allow_anonymous = true
CONF
echo '[rabbitmq_mqtt].' >plugins
export RABBITMQ_NODENAME=house@localhost RABBITMQ_CONFIG_FILE=$folder/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=$folder/plugins
export RABBITMQ_MNESIA_BASE=$folder/data RABBITMQ_LOG_BASE=$folder/log RABBITMQ_DIST_PORT=$(free)
/usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/sbin/rabbitmq-server >out 2>&1 &
rabbit=$!
open "$mqtt" || { cat out; exit 1; }

topic=radio/urn:org:permanent-livestream:1/track/playing
listen() { timeout 20 mosquitto_sub -h 127.0.0.1 -p "$mqtt" -V mqttv311 -q 1 "$@" 2>/dev/null || true; }

# A title that comes to mosquitto, with a bridge of each kind.
for private in true false; do
  port=$(free)
  cat >mosquitto.conf <<CONF
listener $port 127.0.0.1
allow_anonymous true
connection house
address 127.0.0.1:$mqtt
topic radio/# out 1
bridge_protocol_version mqttv311
try_private $private
restart_timeout 1
notifications false
CONF
  mosquitto -c mosquitto.conf >/dev/null 2>&1 &
  mosquitto=$!
  open "$port"
  mosquitto_pub -h 127.0.0.1 -p "$port" -q 1 -r -t $topic -m A
  got=$(listen -t $topic -C 1 -W 8)
  kill $mosquitto
  wait $mosquitto || true
  mosquitto=
  echo "try_private $private: $([ "$got" = A ] && echo connected || echo never connected)"
done | tee seen

echo "$topic: $(listen -t $topic -W 3)" | tee -a seen
echo "radio/#: $(listen -t 'radio/#' -W 3 | grep . || echo nothing)" | tee -a seen
listen -t 'radio/+/track/playing' -C 1 -W 8 >live &
fourth=$!
sleep 2
before=$([ -s live ] && cat live || echo nothing)
mosquitto_pub -h 127.0.0.1 -p "$mqtt" -V mqttv311 -q 1 -r -t $topic -m B
wait $fourth
echo "radio/+/track/playing: $before, and live $(cat live)" | tee -a seen
diff seen - <<SEEN
try_private true: never connected
try_private false: connected
$topic: A
radio/#: nothing
radio/+/track/playing: nothing, and live B
SEEN
echo 'as described'
