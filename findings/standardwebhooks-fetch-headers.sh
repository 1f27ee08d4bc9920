#!/usr/bin/env bash
# Software: standardwebhooks 1.1.1 and svix 1.99.1 (npm)
# Behaviour: verify() looks for its three header fields among the own keys of the object that it gets. An object of the
#   class Headers, which requests of fetch have (frameworks for edge and serverless programs), has none: a genuine push is
#   refused as one without header fields. The same fields as a plain object are accepted, in lower and in upper case.
# Seen: 2026-11-29, one signed message
#   standardwebhooks: Headers: Missing required headers; plain object: verified
#   svix: Headers: Missing required headers; plain object: verified
# Hub: Whoever passes request.headers on sees each push refused, and looks for a wrong secret: docs/webhooks.md, "Verify a
#   signature".
# Source: standardwebhooks, dist/index.js, verify: Object.keys(headers); svix 1.99.1 brings standardwebhooks 1.0.0
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts standardwebhooks@1.1.1 svix@1.99.1

cat >verify.mjs <<'JS'
import { Webhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const body = '{"title":"Salt on the Window"}'
const time = new Date()
const fields = {
  'webhook-id': '1',
  'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
  'webhook-signature': new Webhook(secret).sign('1', time, body),
}
for (const [name, Verifier] of [['standardwebhooks', Webhook], ['svix', SvixWebhook]]) {
  const said = (headers) => {
    try {
      new Verifier(secret).verify(body, headers)
      return 'verified'
    } catch (error) {
      return error.message
    }
  }
  console.log(`${name}: Headers: ${said(new Headers(fields))}; plain object: ${said(fields)}`)
}
JS
node verify.mjs | tee seen
diff seen - <<'SEEN'
standardwebhooks: Headers: Missing required headers; plain object: verified
svix: Headers: Missing required headers; plain object: verified
SEEN
echo 'as described'
