import t from 'tap'
import { clientOf } from '../../bridge-https/forwarded.ts'
import { createNetworks } from '../../listener/networks.ts'
import { between, words } from '../words.ts'

const isTrusted = createNetworks(['10.0.0.0/8', '2001:db8:ffff::/48'])
const proxy = '10.0.0.1'

function addressBy(
  headers: { list?: string | string[]; forwarded?: string | string[] },
  peer = proxy,
): string {
  const { list, forwarded } = headers
  const headersDistinct = {
    ...(list !== undefined && { 'x-forwarded-for': [list].flat() }),
    ...(forwarded !== undefined && { forwarded: [forwarded].flat() }),
  }
  return clientOf({ headersDistinct }, peer, isTrusted).address
}

t.test('X-Forwarded-For is read backwards, up to the first address that is no proxy of ours', async (t) => {
  const table: [list: string | string[], client: string][] = [
    ['192.0.2.7', '192.0.2.7'],
    ['203.0.113.66, 192.0.2.7', '192.0.2.7'],
    ['203.0.113.66,192.0.2.7 , 10.1.1.1,\t10.2.2.2', '192.0.2.7'],
    [['203.0.113.66', '192.0.2.7', '10.1.1.1'], '192.0.2.7'],
    ['192.0.2.7:50123', '192.0.2.7'],
    ['2001:DB8:0::1', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['192.0.2.7, 2001:db8:ffff::9', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['192.0.2.7, ::ffff:10.1.1.1', '192.0.2.7'],
    ['10.3.3.3, 10.2.2.2', '10.3.3.3'],
  ]
  for (const [list, client] of table) t.equal(addressBy({ list }), client, String(list))
})

t.test('Forwarded is read in the same way', async (t) => {
  const table: [forwarded: string | string[], client: string][] = [
    ['for=192.0.2.7', '192.0.2.7'],
    ['For="192.0.2.7:4711"', '192.0.2.7'],
    ['for="192.0.2.7:_port"', '192.0.2.7'],
    ['for=192.0.2.7:4711', '192.0.2.7'],
    ['by=_a;host="a,b;for=1.2.3.4";FOR="[2001:db8:cafe::17]:4711";proto=https', '2001:db8:cafe::17'],
    ['for="2001:db8:cafe::17"', '2001:db8:cafe::17'],
    ['for="192\\.0.2.7"', '192.0.2.7'],
    ['for=203.0.113.66, for=192.0.2.7;by=10.0.0.9 , proto=http;for=10.1.1.1', '192.0.2.7'],
    [['for="', 'for=192.0.2.7'], '192.0.2.7'],
    [['for=203.0.113.66', 'for=192.0.2.7'], '192.0.2.7'],
    ['for=192.0.2.7;', '192.0.2.7'],
  ]
  for (const [forwarded, client] of table) t.equal(addressBy({ forwarded }), client, String(forwarded))
})

t.test('what is no address ends the way, and the proxy that said it counts', async (t) => {
  for (const junk of [
    ...[
      '',
      ...words(`
        unknown _hidden 192.0.2 192.0.2.256 192.0.2.07 0x7f.1 1 unix: a.example
      `),
    ],
    ...['192.0.2.7:', '192.0.2.7:x', '192.0.2.7:123456', '[192.0.2.7]', '[2001:db8::1', '2001:db8::1]', '[]'],
    ...between(`
      fe80::1%eth0 | [fe80::1%1] | 192.0.2.7 192.0.2.8 | 192.0.2.7; | ::1:: | __proto__ | / | 192.0.2.7/32
    `),
  ]) {
    t.equal(addressBy({ list: `203.0.113.66, ${junk}` }), proxy, junk)
    t.equal(addressBy({ list: `203.0.113.66, ${junk}, 10.1.1.1` }), '10.1.1.1', junk)
    t.equal(addressBy({ forwarded: `for=203.0.113.66, for="${junk}"` }), proxy, junk)
  }
  for (const junk of [
    ...between(`
      for="192.0.2.7 | "for=192.0.2.7" | for | for= | =192.0.2.7 | for = 192.0.2.7 | 192.0.2.7 | by=10.0.0.1
    `),
    ...[
      'for=192.0.2.7;for=203.0.113.66',
      'for=192.0.2.7;FOR="203.0.113.66"',
      'for=1.2.3.4 for=192.0.2.7',
      '',
      ',',
      ';',
    ],
  ])
    t.equal(addressBy({ forwarded: junk }), proxy, junk)
})

t.test('a client cannot choose its address', async (t) => {
  t.equal(
    addressBy({ list: '203.0.113.66', forwarded: 'for=203.0.113.66' }, '192.0.2.7'),
    '192.0.2.7',
    'no proxy',
  )
  t.equal(
    addressBy({ list: '203.0.113.66' }, '::ffff:10.0.0.1'),
    '203.0.113.66',
    'a proxy on a socket for both families',
  )
  // Its proxy writes one header, and the client sent the other one.
  t.equal(addressBy({ list: '192.0.2.7', forwarded: 'for=203.0.113.66' }), proxy)
  t.equal(addressBy({ list: '203.0.113.66', forwarded: 'for=192.0.2.7' }), proxy)
  t.equal(addressBy({ list: '192.0.2.7', forwarded: 'for="' }), proxy)
  t.equal(addressBy({ list: '192.0.2.7', forwarded: 'for=192.0.2.7' }), '192.0.2.7', 'both agree')
  t.equal(addressBy({ list: `${'1.2.3.4, '.repeat(1_000)}192.0.2.7` }), '192.0.2.7')
  t.equal(addressBy({ forwarded: `for="${'\\'.repeat(16_000)}` }), proxy)
  t.equal(addressBy({}), proxy, 'no header')
})
