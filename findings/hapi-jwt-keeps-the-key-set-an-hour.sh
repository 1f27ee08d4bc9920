#!/usr/bin/env bash
# Software: @hapi/jwt 3.2.4 with @hapi/hapi 21.4.10 (npm), `keys: { uri }`; jose 6.2.17 signs
# Behaviour: It keeps the key set for an hour (`cache.staleIn`), whatever max-age says, and does not ask again for a key that it does not
#   know. A genuine token of such a key is refused like a request without any: 401 `Missing authentication`.
# Seen: 2026-11-30, a key set with max-age=1, and a second key in it after the first token
#   default, 1st key: 201
#   default, 2nd key, after 2.5 s: 401 Missing authentication, key set fetched 1 time
#   staleIn 2000, 1st key: 201
#   staleIn 2000, 2nd key, after 2.5 s: 201, key set fetched 2 times
# Hub: a new key signs 600 s after it was published (HUB_KEY_LEAD), so each rotation stops the pushes to such a receiver for most of an
#   hour: docs/webhooks.md, "What libraries do with a new key"
# Source: @hapi/jwt, lib/plugin.js, internals.schema.strategy (`cache`); lib/keys.js, assign (`map.get(kid)`)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @hapi/jwt@3.2.4 @hapi/hapi@21.4.10 jose@6.2.17

cat >receive.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import Hapi from '@hapi/hapi'
import Jwt from '@hapi/jwt'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const issuer = 'https://hub.example'
const audience = 'https://receiver.example/'
const pairs = { '1st': await generateKeyPair('RS256'), '2nd': await generateKeyPair('RS256') }
let published
let fetches

const hub = createServer(async (_, answer) => {
  fetches++
  const keys = published.map(async (kid) => ({ ...(await exportJWK(pairs[kid].publicKey)), kid, alg: 'RS256', use: 'sig' }))
  answer.setHeader('content-type', 'application/json').setHeader('cache-control', 'public, max-age=1')
  answer.end(JSON.stringify({ keys: await Promise.all(keys) }))
}).listen(0, '127.0.0.1')
await once(hub, 'listening')

async function receiver(options) {
  const server = Hapi.server({ host: '127.0.0.1', port: 0 })
  await server.register(Jwt)
  server.auth.strategy('push', 'jwt', {
    keys: { uri: `http://127.0.0.1:${hub.address().port}/jwks.json` },
    verify: { iss: issuer, aud: audience, sub: false },
    validate: () => ({ isValid: true }),
    ...options,
  })
  server.route({ method: 'POST', path: '/', options: { auth: 'push' }, handler: (_, to) => to.response().code(201) })
  await server.start()
  return server.info.uri
}

async function push(url, kid) {
  const token = await new SignJWT().setProtectedHeader({ alg: 'RS256', kid }).setIssuer(issuer).setAudience(audience)
    .setIssuedAt().setExpirationTime('1h').sign(pairs[kid].privateKey)
  const answer = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  const text = await answer.text()
  return [answer.status, text && JSON.parse(text).message].join(' ').trim()
}

const short = { expiresIn: 3_600_000, staleIn: 2_000, staleTimeout: 500, generateTimeout: 20_000 }
for (const [name, options] of [['default', {}], ['staleIn 2000', { cache: short }]]) {
  published = ['1st']
  fetches = 0
  const url = await receiver(options)
  console.log(`${name}, 1st key: ${await push(url, '1st')}`)
  published = ['1st', '2nd']
  await pause(2_500)
  const outcome = await push(url, '2nd')
  console.log(`${name}, 2nd key, after 2.5 s: ${outcome}, key set fetched ${fetches} time${fetches === 1 ? '' : 's'}`)
}
process.exit()
JS
node receive.mjs | tee seen
diff seen - <<'SEEN'
default, 1st key: 201
default, 2nd key, after 2.5 s: 401 Missing authentication, key set fetched 1 time
staleIn 2000, 1st key: 201
staleIn 2000, 2nd key, after 2.5 s: 201, key set fetched 2 times
SEEN
echo 'as described'
