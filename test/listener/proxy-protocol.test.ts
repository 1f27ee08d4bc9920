import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
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

const version1 = (text: string) => Buffer.from(`PROXY ${text}\r\n`)
/** Extensions (TLVs) of this many bytes together, as hexadecimal digits. */
const extensions = (bytes: number) =>
  `05${(bytes - 3).toString(16).padStart(4, '0')}${'61'.repeat(bytes - 3)}`
const ipv4 = `c0000207c0000201${ports}`
const ipv6 = `20010db8${'00'.repeat(11)}01${'00'.repeat(16)}${ports}`

t.test('headers of both versions', async (t) => {
  const table: [what: string, bytes: Buffer, expected: unknown][] = [
    [
      'v1 TCP4',
      Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.1 5000 8883\r\nrest'),
      { length: 42, address: '192.0.2.7' },
    ],
    ['v1 TCP6', version1('TCP6 2001:db8::1 2001:db8::2 5000 8883'), { length: 46, address: '2001:db8::1' }],
    ['v1 ports', version1('TCP4 192.0.2.7 192.0.2.1 0 65535'), { length: 40, address: '192.0.2.7' }],
    ['v1 UNKNOWN', version1('UNKNOWN'), { length: 15, address: undefined }],
    ['v1 UNKNOWN and more', version1('UNKNOWN <script> 1'), { length: 26, address: undefined }],
    ['v1 so far', Buffer.from('PROXY TCP4 192.'), 'incomplete'],
    ['v2 IPv4', version2(0x21, 0x11, ipv4), { length: 28, address: '192.0.2.7' }],
    ['v2 IPv6', version2(0x21, 0x21, ipv6), { length: 52, address: '2001:db8:0:0:0:0:0:1' }],
    ['v2 with extensions', version2(0x21, 0x11, `${ipv4}04000101`), { length: 32, address: '192.0.2.7' }],
    ['v2 LOCAL', version2(0x20, 0, ''), { length: 16, address: undefined }],
    ['v2 LOCAL with an address', version2(0x20, 0x11, ipv4), { length: 28, address: undefined }],
    ['v2 LOCAL of any family', version2(0x20, 0xff, 'ff'), { length: 17, address: undefined }],
    ['v2 of no family', version2(0x21, 0, '0102'), { length: 18, address: undefined }],
    ['v2 so far', version2(0x21, 0x11, ipv4).subarray(0, 20), 'incomplete'],
    ['v2 without its extensions', version2(0x21, 0x11, `${ipv4}04000101`).subarray(0, 28), 'incomplete'],
    [
      'v2 as long as may be',
      version2(0x21, 0x11, ipv4 + extensions(4068)),
      { length: 4096, address: '192.0.2.7' },
    ],
    ['nothing yet', Buffer.alloc(0), 'incomplete'],
  ]
  for (const [what, bytes, expected] of table) t.same(parseProxyHeader(bytes), expected, what)
})

t.test('a header that is not wholly right is refused, with what was expected', async (t) => {
  const addresses = /expected two addresses of the family TCP[46]$/
  const family = /expected the family TCP4, TCP6 or UNKNOWN$/
  const port = /expected two ports from 0 to 65535$/
  const lineEnd = /expected a line end within 107 bytes$/
  const table: [bytes: Buffer, problem: RegExp][] = [
    [Buffer.from('160301', 'hex'), /^no PROXY header$/],
    [Buffer.from('proxy TCP4'), /^no PROXY header$/],
    [Buffer.from(`PROXY TCP4 ${'1'.repeat(100)}`), lineEnd],
    [version1(`UNKNOWN ${'1'.repeat(100)}`), lineEnd],
    [Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.1 5000 8883\n'.padEnd(200, 'x')), lineEnd],
    [version1('UDP4 192.0.2.7 192.0.2.1 1 2'), family],
    [version1(''), family],
    [version1('TCP5 192.0.2.7 192.0.2.1 1 2'), family],
    [version1('tcp4 192.0.2.7 192.0.2.1 1 2'), family],
    [version1('constructor 192.0.2.7 192.0.2.1 1 2'), family],
    [version1(' TCP4 192.0.2.7 192.0.2.1 1 2'), family],
    [version1('TCP4 <script>alert(1)</script> 192.0.2.1 1 2'), addresses],
    [version1('TCP4 192.0.2.7'), addresses],
    [version1('TCP4 192.0.2.7 <script> 1 2'), addresses],
    [version1('TCP4 2001:db8::1 2001:db8::2 1 2'), addresses],
    [version1('TCP6 192.0.2.7 192.0.2.1 1 2'), addresses],
    [version1('TCP4 192.0.2.07 192.0.2.1 1 2'), addresses],
    [version1('TCP4 192.0.2.256 192.0.2.1 1 2'), addresses],
    [version1('TCP4 192.0.519 192.0.2.1 1 2'), addresses],
    [version1('TCP4 192.0.2.7  192.0.2.1 1 2'), addresses],
    [version1('TCP6 fe80::1%eth0 fe80::2 1 2'), addresses],
    [version1('TCP4 192.0.2.7 192.0.2.1'), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 1'), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 1 2 3'), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 1 2 '), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 1 65536'), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 01 2'), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 -1 2'), port],
    [version1('TCP4 192.0.2.7 192.0.2.1 1e3 2'), port],
    [version2(0x31, 0x11, ipv4), /expected version 2, not 3$/],
    [version2(0x22, 0x11, ipv4), /expected the command LOCAL or PROXY, not 2$/],
    [version2(0x2f, 0x11, ipv4), /expected the command LOCAL or PROXY, not 15$/],
    [version2(0x21, 0x12, ipv4), /expected TCP over IPv4 or IPv6, not family 18$/],
    [version2(0x21, 0x31, '00'.repeat(216)), /expected TCP over IPv4 or IPv6, not family 49$/],
    [version2(0x21, 0x01, ipv4), /expected TCP over IPv4 or IPv6, not family 1$/],
    [version2(0x21, 0xff, ipv4), /expected TCP over IPv4 or IPv6, not family 255$/],
    [version2(0x21, 0x11, ipv4.slice(2)), /expected 12 bytes of addresses, not 11$/],
    [version2(0x21, 0x11, ''), /expected 12 bytes of addresses, not 0$/],
    [version2(0x21, 0x21, ipv4), /expected 36 bytes of addresses, not 12$/],
    [version2(0x21, 0x11, ipv4 + extensions(4069)), /expected at most 4096 bytes, not 4097$/],
    [version2(0x20, 0, extensions(5000)).subarray(0, 16), /expected at most 4096 bytes, not 5016$/],
  ]
  for (const [bytes, expected] of table) {
    const header = parseProxyHeader(bytes)
    t.match(header, { problem: expected }, bytes.toString('latin1', 0, 80))
  }
})

