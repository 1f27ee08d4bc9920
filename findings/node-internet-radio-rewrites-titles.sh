#!/usr/bin/env bash
# Software: node-internet-radio 0.2.1 (npm) as a reader of Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1)
# Behaviour: from a stream it takes a text with ", The -" apart at its commas: what follows a comma of the title is lost. Its way ICECAST
#   refuses each status-json.xsl of Icecast, because that is no text/xml.
# Seen: 2026-11-30, of the titles "Wellen - Ebbe, Flut" and "Wellen, The - Ebbe, Flut"
#   STREAM: Wellen - Ebbe, Flut
#   STREAM: The Wellen - Ebbe
#   ICECAST: Not valid metadata
# Hub: an app shows less than the output icecast sent: docs/outputs.md, "What players show"
# Source: node-internet-radio, lib/utils.js, fixTrackTitle; lib/icecast.js, getIcecastStation
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

version=$(dpkg-query -W -f '${Version}' icecast2)
echo "icecast2 $version"
[ "$version" = 2.4.4-4+b1 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts node-internet-radio@0.2.1

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >icecast.xml <<XML
<icecast>
  <limits><burst-size>0</burst-size></limits>
  <authentication><source-password>source</source-password>
    <admin-user>admin</admin-user><admin-password>admin</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>$port</port><bind-address>127.0.0.1</bind-address></listen-socket>
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
for _ in $(seq 100); do
  curl -s "http://127.0.0.1:$port/" >/dev/null && break
  sleep 0.1
done

cat >read.mjs <<'JS'
import { once } from 'node:events'
import { connect } from 'node:net'
import radio from 'node-internet-radio'

const port = process.argv[2]
const basic = (user) => `Basic ${Buffer.from(user).toString('base64')}`
// A silent frame of MPEG 1, layer 3: 64 kbit/s, 44.1 kHz, mono.
const frame = Buffer.concat([Buffer.from([0xff, 0xfb, 0x50, 0xc4]), Buffer.alloc(204)])
const source = connect(port, '127.0.0.1')
source.write(`SOURCE /live.mp3 HTTP/1.0\r\nAuthorization: ${basic('source:source')}\r\nContent-Type: audio/mpeg\r\n\r\n`)
await once(source, 'data')
setInterval(() => source.write(Buffer.concat(Array(20).fill(frame))), 50)

function shown(way) {
  return new Promise((resolve) => {
    radio.getStationInfo(`http://127.0.0.1:${port}/live.mp3`, (error, station) => resolve(error?.message ?? station.title), way)
  })
}
for (const song of ['Wellen - Ebbe, Flut', 'Wellen, The - Ebbe, Flut']) {
  const query = new URLSearchParams({ mode: 'updinfo', mount: '/live.mp3', song })
  const answer = await fetch(`http://127.0.0.1:${port}/admin/metadata?${query}`, { headers: { authorization: basic('admin:admin') } })
  if (!/successful/.test(await answer.text())) throw new Error('Icecast did not take the title')
  console.log(`STREAM: ${await shown(radio.StreamSource.STREAM)}`)
}
console.log(`ICECAST: ${await shown(radio.StreamSource.ICECAST)}`)
process.exit()
JS
timeout 50 node read.mjs "$port" 2>/dev/null | tee seen
diff seen - <<'SEEN'
STREAM: Wellen - Ebbe, Flut
STREAM: The Wellen - Ebbe
ICECAST: Not valid metadata
SEEN
echo 'as described'
