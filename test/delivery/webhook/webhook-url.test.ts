import t from 'tap'
import { checkWebhookUrl, isPublicAddress } from '../../../delivery/webhook/webhook-url.ts'
import { words } from '../../words.ts'

const names = new Map([
  ['public.example', ['203.0.114.9', '2606:4700::1111']],
  ['private.example', ['10.0.0.1']],
  ['both.example', ['203.0.114.9', '10.0.0.1']],
  ['six.example', ['fd00::1']],
  ['mapped.example', ['::ffff:127.0.0.1']],
])
const resolve = async (name: string) => names.get(name) ?? []
const check = (url: string, allowPrivate = false) => checkWebhookUrl(url, { allowPrivate, resolve })

t.test('public https URLs are taken', async (t) => {
  for (const url of [
    `https://${'long.'.repeat(48)}example/`,
    ...words(`
      https://public.example/hook?x=1#y https://PUBLIC.example:8443 https://203.0.114.9/
      https://[2606:4700::1111]/ https://unresolved.example/ https://bücher.example/ https://public.example./
    `),
  ]) {
    t.equal(await check(url), undefined, url)
  }
})

t.test('everything else is not, whatever its spelling', async (t) => {
  for (const url of [
    '',
    `https://public.example/${'x'.repeat(2048)}`,
    `https://${'a'.repeat(64)}.example/`,
    `https://${'long.'.repeat(50)}example/`,
    ...words(`
      http://public.example/ ftp://public.example/ javascript:alert(1) https:// public.example
      https://user:secret@public.example/ https://user@public.example/ https://localhost/ https://LOCALHOST./
      https://x.localhost/ https://printer.local/ https://db.internal/ https://router.home.arpa/
      https://intranet/ https://a..example/ https://168.63.129.16/ https://127.0.0.1/ https://127.1/
      https://2130706433/ https://0x7f000001/ https://0177.0.0.1/ https://0.0.0.0/ https://10.255.255.255/
      https://172.16.0.1/ https://192.168.0.1/ https://100.64.0.1/ https://169.254.169.254/latest/meta-data
      https://192.0.2.1/ https://198.18.0.1/ https://224.0.0.1/ https://255.255.255.255/ https://[::]/
      https://[::1]/ https://[::ffff:127.0.0.1]/ https://[::ffff:7f00:1]/ https://[fe80::1]/ https://[fd00::1]/
      https://[ff02::1]/ https://[64:ff9b::7f00:1]/ https://[2002:7f00:1::]/ https://[2001:db8::1]/
      https://①②⑦.0.0.1/ https://private.example/ https://both.example/ https://six.example/
      https://mapped.example/
    `),
  ]) {
    t.ok(await check(url), url)
  }
})

// `new URL` drops or replaces these. The receiver compares the claim `aud` with the URL that it expects.
t.test('a URL that would be called by another spelling is refused', async (t) => {
  for (const url of [
    ' https://public.example/hook',
    'https://public.example/hook ',
    'https://public.example/ho\nok',
    'https://pub\tlic.example/hook',
    'https://public.example/ho ok',
    'https://public.example/hook\u0000',
    'https:\\\\public.example\\hook',
    'https:public.example/hook',
  ]) {
    for (const allowPrivate of [false, true]) t.match(await check(url, allowPrivate), /https URL/, url)
  }
})

t.test('where private addresses are allowed it must still be https', async (t) => {
  for (const url of ['https://localhost:9443/', 'https://127.0.0.1/', 'https://private.example/']) {
    t.equal(await check(url, true), undefined, url)
  }
  for (const url of [
    'http://localhost/',
    'https://user:secret@localhost/',
    `https://${'a'.repeat(300)}/`,
    'x',
  ])
    t.ok(await check(url, true), url)
})

t.test('an address is public or it is not', async (t) => {
  t.ok(isPublicAddress('8.8.8.8'))
  for (const address of ['', 'public.example', '127.0.0.1', '::1', '::ffff:10.0.0.1']) {
    t.notOk(isPublicAddress(address), address)
  }
})

t.test('an IPv4 address inside an IPv6 address decides', async (t) => {
  const bytes = (ipv4: string) => ipv4.split('.').map(Number)
  const hex = (numbers: number[]) => numbers.map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const pairs = (numbers: number[]) => `${hex(numbers.slice(0, 2))}:${hex(numbers.slice(2))}`
  const forms: [what: string, address: (ipv4: string) => string][] = [
    ['IPv4-mapped', (ipv4) => `::ffff:${ipv4}`],
    ['NAT64 (RFC 6052)', (ipv4) => `64:ff9b::${ipv4}`],
    ['local NAT64 (RFC 8215)', (ipv4) => `64:ff9b:1::${ipv4}`],
    ['local NAT64 in a prefix of its own', (ipv4) => `64:ff9b:1:fffe::${ipv4}`],
    ['6to4 (RFC 3056)', (ipv4) => `2002:${pairs(bytes(ipv4))}::1`],
    ['Teredo, the client', (ipv4) => `2001:0:808:808:0:0:${pairs(bytes(ipv4).map((byte) => byte ^ 255))}`],
    ['ISATAP (RFC 5214)', (ipv4) => `2606:4700::5efe:${ipv4}`],
    ['ISATAP, of a unique address', (ipv4) => `2606:4700:1:2:200:5efe:${ipv4}`],
    ['ISATAP in 6to4', (ipv4) => `2002:808:808:1:0:5efe:${ipv4}`],
    ['Teredo, the server', (ipv4) => `2001:0:${pairs(bytes(ipv4))}:0:0:f7f7:f7f7`],
  ]
  const insides = words(`0.0.0.0 10.0.0.1 127.0.0.1 169.254.169.254 192.168.1.1 100.64.0.1 224.0.0.1`)
  for (const [what, address] of forms) {
    t.ok(isPublicAddress(address('8.8.8.8')), `${what} of a public address`)
    t.equal(await check(`https://[${address('8.8.8.8')}]/`), undefined, `${what} in a URL`)
    for (const inside of [...insides, '168.63.129.16']) {
      t.notOk(isPublicAddress(address(inside)), `${what} of ${inside}`)
    }
  }
  // A local translator may read the address elsewhere (RFC 6052 §2.2): after 48, 56 or 64 bits of prefix.
  for (const address of [
    '64:ff9b:1:a00:0:1::808:808',
    '64:ff9b:1:7f00::808:808',
    '64:ff9b:1:a:0:100:808:808',
  ]) {
    t.notOk(isPublicAddress(address), address)
  }
  for (const address of ['64:ff9b:0:1::808:808', '64:ff9b:2::808:808', '::808:808', '::ffff:0:808:808']) {
    t.notOk(isPublicAddress(address), `${address} is no such form`)
  }
})

t.test('the hub does not push to itself', async (t) => {
  const options = { allowPrivate: true, own: 'https://localhost:8443' }
  t.ok(await checkWebhookUrl('https://LOCALHOST:8443/pubsub', options))
  t.equal(await checkWebhookUrl('https://localhost:9443/pubsub', options), undefined)
})
