#!/usr/bin/env bash
# Software: Redis and its Sentinel 5:7.0.15-1~deb12u10 (Debian's redis-server)
# Behaviour: SENTINEL FAILOVER of a healthy master promotes a replica that is behind, without a wait. What the master had
#   answered and the replica lacked is gone. After CLIENT PAUSE … WRITE and a wait for the replica nothing is.
# Seen: 2026-11-28
#   failover: 1000 written, 0 on the new master
#   pause, wait, failover: 1000 written, 1000 on the new master
# Hub: with HUB_REDIS_REPLICAS=0 events are acknowledged that a failover of an operator throws away. docs/deployment.md,
#   "Several nodes"
# Source: sentinelSelectSlave and sentinelFailoverSendSlaveOfNoOne in sentinel.c of Redis 7.0: neither compares the
#   replica's offset with the master's. CLIENT PAUSE: https://redis.io/docs/latest/commands/client-pause/
set -euo pipefail
folder=$(mktemp -d)
running=()
trap 'kill -CONT "${running[@]}" 2>/dev/null || true; kill "${running[@]}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
installed=$(dpkg-query -W -f '${Version}' redis-server)
echo "Redis $installed"
[ "$installed" = 5:7.0.15-1~deb12u10 ]

base=$((20000 + RANDOM % 20000))

start() { # port, lines of the configuration
  mkdir "$folder/$1"
  printf '%s\n' "port $1" 'bind 127.0.0.1' "dir $folder/$1" "${@:2}" > "$folder/$1/redis.conf"
  redis-server "$folder/$1/redis.conf" ${sentinel:-} > "$folder/$1/log" &
  running+=($!)
}

ask() { redis-cli -p "$@"; }
until_true() { for _ in $(seq 300); do if "$@" 2> "$folder/errors"; then return; fi; sleep 0.1; done; echo "never: $*"; exit 1; }
says() { ask "$1" info replication 2>/dev/null | grep -q "$2"; }
offset() { ask "$1" info replication | sed -n "s/^$2_repl_offset:\([0-9]*\).*/\1/p"; }
has_all() { [ "$(offset "$replica" slave)" -ge "$(offset "$master" master)" ]; }
failed_over() { [ "$(ask "$watch" sentinel failover hub 2>/dev/null)" = OK ]; }

look() { # sets `found`: how many of 1000 values the new master has
  master=$base replica=$((base + 1)) watch=$((base + 2))
  base=$((base + 3))
  start "$master" 'save ""' 'repl-diskless-sync-delay 0'
  start "$replica" 'save ""' "replicaof 127.0.0.1 $master"
  local of_replica=$!
  until_true says "$replica" master_link_status:up
  sentinel=--sentinel start "$watch" "sentinel monitor hub 127.0.0.1 $master 1"
  # The Sentinel has to know the replica and its state.
  until_true eval "ask $watch sentinel replicas hub | grep -q master-link-status"
  until_true eval "ask $watch sentinel replicas hub | grep -A1 '^master-link-status' | grep -q ok"

  # The replica stands still, as on a busy machine, and has read nothing of this.
  kill -STOP "$of_replica"
  ask "$master" eval 'for i = 1, 1000 do redis.call("set", "k" .. i, string.rep("x", 1000)) end' 0 > "$folder/answer"
  if [ "$1" = pause ]; then
    ask "$master" client pause 10000 write > "$folder/answer"
    kill -CONT "$of_replica"
    until_true has_all
    until_true failed_over
  else
    until_true failed_over
    sleep 2 # by now the order to become a master waits for the replica
    kill -CONT "$of_replica"
  fi
  until_true says "$replica" role:master
  found=$(ask "$replica" dbsize)
}

look at-once
echo "failover: 1000 written, $found on the new master"
[ "$found" -lt 1000 ]
look pause
echo "pause, wait, failover: 1000 written, $found on the new master"
[ "$found" -eq 1000 ]
echo 'as described'
