#!/usr/bin/env bash
# Software: Caddy 2.6.2 (Debian caddy 2.6.2-5), `encode gzip` before `reverse_proxy`
# Behaviour: Among the types that `encode` compresses by itself is text/event-stream. It compresses a stream whose first piece has more
#   than 512 bytes, and does not flush what it compresses when the proxy flushes: events reach the client when there are enough of
#   them, or when the stream ends. `Cache-Control: no-transform` of the server changes nothing. A client without
#   Accept-Encoding, such as curl, gets each event at once.
# Seen: 2026-11-30, events that had come after 4 s, of four
#   no encode: 4
#   encode: 0
#   encode, no-transform: 0
#   encode, client without Accept-Encoding: 4
#   encode with a match of application/json*: 4
# Hub: a page behind it shows no title, while curl sees them all: docs/deployment.md, "Behind a proxy"
# Source: caddy 2.6.2, modules/caddyhttp/encode/encode.go: responseWriter.Flush, and the types in Provision;
#   https://github.com/caddyserver/caddy/issues/6293
set -euo pipefail

folder=$(mktemp -d)
trap 'kill ${caddy:-} 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' caddy)
echo "caddy $version"
[ "$version" = 2.6.2-5 ]

cat >free.mjs <<'JS'
import { createServer } from 'node:net'

const servers = [1, 2, 3].map(() => createServer().listen(0, '127.0.0.1'))
setTimeout(() => {
  console.log(servers.map((server) => server.address().port).join(' '))
  process.exit()
}, 200)
JS
read -r plain all some <<<"$(node free.mjs)"

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { createGunzip, constants } from 'node:zlib'

const [plain, all, some] = process.argv.slice(2).map(Number)

const event = JSON.stringify({ title: 'Ebbe und Flut', services: Array(5).fill({ externalId: 'crid://kuestenfunk.example/410100/kw1'.repeat(3) }) })

/** Four events, half a second apart; the stream stays open. */
const server = createServer(async ({ url }, response) => {
  const cacheControl = url === '/no-transform' ? 'no-store, no-transform' : 'no-store'
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': cacheControl })
  for (let id = 1; id <= 4; id++) {
    response.write(`event: playing\nid: ${id}\ndata: ${event}\n\n`)
    await pause(500)
  }
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
writeFileSync('port', String(server.address().port))

async function look(name, port, path = '/', headers = { 'accept-encoding': 'gzip' }) {
  let response
  while (!response) {
    const asked = get({ host: '127.0.0.1', port, path, headers })
    response = await once(asked, 'response').then(([answer]) => answer, () => pause(200))
  }
  const isCompressed = response.headers['content-encoding'] === 'gzip'
  const body = isCompressed ? response.pipe(createGunzip({ flush: constants.Z_SYNC_FLUSH })) : response
  let text = ''
  body.setEncoding('utf8').on('data', (piece) => {
    text += piece
  })
  await pause(4000)
  return `${name}: ${text.split('event: playing').length - 1}`
}

const seen = await Promise.all([
  look('no encode', plain),
  look('encode', all),
  look('encode, no-transform', all, '/no-transform'),
  look('encode, client without Accept-Encoding', all, '/', {}),
  look('encode with a match of application/json*', some),
])
console.log(seen.join('\n'))
process.exit()
JS
(
  until [ -s port ]; do sleep 0.1; done
  to="reverse_proxy 127.0.0.1:$(cat port)"
  cat >Caddyfile <<CADDY
{
  admin off
  auto_https off
}
:$plain {
  bind 127.0.0.1
  $to
}
:$all {
  bind 127.0.0.1
  encode gzip
  $to
}
:$some {
  bind 127.0.0.1
  encode {
    gzip
    match {
      header Content-Type application/json*
    }
  }
  $to
}
CADDY
  exec env HOME="$folder" XDG_DATA_HOME="$folder" XDG_CONFIG_HOME="$folder" caddy run --config Caddyfile --adapter caddyfile >out 2>&1
) &
caddy=$!
timeout 30 node look.mjs "$plain" "$all" "$some" | tee seen
diff seen - <<'SEEN'
no encode: 4
encode: 0
encode, no-transform: 0
encode, client without Accept-Encoding: 4
encode with a match of application/json*: 4
SEEN
echo 'as described'
