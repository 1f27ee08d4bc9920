#!/usr/bin/env bash
# Software: google-auth-library 10.5.0 (npm)
# Behaviour: OAuth2Client.verifyIdToken accepts the keys and the issuer of its own cloud only. A genuine token of another
#   issuer is rejected, also when the library is given that issuer's certificate, unless issuers are set as well: options
#   of the client that the quick starts of push receivers do not have.
# Seen: 2026-11-28
#   its own certificates: No pem found for envelope
#   our certificate: Invalid issuer
# Hub: A receiver from such a quick start rejects every push, and answers 204, which acknowledges it: docs/webhooks.md,
#   "Coming from the cloud service that pushed before".
# Source: src/auth/oauth2client.ts, verifySignedJwtWithCertsAsync
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts google-auth-library@10.5.0 jose@6.2.17

cat >verify.mjs <<'JS'
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { OAuth2Client } from 'google-auth-library'
import { SignJWT } from 'jose'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const audience = 'https://receiver.example/'
const idToken = await new SignJWT({ email: 'publisher@hub.example', email_verified: true })
  .setProtectedHeader({ alg: 'RS256', kid: 'ours', typ: 'JWT' })
  .setIssuer('https://hub.example')
  .setAudience(audience)
  .setIssuedAt()
  .setExpirationTime('1h')
  .sign(privateKey)

// Stands for the certificates of the cloud, which the library asks for at an address of its own.
let certificates = { theirs: publicKey.export({ type: 'spki', format: 'pem' }) }
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(certificates))
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))

for (const [what, kid] of [
  ['its own certificates', 'theirs'],
  ['our certificate', 'ours'],
]) {
  certificates = { [kid]: certificates.theirs ?? certificates.ours }
  const oauth2FederatedSignonPemCertsUrl = `http://127.0.0.1:${server.address().port}/`
  const client = new OAuth2Client({ endpoints: { oauth2FederatedSignonPemCertsUrl } })
  const said = await client.verifyIdToken({ idToken, audience }).then(
    () => 'accepted',
    (error) => error.message.split(/[:,]/)[0],
  )
  console.log(`${what}: ${said}`)
}
server.close()
JS
node verify.mjs | tee seen

diff seen - <<'SEEN'
its own certificates: No pem found for envelope
our certificate: Invalid issuer
SEEN
echo 'as described'
