#!/usr/bin/env bash
# Software: fastify-jwt-jwks 3.1.2 (npm) in fastify 5.11.3; jose 6.2.17 signs
# Behaviour: It keeps for a week (`secretsTtl`) that a key was not in the key set. A genuine token of a key that was published
#   afterwards is refused with 401 for so long, and the key set is not asked again. Without `issuer` the `iss` must be the origin of
#   the key set with a slash behind it. `secretsTtl: 1000` makes it a second, for keys as well.
# Seen: 2026-11-29, a second key, published after a token of it had come
#   before it is published: 401 Missing Key: Public key must be provided
#   published: 401 Missing Key: Public key must be provided, key set fetched 2 times
#   published, secretsTtl 1000, after 1.5 s: 200
#   without issuer: 401
# Hub: after a replaced key, or behind a cache of the key set, each push is refused until it is a dead letter: docs/webhooks.md, "What
#   libraries do with a new key"
# Source: fastify-jwt-jwks 3.1.2, index.js, getRemoteSecret, verifyOptions and `secretsTtl`
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts fastify-jwt-jwks@3.1.2 fastify@5.11.3 jose@6.2.17

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import fastify from 'fastify'
import jwks from 'fastify-jwt-jwks'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const pairs = new Map()
for (const kid of ['one', 'two']) pairs.set(kid, await generateKeyPair('RS256', { extractable: true }))
const jwkOf = async (kid) => ({ ...(await exportJWK(pairs.get(kid).publicKey)), kid, alg: 'RS256', use: 'sig' })

let published = ['one']
let fetches = 0
const server = createServer(async (_request, response) => {
  fetches++
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'public, max-age=300' })
  response.end(JSON.stringify({ keys: await Promise.all(published.map(jwkOf)) }))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const hub = `http://127.0.0.1:${server.address().port}`
const url = 'https://house.example/push'

async function receiver(options) {
  const app = fastify()
  await app.register(jwks, { jwksUrl: `${hub}/.well-known/jwks.json`, audience: url, ...options })
  app.post('/', { preValidation: app.authenticate }, () => 'genuine')
  return async (kid) => {
    const token = await new SignJWT({ email: 'hub@hub.example', email_verified: true })
      .setProtectedHeader({ alg: 'RS256', kid })
      .setIssuer(hub)
      .setAudience(url)
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(pairs.get(kid).privateKey)
    const headers = { authorization: `Bearer ${token}` }
    const { statusCode, body } = await app.inject({ method: 'POST', url: '/', headers })
    return statusCode === 200 ? '200' : `${statusCode} ${JSON.parse(body).message}`
  }
}

const push = await receiver({ issuer: hub })
const quick = await receiver({ issuer: hub, secretsTtl: 1000 })
const first = await push('one')
if (first !== '200') throw new Error(first)
console.log(`before it is published: ${await push('two')}`)
await quick('two')
published = ['one', 'two']
fetches -= 1 // that of `quick`
console.log(`published: ${await push('two')}, key set fetched ${fetches} times`)
await pause(1500)
console.log(`published, secretsTtl 1000, after 1.5 s: ${await quick('two')}`)
console.log(`without issuer: ${(await (await receiver({}))('one')).slice(0, 3)}`)
process.exit()
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
before it is published: 401 Missing Key: Public key must be provided
published: 401 Missing Key: Public key must be provided, key set fetched 2 times
published, secretsTtl 1000, after 1.5 s: 200
without issuer: 401
SEEN
echo 'as described'
