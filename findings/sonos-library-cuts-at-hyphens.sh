#!/usr/bin/env bash
# Software: @svrooij/sonos 2.5.0 (npm), on which iobroker.sonos depends, beside sonos 1.14.3 (npm); a program below
#   answers as a speaker that plays the mount /live.mp3 of a station
# Behaviour: It cuts the title of a radio stream at each hyphen. Only a text with exactly one becomes artist and title: of any other
#   the beginning is the artist, the rest is lost, and the title is the name of the mount. sonos has the whole text as the title.
# Seen: 2026-11-30
#   Mira Hollund - Ebbe: @svrooij/sonos ["Mira Hollund","Ebbe"], sonos [null,"Mira Hollund - Ebbe"]
#   Jean-Luc Hollund - Ebbe: @svrooij/sonos ["Jean","live.mp3"], sonos [null,"Jean-Luc Hollund - Ebbe"]
#   Mira Hollund - Ebbe - live: @svrooij/sonos ["Mira Hollund","live.mp3"], sonos [null,"Mira Hollund - Ebbe - live"]
#   Nachrichten: @svrooij/sonos ["Nachrichten","live.mp3"], sonos [null,"Nachrichten"]
# Hub: titles of the output icecast, "artist - title" or a title alone, in a display that reads its speakers: docs/outputs.md, "What players
#   show"
# Source: @svrooij/sonos 2.5.0, lib/helpers/metadata-helper.js, ParseDIDLTrack (split('-'))
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @svrooij/sonos@2.5.0 sonos@1.14.3

cat >look.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { SonosDevice } from '@svrooij/sonos'
import sonos from 'sonos'

const inXml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
const stream = 'x-rincon-mp3radio://radio.example/live.mp3'
let playing

const speaker = createServer((asking, answering) => {
  const item = `<DIDL-Lite xmlns="urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/" xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:upnp="urn:schemas-upnp-org:metadata-1-0/upnp/" xmlns:r="urn:schemas-rinconnetworks-com:metadata-1-0/">
    <item id="-1" parentID="-1"><res protocolInfo="x-rincon-mp3radio:*:*:*">${stream}</res>
    <r:streamContent>${inXml(playing)}</r:streamContent><dc:title>live.mp3</dc:title><upnp:class>object.item</upnp:class>
    </item></DIDL-Lite>`
  asking.resume().on('end', () => {
    answering.setHeader('content-type', 'text/xml; charset="utf-8"').end(
      `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
        <u:GetPositionInfoResponse xmlns:u="urn:schemas-upnp-org:service:AVTransport:1"><Track>1</Track>
        <TrackDuration>0:00:00</TrackDuration><TrackMetaData>${inXml(item)}</TrackMetaData><TrackURI>${stream}</TrackURI>
        <RelTime>0:01:00</RelTime></u:GetPositionInfoResponse></s:Body></s:Envelope>`,
    )
  })
}).listen(0, '127.0.0.1')
await once(speaker, 'listening')
const { port } = speaker.address()

for (playing of ['Mira Hollund - Ebbe', 'Jean-Luc Hollund - Ebbe', 'Mira Hollund - Ebbe - live', 'Nachrichten']) {
  const { TrackMetaData } = await new SonosDevice('127.0.0.1', port).AVTransportService.GetPositionInfo()
  const track = await new sonos.Sonos('127.0.0.1', port).currentTrack()
  console.log(`${playing}: @svrooij/sonos ${JSON.stringify([TrackMetaData.Artist, TrackMetaData.Title])}, ` +
    `sonos ${JSON.stringify([track.artist, track.title])}`)
}
process.exit()
JS
node look.mjs | tee seen
diff seen - <<'SEEN'
Mira Hollund - Ebbe: @svrooij/sonos ["Mira Hollund","Ebbe"], sonos [null,"Mira Hollund - Ebbe"]
Jean-Luc Hollund - Ebbe: @svrooij/sonos ["Jean","live.mp3"], sonos [null,"Jean-Luc Hollund - Ebbe"]
Mira Hollund - Ebbe - live: @svrooij/sonos ["Mira Hollund","live.mp3"], sonos [null,"Mira Hollund - Ebbe - live"]
Nachrichten: @svrooij/sonos ["Nachrichten","live.mp3"], sonos [null,"Nachrichten"]
SEEN
echo 'as described'
