#!/usr/bin/env bash
# Software: webhook 2.8.0 (Debian webhook 2.8.0-4+b6), a server that runs a command for each request
# Behaviour: It answers 200 where the rule of a hook is not met, and does nothing. Where it is met it answers 200 before the command
#   has done anything, also to a command that fails. `trigger-rule-mismatch-http-response-code` sets the first of these;
#   with `include-command-output-in-response` it waits for the command, and answers 500 where that fails.
# Seen: 2026-11-29, a push in the form of the hub
#   rule not met: 200 Hook rules were not satisfied., the command did not run
#   rule not met, trigger-rule-mismatch-http-response-code 503: 503
#   command that fails: 200
#   command that fails, include-command-output-in-response: 500
#   message.attributes.event and message.messageId reach the command
# Hub: 200 acknowledges, so each event that the rule does not know or the command loses is gone: docs/webhooks.md, "What
#   acknowledges"
# Source: webhook 2.8.0, webhook.go, hookHandler; docs/Hook-Definition.md
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Package} ${Version}\n' webhook)
echo "$version"
[ "$version" = 'webhook 2.8.0-4+b6' ]

printf '#!/bin/sh\necho "$@" >>%s/ran\nexit 1\n' "$folder" >fails
chmod +x fails
cat >hooks.json <<JSON
[
  { "id": "rule", "execute-command": "$folder/fails",
    "trigger-rule": { "match": { "type": "value", "value": "de.org.hub.v1.radio.control",
      "parameter": { "source": "payload", "name": "message.attributes.event" } } } },
  { "id": "rule-503", "execute-command": "$folder/fails", "trigger-rule-mismatch-http-response-code": 503,
    "trigger-rule": { "match": { "type": "value", "value": "de.org.hub.v1.radio.control",
      "parameter": { "source": "payload", "name": "message.attributes.event" } } } },
  { "id": "fails", "execute-command": "$folder/fails",
    "pass-arguments-to-command": [{ "source": "payload", "name": "message.attributes.event" },
      { "source": "payload", "name": "message.messageId" }] },
  { "id": "fails-told", "execute-command": "$folder/fails", "include-command-output-in-response": true }
]
JSON
cat >push.json <<'JSON'
{ "message": { "data": "eyJ0aXRsZSI6IkViYmUgdW5kIEZsdXQifQ==",
    "attributes": { "event": "de.org.hub.v1.radio.track.playing", "livestreamId": "urn:org:permanent-livestream:4638c4eac849c618" },
    "messageId": "1785672000000000001", "publishTime": "2026-01-31T11:00:00.000Z" },
  "subscription": "de.org.hub.subscription.0f6f2a9e-5a3c-4a55-9a55-0d6a3c1f2b11" }
JSON

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
webhook -hooks hooks.json -ip 127.0.0.1 -port "$port" >log 2>&1 &
server=$!
for _ in $(seq 50); do
  curl -s -o /dev/null "http://127.0.0.1:$port/" && break
  sleep 0.1
done

push() {
  curl -s -m 10 -w '%{stderr}%{http_code}' -H 'content-type: application/json' -d @push.json "http://127.0.0.1:$port/hooks/$1" 2>code >text
}
{
  push rule
  [ -e ran ] && ran='the command ran' || ran='the command did not run'
  echo "rule not met: $(cat code) $(cat text), $ran"
  push rule-503
  echo "rule not met, trigger-rule-mismatch-http-response-code 503: $(cat code)"
  push fails
  echo "command that fails: $(cat code)"
  push fails-told
  echo "command that fails, include-command-output-in-response: $(cat code)"
  sleep 0.5
  grep -q '^de.org.hub.v1.radio.track.playing 1785672000000000001$' ran
  echo 'message.attributes.event and message.messageId reach the command'
} | tee seen

cat >expected <<'TEXT'
rule not met: 200 Hook rules were not satisfied., the command did not run
rule not met, trigger-rule-mismatch-http-response-code 503: 503
command that fails: 200
command that fails, include-command-output-in-response: 500
message.attributes.event and message.messageId reach the command
TEXT
diff expected seen
echo 'as described'
