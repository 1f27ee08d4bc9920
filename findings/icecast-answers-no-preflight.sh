#!/usr/bin/env bash
# Software: Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1), icecast-metadata-player 1.17.13 (npm) in Chromium (Debian)
# Behaviour: A page gets titles only where it asks for them with the header Icy-MetaData, and a browser asks a server of another origin
#   for leave first, with OPTIONS. Icecast closes such a connection without an answer, also where its <http-headers> permit the
#   header. The player then has neither title nor sound, and gives up. Without the header it has sound. Behind a proxy that
#   answers OPTIONS itself it has both.
# Seen: 2026-11-30
#   OPTIONS: no answer
#   Icecast: no sound, no title
#   Icecast, without titles: sound, no title
#   Icecast behind a proxy: sound, title Mira Hollund - Ebbe
# Hub: the titles of the output icecast do not reach the player of the station's own page: docs/outputs.md, "What players show"
# Source: icecast 2.4.4, src/connection.c, _handle_connection, and src/httpp/httpp.c, httpp_parse, which knows no OPTIONS; Fetch Standard,
#   "CORS-preflight fetch"; README of icecast-metadata-player, "Warning messages"
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

version=$(dpkg-query -W -f '${Version}' icecast2)
echo "icecast2 $version"
[ "$version" = 2.4.4-4+b1 ]
chromium --version 2>/dev/null
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts icecast-metadata-player@1.17.13

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >icecast.xml <<XML
<icecast>
  <authentication><source-password>source</source-password>
    <admin-user>admin</admin-user><admin-password>admin</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>$port</port><bind-address>127.0.0.1</bind-address></listen-socket>
  <http-headers>
    <header name="Access-Control-Allow-Origin" value="*"/>
    <header name="Access-Control-Allow-Methods" value="GET, OPTIONS"/>
    <header name="Access-Control-Allow-Headers" value="Icy-MetaData"/>
    <header name="Access-Control-Expose-Headers" value="Icy-MetaInt"/>
  </http-headers>
  <paths><logdir>$folder</logdir><webroot>/usr/share/icecast2/web</webroot>
    <adminroot>/usr/share/icecast2/admin</adminroot></paths>
  <logging><loglevel>1</loglevel></logging>
</icecast>
XML
# It does not run as root.
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_user[@]}" /usr/bin/icecast2 -c "$folder/icecast.xml" >/dev/null 2>&1 &
server=$!

cat >look.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const icecast = Number(process.argv[2])
const login = (text) => `Basic ${Buffer.from(text).toString('base64')}`
const folder = 'node_modules/icecast-metadata-player/build'
const library = readFileSync(`${folder}/${readdirSync(folder).find((name) => name.endsWith('.main.min.js'))}`)

const inFolder = { ...process.env, HOME: process.cwd(), TMPDIR: process.cwd(), XDG_RUNTIME_DIR: process.cwd() }

async function opened() {
  for (;;) {
    const socket = connect(icecast, '127.0.0.1')
    if (await once(socket, 'connect').catch(() => undefined)) return socket
    await pause(100)
  }
}

async function listening(answer) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

// A source that sends silence, as MP3.
const source = await opened()
source.on('error', () => {})
source.write(`SOURCE /live.mp3 HTTP/1.0\r\nAuthorization: ${login('source:source')}\r\nContent-Type: audio/mpeg\r\n\r\n`)
await once(source, 'data')
const frame = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(413)])
setInterval(() => source.write(frame), 26)
const update = new URLSearchParams({ mode: 'updinfo', mount: '/live.mp3', song: 'Mira Hollund - Ebbe' })
await fetch(`http://127.0.0.1:${icecast}/admin/metadata?${update}`, { headers: { authorization: login('admin:admin') } })

const asked = await opened()
asked.write('OPTIONS /live.mp3 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://page.example\r\n' +
  'Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: icy-metadata\r\n\r\n')
let answer = ''
asked.on('data', (bytes) => (answer += bytes)).on('error', () => {})
await once(asked, 'close')
console.log(`OPTIONS: ${answer.split('\r\n')[0] || 'no answer'}`)

const proxy = await listening((asking, answering) => {
  if (asking.method === 'OPTIONS') {
    answering.writeHead(204, { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'Icy-MetaData' }).end()
    return
  }
  const { method, url, headers } = asking
  request({ port: icecast, host: '127.0.0.1', method, path: url, headers }, (got) => {
    answering.writeHead(got.statusCode, got.headers)
    got.pipe(answering)
  }).on('error', () => answering.destroy()).end()
})

/** What a page of another origin has of the mount, as soon as it plays or has given up. */
async function shown(port, types) {
  const page = `<!doctype html><audio id="audio"></audio><script src="/library.js"></script><script>
    const tell = (text) => fetch('/told', { method: 'POST', body: text })
    const audioElement = document.getElementById('audio')
    const player = new IcecastMetadataPlayer('http://127.0.0.1:${port}/live.mp3', { audioElement, retryTimeout: 3,
      metadataTypes: ${JSON.stringify(types)}, onMetadata: ({ StreamTitle }) => tell('title ' + StreamTitle),
      onPlay: () => tell('sound'), onStop: () => tell('stop') })
    player.play()
  </script>`
  const told = []
  let complete
  const over = new Promise((resolve) => (complete = resolve))
  const own = await listening(async (asking, answering) => {
    if (asking.url === '/told') {
      told.push(await new Response(asking).text())
      if (told.includes('stop') || (told.includes('sound') && (types.length === 0 || told.length > 1))) complete()
      answering.end()
    } else if (asking.url === '/library.js') answering.setHeader('content-type', 'text/javascript').end(library)
    else answering.setHeader('content-type', 'text/html').end(page)
  })
  const browser = spawn('chromium', ['--headless=new', '--no-sandbox', '--disable-gpu', `--user-data-dir=${process.cwd()}/profile`,
    '--autoplay-policy=no-user-gesture-required', `http://127.0.0.1:${own}/`], { stdio: 'ignore', detached: true, env: inFolder })
  await Promise.race([over, pause(20_000)])
  const gone = once(browser, 'exit')
  process.kill(-browser.pid)
  await gone
  return `${told.includes('sound') ? 'sound' : 'no sound'}, ${told.find((one) => one.startsWith('title')) ?? 'no title'}`
}

console.log(`Icecast: ${await shown(icecast, ['icy'])}`)
console.log(`Icecast, without titles: ${await shown(icecast, [])}`)
console.log(`Icecast behind a proxy: ${await shown(proxy, ['icy'])}`)
process.exit()
JS
timeout 100 node look.mjs "$port" | tee seen
diff seen - <<'SEEN'
OPTIONS: no answer
Icecast: no sound, no title
Icecast, without titles: sound, no title
Icecast behind a proxy: sound, title Mira Hollund - Ebbe
SEEN
echo 'as described'
