#!/usr/bin/env bash
# Software: ModSecurity 2.9.7 (Debian libapache2-mod-security2 2.9.7-1+deb12u2) with its recommended configuration switched on, and the Core Rule
#   Set 3.3.4 (Debian modsecurity-crs 3.3.4-1+deb12u3) as it is installed; Apache 2.4.71 (Debian apache2-bin 2.4.71-1~deb12u1)
# Behaviour: A body of JSON with more than 131,072 bytes is a 413, though other bodies may have 13 MB. Titles that look like a call, a path or
#   a word of SQL are a 403. A push of a webhook has its event in base64, in which the rules see nothing.
# Seen: 2026-11-30
#   event, Ebbe und Flut: 201
#   event, Sleep (5): 403
#   event, Union Select: 403
#   event, $(Love): 403
#   push, Union Select: 201
#   push of 132 kB: 413
#   own limit and exclusion: event, Union Select: 201
#   own limit and exclusion: push of 132 kB: 201
# Hub: in front of a hub it loses events by their titles; in front of a receiver a large push comes again and again, until it is a dead letter:
#   docs/deployment.md, "Behind a proxy", and docs/webhooks.md, "How large it is"
# Source: /etc/modsecurity/modsecurity.conf-recommended, SecRequestBodyNoFilesLimit; rules 932130, 942100 and others of the
#   Core Rule Set
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

for package in 'libapache2-mod-security2 2.9.7-1+deb12u2' 'modsecurity-crs 3.3.4-1+deb12u3' 'apache2-bin 2.4.71-1~deb12u1'; do
  echo "$package"
  [ "$(dpkg-query -W -f '${Package} ${Version}' "${package% *}")" = "$package" ]
done

cat >look.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createPort } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const folder = process.cwd()
const behind = createServer((request, response) => request.resume().on('end', () => response.writeHead(201).end()))
behind.listen(0, '127.0.0.1')
await once(behind, 'listening')

/** Apache in front of the server, with further directives before the rules. */
async function start(name, directives = '') {
  const place = createPort().listen(0, '127.0.0.1')
  await once(place, 'listening')
  const { port } = place.address()
  place.close()
  const recommended = readFileSync('/etc/modsecurity/modsecurity.conf-recommended', 'utf8')
    .replace(/^SecRuleEngine .*/m, 'SecRuleEngine On')
    .replace(/^SecAuditEngine .*/m, 'SecAuditEngine Off')
    .replace(/^SecAuditLog .*/m, `SecAuditLog ${folder}/${name}.audit`)
    .replace('unicode.mapping', '/etc/modsecurity/unicode.mapping')
  const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'unique_id', 'security2']
  const loads = modules.map((one) => `LoadModule ${one}_module /usr/lib/apache2/modules/mod_${one}.so`)
  writeFileSync(`${name}.recommended`, recommended)
  const lines = [
    `ServerRoot ${folder}`, `PidFile ${folder}/${name}.pid`, `Mutex file:${folder} default`, `ErrorLog ${folder}/${name}.log`,
    'ServerName localhost', `Listen 127.0.0.1:${port}`, ...loads, `SecDataDir ${folder}`, `Include ${folder}/${name}.recommended`,
    directives, 'Include /usr/share/modsecurity-crs/owasp-crs.load', `ProxyPass / http://127.0.0.1:${behind.address().port}/`,
  ]
  writeFileSync(`${name}.conf`, `${lines.join('\n')}\n`)
  const apache = spawn('apache2', ['-X', '-f', `${folder}/${name}.conf`], { stdio: 'inherit' })
  process.on('exit', () => apache.kill())
  const post = async (path, body) => {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer x.y.z' }
    const { status } = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return status
  }
  for (let tries = 0; ; tries++) {
    try {
      await post('/', {})
      return { post, end: () => apache.kill() }
    } catch (error) {
      if (tries > 100) throw error
      await pause(100)
    }
  }
}

const eventOf = (title, more = {}) => ({ type: 'music', start: '2026-01-31T12:00:00+01:00', length: 214, title, ...more })
const pushOf = (event) => {
  const data = Buffer.from(JSON.stringify(event)).toString('base64')
  return { message: { data, attributes: { event: 'de.org.hub.v1.radio.track.playing' }, messageId: '1' }, subscription: 's' }
}
const path = '/events/de.org.hub.v1.radio.track.playing'
const large = pushOf(eventOf('Ebbe und Flut', { description: 'x '.repeat(49_500) }))

const installed = await start('installed')
for (const title of ['Ebbe und Flut', 'Sleep (5)', 'Union Select', '$(Love)'])
  console.log(`event, ${title}: ${await installed.post(path, eventOf(title))}`)
console.log(`push, Union Select: ${await installed.post('/hook', pushOf(eventOf('Union Select')))}`)
const size = `${Math.round(JSON.stringify(large).length / 1000)} kB`
console.log(`push of ${size}: ${await installed.post('/hook', large)}`)
installed.end()

const changed = await start('changed', `SecRequestBodyNoFilesLimit 1000000
SecRule REQUEST_URI "@beginsWith /events/" "id:1000,phase:1,pass,nolog,ctl:ruleRemoveTargetByTag=OWASP_CRS;ARGS"`)
console.log(`own limit and exclusion: event, Union Select: ${await changed.post(path, eventOf('Union Select'))}`)
console.log(`own limit and exclusion: push of ${size}: ${await changed.post('/hook', large)}`)
changed.end()
process.exit()
JS
timeout 50 node look.mjs | tee seen
diff seen - <<'SEEN'
event, Ebbe und Flut: 201
event, Sleep (5): 403
event, Union Select: 403
event, $(Love): 403
push, Union Select: 201
push of 132 kB: 413
own limit and exclusion: event, Union Select: 201
own limit and exclusion: push of 132 kB: 201
SEEN
echo 'as described'
