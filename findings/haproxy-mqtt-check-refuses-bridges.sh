#!/usr/bin/env bash
# Software: HAProxy 2.6.12 (Debian haproxy 2.6.12-1+deb12u4), `mqtt_is_valid`, in front of mosquitto 2.0.11 as the broker; mosquitto and
#   mosquitto_sub as clients
# Behaviour: For `mqtt_is_valid` the CONNECT of a bridge (protocol level 0x84) is none, so the rule of HAProxy's own manual ends each of its
#   connections without an answer, and mosquitto tries the same again for ever. Ordinary clients pass, and a bridge with
#   `try_private false`.
# Seen: 2026-11-30, 8 s each
#   mosquitto_sub: hello
#   bridge, try_private true: no connection
#   bridge, try_private false: connected
#   bridge, try_private true, no mqtt_is_valid: connected
# Hub: a house whose bridge never gets past the balancer of the hub: docs/deployment.md, "Behind a proxy"
# Source: haproxy 2.6, src/mqtt.c, mqtt_parse_connect, which compares the whole level; doc/configuration.txt, "mqtt_is_valid"
set -euo pipefail

folder=$(mktemp -d)
running=()
trap 'kill "${running[@]}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"

for wanted in haproxy=2.6.12-1+deb12u4 mosquitto=2.0.11-1.2+deb12u2; do
  version=$(dpkg-query -W -f '${Version}' "${wanted%=*}")
  echo "${wanted%=*} $version"
  [ "$version" = "${wanted#*=}" ]
done

ports() { python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range('"$1"')]
print(*(one.getsockname()[1] for one in held))'; }
read -r broker checked open private ordinary unchecked < <(ports 6)

printf 'listener %s 127.0.0.1\nallow_anonymous true\nlog_type all\n' "$broker" >broker.conf
mosquitto -c broker.conf >/dev/null 2>broker.log &
running+=($!)

cat >haproxy.cfg <<CFG
defaults
  mode tcp
  timeout connect 3s
  timeout client 30s
  timeout server 30s
listen checked
  bind 127.0.0.1:$checked
  tcp-request inspect-delay 5s
  tcp-request content reject unless { req.payload(0,0),mqtt_is_valid }
  server broker 127.0.0.1:$broker
listen open
  bind 127.0.0.1:$open
  server broker 127.0.0.1:$broker
CFG
haproxy -f haproxy.cfg >/dev/null 2>&1 &
running+=($!)

until mosquitto_pub -p "$checked" -q 1 -r -t radio/x -m hello 2>/dev/null; do sleep 0.2; done

{
  echo "mosquitto_sub: $(mosquitto_sub -p "$checked" -t 'radio/#' -C 1 -W 8)"
  bridge() { # NAME PORT_OF_ITS_OWN PORT_OF_HAPROXY TRY_PRIVATE
    printf '%s\n' "listener $2 127.0.0.1" 'connection radio' "address 127.0.0.1:$3" "remote_clientid $1" 'topic radio/# in 1' \
      'bridge_protocol_version mqttv311' "try_private $4" 'notifications false' 'restart_timeout 1 2' >"$1.conf"
    mosquitto -c "$1.conf" >/dev/null 2>&1 &
    running+=($!)
  }
  bridge private "$private" "$checked" true
  bridge ordinary "$ordinary" "$checked" false
  bridge unchecked "$unchecked" "$open" true
  sleep 8
  state() { if grep -q "as $1 " broker.log; then echo connected; else echo 'no connection'; fi; }
  echo "bridge, try_private true: $(state private)"
  echo "bridge, try_private false: $(state ordinary)"
  echo "bridge, try_private true, no mqtt_is_valid: $(state unchecked)"
} >seen
cat seen
diff seen - <<'SEEN'
mosquitto_sub: hello
bridge, try_private true: no connection
bridge, try_private false: connected
bridge, try_private true, no mqtt_is_valid: connected
SEEN
echo 'as described'
