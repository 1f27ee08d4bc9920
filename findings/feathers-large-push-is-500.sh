#!/usr/bin/env bash
# Software: @feathersjs/express 5.0.50 and @feathersjs/feathers 5.0.50 (npm), on express 4.22.1
# Behaviour: express.json() refuses a body of more than 100 kB with an error of status 413. The errorHandler() of Feathers behind it
#   knows the errors of its own kind alone, and makes a GeneralError of all others: the answer is 500. Express without it
#   answers 413.
# Seen: 2026-11-30, a push of 150 kB
#   express: 413
#   feathers: 500
#   feathers, limit 1mb: 201
# Hub: a 500 says that the receiver is down, so all later events wait behind the large one, until it is a dead letter after seven days; at
#   a 413 they go on: docs/webhooks.md, "How large it is"
# Source: @feathersjs/express 5.0.50, lib/handlers.js, errorHandler (`error.type !== 'FeathersError'`)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @feathersjs/express@5.0.50 @feathersjs/feathers@5.0.50 express@4.22.1

cat >look.mjs <<'JS'
import { once } from 'node:events'
import express from 'express'
import feathersExpress, { errorHandler } from '@feathersjs/express'
import { feathers } from '@feathersjs/feathers'

const event = { event: 'de.org.hub.v1.radio.track.playing', title: 'x'.repeat(112_000) }
const message = { data: Buffer.from(JSON.stringify(event)).toString('base64'), messageId: '1' }
const body = JSON.stringify({ message, subscription: 's' })

async function look(name, app, limit) {
  app.use(express.json({ ...(limit && { limit }) }))
  app.post('/', (request, response) => response.sendStatus(request.body.message ? 201 : 400))
  if (!name.startsWith('express')) app.use(errorHandler({ logger: false }))
  const server = await app.listen(0, '127.0.0.1')
  if (!server.listening) await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}/`
  const { status } = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  console.log(`${name}: ${status}`)
}

const own = express()
own.set('env', 'test') // it writes no errors
await look('express', own)
await look('feathers', feathersExpress(feathers()))
await look('feathers, limit 1mb', feathersExpress(feathers()), '1mb')
process.exit()
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
express: 413
feathers: 500
feathers, limit 1mb: 201
SEEN
echo 'as described'