t.test('a header may have long extensions, whether they come at once or in pieces', async (t) => {
  const hub = await startTestHub(t, { HUB_PROXY_PROTOCOL: 'true' })
  for (const [bytes, isTaken] of [
    [2_000, true],
    [4_068, true],
    [4_069, false],
  ] as const) {
    const header = version2(0x21, 0x11, ipv4 + extensions(bytes))
    for (const pieceBytes of [header.length, 1_000, 16]) {
      const socket = connect({ port: hub.httpsPort, host: '127.0.0.1', noDelay: true })
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
      const closed = new Promise<boolean>((resolve) =>
        socket.on('error', () => undefined).once('close', () => resolve(false)),
      )
      for (let at = 0; at < header.length && !socket.destroyed; at += pieceBytes) {
        socket.write(header.subarray(at, at + pieceBytes))
        // The node, which is in this process, reads the piece meanwhile.
        await immediate()
      }
      const shaken = new Promise<boolean>((resolve) => {
        if (socket.destroyed) return
        const secure = tls.connect({ socket, rejectUnauthorized: false }, () => resolve(true))
        secure.on('error', () => undefined)
      })
      t.equal(await Promise.race([shaken, closed]), isTaken, `${bytes} bytes in pieces of ${pieceBytes}`)
    }
  }
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
  t.ok(hub.lines.some(({ msg }) => String(msg).startsWith('proxyFrom is unset')))
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
    const closed = once(socket, 'close').then(() => Promise.reject(new Error('closed')))
    const [connack]: Buffer[] = await Promise.race([once(secure, 'data'), closed])
    return connack?.[3]
  }
  await t.rejects(logIn('junk'), 'junk is no address, which could be another one each time')
  const codes: unknown[] = []
  for (let host = 1; host <= 4; host++) codes.push(await logIn(`2001:db8:0:1::${host}`))
  t.same(codes, [4, 4, 3, 3], 'the third is not looked at')
  t.equal(await logIn('2001:db8:0:2::1'), 4, 'another network')
})

t.test('only the balancers of proxyFrom may send a header, and nobody else gets in', async (t) => {
  const home = t.testdir({
    'hub.json': JSON.stringify({ proxyProtocol: true, proxyFrom: ['127.0.0.2', '127.0.1.0/24'] }),
  })
  const hub = await startTestHub(t, { HUB_CONFIG: join(home, 'hub.json') })
  const isServed = (localAddress: string, port: number) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    t.teardown(() => socket.destroy())
    socket.write('PROXY TCP4 192.0.2.7 192.0.2.1 5000 8883\r\n')
    return new Promise<boolean>((resolve) => {
      const secure = tls.connect({ socket, rejectUnauthorized: false }, () => resolve(true))
      secure.once('error', () => resolve(false))
      socket.once('close', () => resolve(false))
    })
  }
  for (const port of [hub.mqttPort, hub.httpsPort]) {
    t.equal(await isServed('127.0.0.2', port), true)
    t.equal(await isServed('127.0.1.77', port), true)
    t.equal(await isServed('127.0.0.1', port), false)
  }
  t.match(
    hub.lines.filter(({ msg }) => msg === 'connection refused'),
    [{ reason: 'proxy-header', remoteAddress: '127.0.0.1', detail: 'the address is none of proxyFrom' }],
  )
  t.notOk(hub.lines.some(({ msg }) => String(msg).startsWith('proxyFrom is unset')))
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
