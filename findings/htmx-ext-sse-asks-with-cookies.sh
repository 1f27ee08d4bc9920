#!/usr/bin/env bash
# Software: htmx-ext-sse 2.2.4 and htmx.org 2.0.8 (npm), in Chromium (Debian chromium-headless-shell 156.0.8078.108-1~deb12u1)
# Behaviour: `sse-connect` asks with credentials, without a setting in HTML for it. A browser then takes no answer that permits every
#   origin (`Access-Control-Allow-Origin: *`): the page gets no event, shows nothing of the failure, and asks again and again.
#   `htmx.createEventSource` of one's own mends it. `sse-swap` writes the data into the page as HTML, JSON with all its marks.
# Seen: 2026-11-30, a stream of another origin
#   as it is: 0 events, shows: nothing, asked again
#   with createEventSource: 1 events, shows: {"event":{"title":"Salt"}}
# Hub: its streams permit every origin, without credentials, so such a page stays empty: docs/reading.md, "With a library"
# Source: htmx-ext-sse 2.2.4, sse.js, createEventSource; https://fetch.spec.whatwg.org/#cors-protocol-and-credentials
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' chromium-headless-shell)
echo "chromium-headless-shell $version"
[ "$version" = 156.0.8078.108-1~deb12u1 ]

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts htmx.org@2.0.8 htmx-ext-sse@2.2.4

cat >look.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const files = {
  '/htmx.js': readFileSync('node_modules/htmx.org/dist/htmx.js'),
  '/sse.js': readFileSync('node_modules/htmx-ext-sse/dist/sse.js'),
}
const own = '<script>htmx.createEventSource = (url) => new EventSource(url)</script>'
let asked = 0
let told

const streams = await listen((request, response) => {
  asked++
  response.writeHead(200, { 'content-type': 'text/event-stream', 'access-control-allow-origin': '*' })
  response.write('event: playing\ndata: {"event":{"title":"Salt"}}\n\n')
})
const pages = await listen(({ url }, response) => {
  if (url.startsWith('/told?')) told(decodeURIComponent(url.slice('/told?'.length)))
  response.setHeader('content-type', url.endsWith('.js') ? 'text/javascript' : 'text/html')
  response.end(files[url] ?? page(url === '/own' ? own : ''))
})

async function listen(answer) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

function page(script) {
  return `<!doctype html><script src="/htmx.js"></script><script src="/sse.js"></script>${script}
    <div hx-ext="sse" sse-connect="http://127.0.0.1:${streams}/stream"><p id="now" sse-swap="playing">nothing</p></div>
    <script>
      let events = 0
      document.addEventListener('htmx:sseMessage', () => events++)
      const tell = () => fetch('/told?' + encodeURIComponent(events + ' events, shows: ' + now.textContent))
      setTimeout(tell, 4000)
    </script>`
}

/** What a page tells after four seconds. */
async function look(path) {
  asked = 0
  const telling = new Promise((resolve) => (told = resolve))
  const url = `http://127.0.0.1:${pages}${path}`
  const options = ['--no-sandbox', '--remote-debugging-port=0', '--user-data-dir=profile']
  // Debian's command is a shell that waits for the browser: timeout ends both.
  const browser = spawn('timeout', ['20', 'chromium-headless-shell', ...options, url], { stdio: 'ignore' })
  const said = await telling
  browser.kill()
  await once(browser, 'exit')
  return said
}

console.log(`as it is: ${await look('/')}${asked > 1 ? ', asked again' : ''}`)
console.log(`with createEventSource: ${await look('/own')}`)
process.exit()
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
as it is: 0 events, shows: nothing, asked again
with createEventSource: 1 events, shows: {"event":{"title":"Salt"}}
SEEN
echo 'as described'
