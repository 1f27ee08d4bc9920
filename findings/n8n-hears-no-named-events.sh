#!/usr/bin/env bash
# Software: n8n-nodes-base 2.41.2 (npm), the node "SSE Trigger" of n8n, with eventsource 2.0.2 and n8n-workflow 2.41.0
# Behaviour: It takes only events without a name, or with the name "message". One with another `event:` starts no workflow, and nothing says
#   so. The node has no field for a user name, a password or a header.
# Seen: 2026-11-30, a stream with an event of each
#   no name: a workflow with {"title":"A"}
#   message: a workflow with {"title":"B"}
#   playing: nothing
#   fields: URL
# Hub: each event of its streams has a name, so a flow of n8n never runs: docs/reading.md, "With a library"
# Source: n8n-nodes-base 2.41.2, dist/nodes/SseTrigger/SseTrigger.node.js, trigger (onmessage)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts n8n-workflow@2.41.0 @n8n/utils@1.48.0 eventsource@2.0.2
# All nodes of n8n together need hundreds of packages: the file of this one is enough.
tar xzf "$(npm pack --silent n8n-nodes-base@2.41.2)" package/dist/nodes/SseTrigger

cat >look.cjs <<'JS'
const { once } = require('node:events')
const { createServer } = require('node:http')
const { setTimeout: pause } = require('node:timers/promises')
const { SseTrigger } = require('./package/dist/nodes/SseTrigger/SseTrigger.node.js')

const events = [['no name', '', 'A'], ['message', 'event: message\n', 'B'], ['playing', 'event: playing\n', 'C']]

async function main() {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    for (const [, name, title] of events) answer.write(`${name}data: {"title":"${title}"}\n\n`)
    // Behind all others, so that nothing is still to come when this one is here.
    answer.write('data: {"title":"last"}\n\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const started = []
  let complete
  const over = new Promise((resolve) => (complete = resolve))
  const node = new SseTrigger()
  await node.trigger.call({
    getNodeParameter: () => `http://127.0.0.1:${server.address().port}/`,
    helpers: { returnJsonArray: (items) => items },
    emit([[item]]) {
      started.push(item)
      if (item.title === 'last') complete()
    },
  })
  await Promise.race([over, pause(20_000)])
  for (const [name, , title] of events) {
    const item = started.find((one) => one.title === title)
    console.log(`${name}: ${item ? `a workflow with ${JSON.stringify(item)}` : 'nothing'}`)
  }
  console.log(`fields: ${node.description.properties.map(({ displayName }) => displayName)}`)
  process.exit()
}
main()
JS
timeout 30 node look.cjs 2>&1 | tee seen
diff seen - <<'SEEN'
no name: a workflow with {"title":"A"}
message: a workflow with {"title":"B"}
playing: nothing
fields: URL
SEEN
echo 'as described'
