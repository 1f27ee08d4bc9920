#!/usr/bin/env bash
# Software: jose 6.2.17 and express-oauth2-jwt-bearer 1.10.0 (npm), with their defaults
# Behaviour: For a key that is not in the key set they have kept, both fetch the set again only if the last fetch is more
#   than 30 seconds old. Before, they reject a genuine token. jose says so with a code of its own;
#   express-oauth2-jwt-bearer answers as it does to a forged token: invalid_token with status 401. Neither reads max-age.
# Seen: 2026-11-28, a second token, of a key published after the first one was verified
#   jose: ERR_JWKS_NO_MATCHING_KEY
#   express-oauth2-jwt-bearer: invalid_token 401
#   key set fetched 2 times, once by each
# Hub: A new signing key waits for HUB_KEY_LEAD before it signs: docs/webhooks.md, "What libraries do with a new key".
# Source: jose, src/jwks/remote.ts, cooldownDuration; express-oauth2-jwt-bearer brings jose 4
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts jose@6.2.17 express-oauth2-jwt-bearer@1.10.0

cat >verify.mjs <<'JS'
import { createServer } from 'node:http'
import { auth } from 'express-oauth2-jwt-bearer'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose'

const audience = 'https://receiver.example/'
const keys = []
let fetches = 0
const server = createServer((_request, response) => {
  fetches++
  response.setHeader('content-type', 'application/json')
  response.setHeader('cache-control', 'public, max-age=300')
  response.end(JSON.stringify({ keys }))
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}/`

async function makeToken(kid) {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  keys.push({ ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' })
  const token = new SignJWT({}).setProtectedHeader({ alg: 'RS256', kid }).setIssuer(url).setAudience(audience)
  return token.setIssuedAt().setExpirationTime('1h').sign(privateKey)
}

const remote = createRemoteJWKSet(new URL(url))
const check = auth({ issuer: url, jwksUri: url, audience, tokenSigningAlg: 'RS256' })
const receivers = {
  jose: (token) => jwtVerify(token, remote, { issuer: url, audience }).catch((error) => error.code),
  'express-oauth2-jwt-bearer': (token) =>
    new Promise((resolve) => {
      const headers = { authorization: `Bearer ${token}`, host: 'receiver.example' }
      const get = (name) => headers[name.toLowerCase()]
      const request = { headers, get, method: 'POST', url: '/', originalUrl: '/', protocol: 'https', query: {} }
      check({ ...request, is: () => false }, {}, (error) => resolve(error && `${error.code} ${error.status}`))
    }),
}

const first = await makeToken('first')
for (const [name, verify] of Object.entries(receivers)) {
  const said = await verify(first)
  if (typeof said === 'string') throw new Error(`${name} rejects the first token: ${said}`)
}
const second = await makeToken('second')
for (const [name, verify] of Object.entries(receivers)) console.log(`${name}: ${await verify(second)}`)
console.log(`key set fetched ${fetches} times, once by each`)
server.close()
JS
node verify.mjs | tee seen

diff seen - <<'SEEN'
jose: ERR_JWKS_NO_MATCHING_KEY
express-oauth2-jwt-bearer: invalid_token 401
key set fetched 2 times, once by each
SEEN
echo 'as described'
