#!/usr/bin/env bash
# Software: @google-cloud/functions-framework 5.0.5 (npm)
# Behaviour: It takes a push for a message of its own cloud, and hands a function of the signature `cloudevent` or `event` the message
#   alone: neither the header Authorization nor `subscription`. Such a function has nothing to verify the sender with, and the
#   framework verifies nothing itself. It answers 204, or 500 where the function throws, and writes two lines of advice to its log,
#   unless the path has projects/…/topics/…. A function of the signature `http` gets headers and body.
# Seen: 2026-11-29, a push with a token
#   cloudevent: 204, messageId, no token, no subscription
#   http: 201, messageId, token, subscription
# Hub: a receiver that takes events of anybody who knows its URL: docs/webhooks.md, "Coming from the cloud service that pushed before"
# Source: @google-cloud/functions-framework 5.0.5, build/src/pubsub_middleware.js, marshalPubSubRequestBody
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @google-cloud/functions-framework@5.0.5

cat >look.cjs <<'JS'
const { once } = require('node:events')
const functions = require('@google-cloud/functions-framework')
const { getTestServer } = require('@google-cloud/functions-framework/testing')

const push = {
  message: {
    data: Buffer.from('{"event":"de.org.hub.v1.radio.track.playing"}').toString('base64'),
    attributes: { event: 'de.org.hub.v1.radio.track.playing' },
    messageId: '1785672000000000001',
    publishTime: '2026-01-31T11:00:00.000Z',
  },
  subscription: 'de.org.hub.subscription.0f6f2a9e-5a3c-4a55-9a55-0d6a3c1f2b11',
}
let found

/** What of a push is to be found somewhere in what a function gets. */
function look(...given) {
  const text = JSON.stringify(given)
  found = [
    text.includes(push.message.messageId) ? 'messageId' : 'no messageId',
    text.includes('the-token') ? 'token' : 'no token',
    text.includes(push.subscription) ? 'subscription' : 'no subscription',
  ].join(', ')
}

functions.cloudEvent('cloudevent', (event) => look(event))
functions.http('http', ({ headers, body }, response) => {
  look(headers, body)
  response.status(201).end()
})

async function main() {
  for (const name of ['cloudevent', 'http']) {
    const server = getTestServer(name).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { status } = await fetch(`http://127.0.0.1:${server.address().port}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer the-token' },
      body: JSON.stringify(push),
    })
    console.log(`${name}: ${status}, ${found}`)
    server.close()
  }
  process.exit()
}
main()
JS
timeout 50 node look.cjs 2>/dev/null | tee seen
diff seen - <<'SEEN'
cloudevent: 204, messageId, no token, no subscription
http: 201, messageId, token, subscription
SEEN
echo 'as described'
