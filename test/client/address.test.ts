import t from 'tap'
import { addressOf } from '../../client/address.ts'

t.test('mqtt.js gets host, port and path of a URL', async (t) => {
  for (const [url, protocol, hostname, port, path] of [
    ['mqtts://hub.example:8884', 'mqtts', 'hub.example', 8884, ''],
    ['mqtts://HUB.example', 'mqtts', 'hub.example', 0, ''],
    ['mqtts://hub.example:443', 'mqtts', 'hub.example', 443, ''],
    ['mqtts://[2001:DB8::1]:8883', 'mqtts', '2001:db8::1', 8883, ''],
    ['mqtts://köln.example', 'mqtts', 'xn--kln-sna.example', 0, ''],
    ['wss://hub.example/mqtt', 'wss', 'hub.example', 0, '/mqtt'],
    ['wss://[2001:db8::1]:8443/a/mqtt?b=c', 'wss', '[2001:db8::1]', 8443, '/a/mqtt?b=c'],
    ['wss://köln.example:8443', 'wss', 'xn--kln-sna.example', 8443, '/'],
  ] as const)
    t.strictSame(addressOf(url), { protocol, hostname, port, path }, url)
})
