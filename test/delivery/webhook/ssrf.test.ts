import type { LookupAddress } from 'node:dns'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { guardedLookup } from '../../../delivery/webhook/connection-guard.ts'
import { createWebhooks } from '../../../delivery/webhook/webhook.ts'
import { checkWebhookUrl } from '../../../delivery/webhook/webhook-url.ts'
import { listen } from '../../listen.ts'
import { words } from '../../words.ts'

/*
 * A webhook URL must not lead into the hub's own network. The hub checks this rule at the subscription and at each
 * connection.
 */

/** The addresses to which each name resolves. */
const names: Record<string, string[]> = {
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'compatible.example': ['::7f00:1'],
  'nat64.example': ['64:ff9b::7f00:1'],
  'ten.example': ['10.1.2.3'],
  'metadata.example': ['169.254.169.254'],
  'unique-local.example': ['fd00::1'],
  'link-local.example': ['fe80::1'],
  'both.example': ['10.0.0.1', '127.0.0.1'],
  'nothing.example': ['0.0.0.0'],
}

/** URLs that the hub must refuse. `PORT` stands for the port of the server on loopback. */
const refused = [
  // IPv4, in every notation that a URL parser takes
  ...words(`
    127.0.0.1 127.0.0.1. 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.0.0.0x1
    127.255.255.254 %31%32%37.0.0.1 ①②⑦.⓪.⓪.① １２７.0.0.1 127。0。0。1 0.0.0.0 0 10.0.0.1 172.31.255.255 192.168.1.1
    100.127.0.1 192.0.0.8 192.0.2.1 192.88.99.1 198.19.0.1 198.51.100.1 203.0.113.1 224.0.0.251 240.0.0.1
    255.255.255.255
  `).map((host) => `https://${host}:PORT/`),
  'https://169.254.169.254:PORT/latest/meta-data/',
  'https://2852039166:PORT/latest/meta-data/',
  // IPv6
  ...words(`
    [::] [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::ffff:127.0.0.1] [::FFFF:7F00:1] [::ffff:169.254.169.254]
    [::ffff:0:127.0.0.1] [::127.0.0.1] [::2] [64:ff9b::127.0.0.1] [64:ff9b:1::10.0.0.1] [2002:7f00:1::]
    [2001::1] [2001:0:7f00:1::] [2001:db8::1] [3fff::1] [100::1] [fc00::1] [fdff::1] [fe80::1] [febf::1]
    [fec0::1] [ff02::1] [5f00::1] [4000::1]
  `).map((host) => `https://${host}:PORT/`),
  // Names
  ...Object.keys(names).map((name) => `https://${name}:PORT/`),
  ...words(`
    LOOPBACK.example. localhost localhost. a.localhost
  `).map((host) => `https://${host}:PORT/`),
  // Schemes, passwords, ports
  ...words(`
    http://127.0.0.1:PORT/ http://public.example:PORT/ ws://public.example:PORT/ wss://public.example:PORT/
    ftp://public.example/ file:///etc/passwd data:application/json,{} https://public.example@127.0.0.1:PORT/
    https://user@public.example/ https://user:secret@public.example/ https://:secret@public.example/
    https://public.example:0/ https://public.example:22/ https://public.example:25/ https://public.example:80/
    https://public.example:389/ https://public.example:1023/ https://127.0.0.1:443/
  `),
]

const resolve = async (name: string) => names[name.toLowerCase()] ?? []

async function listenOnLoopback(t: Test) {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  const port = await listen(t, server)
  return { port, connections: () => connections }
}

function openWebhooks(t: Test, resolving: (name: string) => Promise<readonly string[]>) {
  const webhooks = createWebhooks({ allowPrivate: false, userAgent: 'test', resolve: resolving })
  t.teardown(webhooks.close)
  return (url: string) =>
    webhooks.post({
      url,
      body: Buffer.from('{}'),
      token: 't',
      deadlineMs: 2_000,
      signal: new AbortController().signal,
    })
}

t.test('refused when it is subscribed', async (t) => {
  t.ok(refused.length >= 40)
  for (const url of refused) {
    const why = await checkWebhookUrl(url.replace('PORT', '8443'), { allowPrivate: false, resolve })
    t.type(why, 'string', url)
  }
})

t.test('refused when it comes to the connection, before anything is sent', async (t) => {
  const server = await listenOnLoopback(t)
  const post = openWebhooks(t, resolve)
  for (const url of refused) {
    const full = url.replace('PORT', String(server.port))
    // A name without an address fails as well.
    t.match(await post(full), { result: 'failed', status: null, reason: String }, url)
  }
  t.equal(server.connections(), 0)
})

t.test('the server is there for those who may connect', async (t) => {
  const server = await listenOnLoopback(t)
  const webhooks = createWebhooks({ allowPrivate: true, userAgent: 'test' })
  t.teardown(webhooks.close)
  const call = {
    body: Buffer.from('{}'),
    token: 't',
    deadlineMs: 2_000,
    signal: new AbortController().signal,
  }
  t.match(await webhooks.post({ ...call, url: `https://127.0.0.1:${server.port}/` }), { result: 'failed' })
  t.equal(server.connections(), 1)
})

t.test('a name that leads elsewhere after it was checked', async (t) => {
  const server = await listenOnLoopback(t)
  const answers = [['203.0.114.9'], ['127.0.0.1'], ['::1'], ['10.0.0.1', '::ffff:127.0.0.1']]
  const rebinding = async () => answers.shift() ?? ['127.0.0.1']
  const url = `https://rebinding.example:${server.port}/`
  t.equal(await checkWebhookUrl(url, { allowPrivate: false, resolve: rebinding }), undefined)
  const post = openWebhooks(t, rebinding)
  for (let time = 0; time < 4; time++) {
    t.match(await post(url), { reason: /leads to an address that is not public/ })
  }
  t.equal(server.connections(), 0)
})

t.test('of several addresses only the public ones are connected to', async (t) => {
  const lookup = guardedLookup({
    allowPrivate: false,
    resolve: async () => ['10.0.0.1', '203.0.114.9', '::1', '2606:4700::1111', '::ffff:10.0.0.1'],
  })
  const ask = (options: object) =>
    new Promise<string | LookupAddress[]>((done, fail) => {
      lookup('any.example', options, (error, found) => (error ? fail(error) : done(found)))
    })
  t.same(await ask({ all: true }), [
    { address: '203.0.114.9', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ])
  t.equal(await ask({}), '203.0.114.9')
})

t.test('a name that is not resolved, or never', async (t) => {
  const post = openWebhooks(t, async () => [])
  t.match(await post('https://nowhere.example/'), { result: 'failed', reason: /cannot be resolved/ })
  const failing = openWebhooks(t, () => Promise.reject(new Error('no name server')))
  t.match(await failing('https://nowhere.example/'), { result: 'failed', reason: /no name server/ })
  const never = openWebhooks(t, () => new Promise(() => {}))
  t.match(await never('https://nowhere.example/'), { result: 'failed', reason: 'no answer within 2 s' })
})
