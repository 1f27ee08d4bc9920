import { once } from 'node:events'
import { connect } from 'node:net'
import tls from 'node:tls'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { parseProxyHeader } from '../../listener/proxy-protocol.ts'
import { startTestHub } from '../start-hub.ts'

const version2 = (command: number, family: number, addresses: string) => {
  const body = Buffer.from(addresses, 'hex')
  const head = Buffer.from(
    `0d0a0d0a000d0a515549540a${command.toString(16)}${family.toString(16).padStart(2, '0')}`,
    'hex',
  )
  return Buffer.concat([head, Buffer.of(body.length >> 8, body.length & 255), body])
}
const ports = '04d2 22b3'.replace(' ', '')

t.test('headers of both versions', async (t) => {
  const table: [what: string, bytes: Buffer, expected: unknown][] = [
    [
      'v1 TCP4',
      Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.1 5000 8883\r\nrest'),
      { length: 42, address: '192.0.2.7' },
    ],
    [
      'v1 TCP6',
      Buffer.from('PROXY TCP6 2001:db8::1 2001:db8::2 5000 8883\r\n'),
      { length: 46, address: '2001:db8::1' },
    ],
    ['v1 UNKNOWN', Buffer.from('PROXY UNKNOWN\r\n'), { length: 15, address: undefined }],
    ['v1 so far', Buffer.from('PROXY TCP4 192.'), 'incomplete'],
    ['v1 without end', Buffer.from(`PROXY TCP4 ${'1'.repeat(100)}`), 'invalid'],
    ['v1 other family', Buffer.from('PROXY UDP4 192.0.2.7 192.0.2.1 1 2\r\n'), 'invalid'],
    ['v2 IPv4', version2(0x21, 0x11, `c0000207c0000201${ports}`), { length: 28, address: '192.0.2.7' }],
    [
      'v2 IPv6',
      version2(0x21, 0x21, `20010db8${'00'.repeat(11)}01${'00'.repeat(16)}${ports}`),
      { length: 52, address: '2001:db8:0:0:0:0:0:1' },
    ],
    ['v2 LOCAL', version2(0x20, 0, ''), { length: 16, address: undefined }],
    ['v2 so far', version2(0x21, 0x11, `c0000207c0000201${ports}`).subarray(0, 20), 'incomplete'],
    ['v2 other version', version2(0x31, 0x11, `c0000207c0000201${ports}`), 'invalid'],
    ['nothing yet', Buffer.alloc(0), 'incomplete'],
    ['TLS', Buffer.from('160301', 'hex'), 'invalid'],
  ]
  for (const [what, bytes, expected] of table) t.same(parseProxyHeader(bytes), expected, what)
})

t.test('behind a load balancer the limits see the client', async (t) => {
  const hub = await startTestHub(t, { HUB_PROXY_PROTOCOL: 'true', HUB_MAX_CONNECTIONS_PER_ADDRESS: '1' })
  const through = (header: string) => {
    const socket = connect(hub.mqttPort, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(header)
    return new Promise<boolean>((resolve) => {
      const secure = tls.connect({ socket, rejectUnauthorized: false }, () => resolve(true))
      secure.once('error', () => resolve(false))
      socket.once('close', () => resolve(false))
    })
  }
  t.equal(await through('PROXY TCP4 192.0.2.7 192.0.2.1 5000 8883\r\n'), true)
  t.equal(await through('PROXY TCP4 192.0.2.8 192.0.2.1 5000 8883\r\n'), true, 'another client')
  t.equal(await through('PROXY TCP4 192.0.2.7 192.0.2.1 5001 8883\r\n'), false, 'the same client again')
  t.equal(await through('hello'), false, 'no header')
  const refused = hub.lines.filter(({ msg }) => msg === 'connection refused')
  t.match(refused, [
    { reason: 'max-connections-per-address', remoteAddress: '192.0.2.7' },
    { reason: 'proxy-header', remoteAddress: '127.0.0.1' },
  ])
})

t.test('behind a load balancer an IPv6 /64 has the failed log-ins of one address', async (t) => {
  const hub = await startTestHub(t, { HUB_PROXY_PROTOCOL: 'true', HUB_LOGIN_FAILURES: '2' })
  const logIn = async (client: string) => {
    const socket = connect(hub.mqttPort, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(`PROXY TCP6 ${client} 2001:db8::2 5000 8883\r\n`)
    const secure = tls.connect({ socket, rejectUnauthorized: false })
    const login = { clientId: 'a', username: 'sub-a-1', password: Buffer.from('wrong') }
    secure.write(generate({ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, ...login }))
    const [connack]: Buffer[] = await once(secure, 'data')
    return connack?.[3]
  }
  const codes: unknown[] = []
  for (let host = 1; host <= 4; host++) codes.push(await logIn(`2001:db8:0:1::${host}`))
  t.same(codes, [4, 4, 3, 3], 'the third is not looked at')
  t.equal(await logIn('2001:db8:0:2::1'), 4, 'another network')
})

t.test('open connections are bounded', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS: '2' })
  const open = () =>
    new Promise<boolean>((resolve) => {
      const socket = tls.connect({ port: hub.mqttPort, host: '127.0.0.1', rejectUnauthorized: false }, () =>
        resolve(true),
      )
      t.teardown(() => socket.destroy())
      socket.once('error', () => resolve(false))
    })
  t.same([await open(), await open(), await open()], [true, true, false])
})
