import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connectAsync } from 'mqtt'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { openClient, password } from '../../bridge-https/api.ts'
import { connect } from '../../clients.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { openStream } from '../../event-stream.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { createBrowser, skip as noBrowser } from '../../web/browser.ts'

/*
 * Real proxies in front of a node, with the configurations of docs/deployment.md. Only addresses, ports and paths are
 * changed. The proxies are 127.0.0.1; clients have other loopback addresses.
 */
const page = readPage('deployment.md')
const publicUrl = 'https://hub.example'
/** The name in the certificate of the node, which stands for hub.example. */
const host = 'localhost'

interface Ends {
  port: number
  /** Further free ports. */
  ports: { tls: number; https: number }
  hub: TestHub
  home: string
  cert: string
  key: string
}

interface Proxy {
  /** The program, and the Debian package that has it. */
  program: string
  debian: string
  /** Text of the whole configuration file. */
  configuration(ends: Ends): string
  args(file: string): string[]
  /** It has no time-outs that the page had to change. */
  isPatient?: true
}

const nginxGlobal = (home: string, modules = '') =>
  `daemon off; master_process off; pid ${home}/nginx.pid; error_log stderr;\n${modules}events {}\n`
const apacheModules = ['mpm_event', 'authz_core', 'ssl', 'socache_shmcb', 'headers', 'proxy', 'proxy_http']

/** Puts the places of a test in place of those of the page. Fails if the page has none of them. */
function placed(t: Test, text: string, ends: Ends, front: RegExp): string {
  const { port, ports, hub, home, cert, key } = ends
  const pem = join(home, 'both.pem')
  const shown = text
    .replace(front, (_all, before: string) => `${before}127.0.0.1:${port}`)
    .replace('listen 8443', `listen 127.0.0.1:${ports.tls}`)
    .replaceAll('192.0.2.11:8443', `127.0.0.1:${hub.httpsPort}`)
    .replaceAll('192.0.2.11:8883', `127.0.0.1:${hub.mqttPort}`)
    .replaceAll('/etc/hub/ca.pem', hub.caPath)
    .replaceAll(/\/etc\/\w+\/hub\.crt/g, cert)
    .replaceAll(/\/etc\/\w+\/hub\.key/g, key)
    .replaceAll('/etc/haproxy/hub.pem', pem)
    .replaceAll('hub.example', host)
  t.notMatch(shown, /192\.0\.2|\/etc\//, 'everything was replaced')
  t.match(shown, String(port))
  return shown
}

const httpProxies: Proxy[] = [
  {
    program: 'nginx',
    debian: 'nginx',
    args: (file) => ['-c', file],
    configuration: (ends) => `${nginxGlobal(ends.home)}${nginxHttp(ends)}`,
  },
  {
    program: 'apache2',
    debian: 'apache2-bin',
    args: (file) => ['-X', '-f', file],
    configuration(ends) {
      const block = placed(t, codeBlock(page, 'apache', 'ProxyPass'), ends, /(VirtualHost )\*:443/)
      const modules = apacheModules
        .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
        .join('\n')
      return `ServerRoot ${ends.home}\nDefaultRuntimeDir ${ends.home}\nPidFile ${ends.home}/apache.pid\nErrorLog ${ends.home}/error.log\nServerName localhost\nUser www-data\nGroup www-data\nListen 127.0.0.1:${ends.port}\n${modules}\n${block}`
    },
  },
  {
    program: 'haproxy',
    debian: 'haproxy',
    args: (file) => ['-db', '-f', file],
    configuration(ends) {
      const block = placed(t, codeBlock(page, 'haproxy', 'option forwardfor'), ends, /(bind ):443/)
      return `global\n    maxconn 100\n${block}`
    },
  },
  {
    program: 'caddy',
    debian: 'caddy',
    isPatient: true,
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    configuration(ends) {
      const block = placed(t, codeBlock(page, 'caddy', 'reverse_proxy'), ends, /^()hub\.example/)
      const site = `https://${host}:${ends.port} {\n    bind 127.0.0.1\n    tls ${ends.cert} ${ends.key}`
      // Otherwise it asks for a certificate, listens on more ports, and keeps files in the folder of the user.
      const global = `admin off\nauto_https off\ndefault_sni ${host}\nstorage file_system ${ends.home}\n`
      return `{\n${global}servers {\nprotocols h1\n}\n}\n${block.replace(`127.0.0.1:${ends.port} {`, site)}`
    },
  },
]

function nginxHttp(ends: Ends): string {
  const block = placed(t, codeBlock(page, 'nginx', 'proxy_http_version'), ends, /(listen )443/)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = paths.map((name) => `${name}_temp_path ${ends.home}/${name};`).join('\n')
  return `http {\naccess_log off;\n${temporary}\n${block}}\n`
}

const nginxStream: Proxy = {
  program: 'nginx',
  debian: 'nginx libnginx-mod-stream',
  args: (file) => ['-c', file],
  configuration(ends) {
    const block = placed(t, codeBlock(page, 'nginx', 'proxy_protocol on'), ends, /(listen )8883/)
    return `${nginxGlobal(ends.home, 'load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n')}${block}`
  },
}

/** The HTTP proxy of nginx sends to its server for TCP. */
const nginxBoth: Proxy = {
  ...nginxStream,
  configuration(ends) {
    const { ports, hub } = ends
    const http = nginxHttp({ ...ends, port: ports.https, hub: { ...hub, httpsPort: ports.tls } })
    return `${nginxStream.configuration(ends)}${http}`
  },
}

const stunnel: Proxy = {
  program: 'stunnel4',
  debian: 'stunnel4',
  args: (file) => [file],
  configuration(ends) {
    const block = placed(t, codeBlock(page, 'ini', 'checkHost'), ends, /(accept = )127\.0\.0\.1:1883/)
    return `foreground = yes\npid =\n${block}`
  },
}

const missing = [...httpProxies, stunnel]
  .filter(({ program }) => spawnSync('which', [program]).status !== 0)
  .map(({ debian }) => debian)
const skip = missing.length > 0 && `NOT TESTED: there is no ${missing.join(', ')} (apt-get install)`

t.test('the HTTP proxies of the page pass on pages, addresses and WebSockets', { skip }, async (t) => {
  const home = await temporaryDirectory(t)
  await writeFile(join(home, 'hub.json'), JSON.stringify({ trustedProxies: ['127.0.0.1'] }))
  const hub = await startTestHub(t, {
    HUB_CONFIG: join(home, 'hub.json'),
    HUB_PUBLIC_URL: publicUrl,
    HUB_LOGIN_FAILURES: '2',
  })
  const login = await hub.subscriber('radio/#')
  const ca = readFileSync(hub.caPath)
  for (const [nth, proxy] of httpProxies.entries()) {
    const name = proxy.program
    const { port } = await startProxy(t, proxy, hub)
    const send = openClient(t, { httpsPort: port, caPath: hub.caPath })
    const [first, second] = [`127.0.${nth + 1}.1`, `127.0.${nth + 1}.2`]
    const guess = async (from: string, spoofed: object = {}) => {
      const headers = { host, 'x-hub-page': '1', origin: publicUrl, ...spoofed }
      const body = { email: `user-${Math.random()}@radio.example`, password }
      return (await send('POST', '/auth/session', { body, headers, from })).status
    }
    t.equal((await send('GET', '/health', { headers: { host }, from: first })).status, 200, name)
    // 401: the page of the public URL may ask, and the password is wrong.
    t.equal(await guess(first), 401, name)
    t.equal(await guess(first, { 'x-forwarded-for': '203.0.113.1', forwarded: 'for=203.0.113.2' }), 401, name)
    t.equal(await guess(first, { 'x-forwarded-for': '203.0.113.3', forwarded: 'for=203.0.113.4' }), 429, name)
    t.equal(await guess(second), 401, `${name}: another client`)

    const client = await connectAsync(`wss://127.0.0.1:${port}/mqtt`, {
      username: login.username,
      password: login.password,
      clientId: `ws-${name}`,
      protocolVersion: 4,
      reconnectPeriod: 0,
      wsOptions: { ca, localAddress: second, headers: { host } },
    })
    t.teardown(() => client.endAsync(true))
    t.match(await client.subscribeAsync('radio/#', { qos: 1 }), [{ qos: 1 }], name)
    const clients = await hub.ask<{ clientId: string; address: string }[]>('clients.list')
    t.match(
      clients.find(({ clientId }) => clientId === `ws-${name}`),
      { address: second },
      name,
    )
  }
})

t.test('the TCP proxies of the page lead to the MQTT port', { skip }, async (t) => {
  const home = await temporaryDirectory(t)
  const settings = { proxyProtocol: true, proxyFrom: ['127.0.0.1'] }
  await writeFile(join(home, 'hub.json'), JSON.stringify(settings))
  const behind = await startTestHub(t, { HUB_CONFIG: join(home, 'hub.json') })
  const plain = await startTestHub(t)
  for (const [proxy, hub, scheme, address] of [
    [nginxStream, behind, 'mqtts', '127.0.0.9'],
    [stunnel, plain, 'mqtt', '127.0.0.1'],
  ] as const) {
    const { port } = await startProxy(t, proxy, hub)
    const login = await hub.subscriber('radio/#')
    const client = await connectAsync(`${scheme}://127.0.0.1:${port}`, {
      username: login.username,
      password: login.password,
      clientId: 'a',
      protocolVersion: 4,
      reconnectPeriod: 0,
      ca: readFileSync(hub.caPath),
      servername: 'localhost',
      localAddress: '127.0.0.9',
    } as Parameters<typeof connectAsync>[1])
    t.teardown(() => client.endAsync(true))
    t.match(await client.subscribeAsync('radio/#', { qos: 1 }), [{ qos: 1 }], proxy.program)
    t.match(await hub.ask('clients.list'), [{ clientId: 'a', address }], proxy.program)
  }
})

t.test('with nginx for HTTP and for TCP, clients have their addresses on both ports', { skip }, async (t) => {
  const hub = await startBehind(t)
  const { ports } = await startProxy(t, nginxBoth, hub)
  const spoofed = { host, 'x-forwarded-for': '203.0.113.1', forwarded: 'for=203.0.113.2' }
  const asked = () => hub.lines.filter(({ path }) => path === '/topics')
  for (const [nth, httpsPort] of [ports.tls, ports.https].entries()) {
    const from = `127.0.0.${7 + nth}`
    const send = openClient(t, { httpsPort, caPath: hub.caPath })
    t.equal((await send('GET', '/topics', { headers: spoofed, from })).status, 401)
    await hub.until(async () => asked().length > nth)
    t.equal(asked()[nth]?.remoteAddress, from)
  }
})

t.test(
  'an idle client stays behind nginx while its keep alive is shorter than the time-out',
  { skip },
  async (t) => {
    const hub = await startBehind(t)
    const shorter = (proxy: Proxy): Proxy => ({
      ...proxy,
      configuration(ends) {
        const whole = proxy.configuration(ends)
        t.match(whole, /_timeout 1h;/)
        return whole.replaceAll('_timeout 1h;', '_timeout 3s;')
      },
    })
    const { port, ports } = await startProxy(t, shorter(nginxBoth), hub)
    const publish = await openPublisher(t, hub, port)
    for (const url of [`mqtts://127.0.0.1:${port}`, `wss://127.0.0.1:${ports.https}/mqtt`]) {
      const quick = await openIdle(t, hub, url, { keepalive: 1 })
      // Each of these two sends nothing, and is there until the time-out.
      for (const _nth of [1, 2]) {
        const silent = await openIdle(t, hub, url, { keepalive: 0 })
        await silent.closed
      }
      t.ok(quick.client.connected, url)
      await publish()
      await quick.received
    }
  },
)

t.test(
  'a client with the usual keep alive stays behind nginx for longer than its 60 s',
  { skip },
  async (t) => {
    const hub = await startBehind(t)
    const withoutTimeouts: Proxy = {
      ...nginxBoth,
      configuration(ends) {
        const whole = nginxBoth.configuration(ends)
        const less = whole.replaceAll(/^ *proxy_(read|send)_timeout .*\n/gm, '')
        t.equal(whole.split('\n').length - less.split('\n').length, 2)
        return less
      },
    }
    const bare = await startProxy(t, withoutTimeouts, hub)
    const { port, ports } = await startProxy(t, nginxBoth, hub)
    const publish = await openPublisher(t, hub, port)
    const urls = [`mqtts://127.0.0.1:${port}`, `wss://127.0.0.1:${ports.https}/mqtt`]
    const staying = await Promise.all(
      urls.flatMap((url) => [openIdle(t, hub, url, {}), openIdle(t, hub, url, { keepalive: 0 })]),
    )
    const silent = await openIdle(t, hub, `wss://127.0.0.1:${bare.ports.https}/mqtt`, { keepalive: 0 })
    await silent.closed
    t.same(
      staying.map(({ client }) => client.connected),
      staying.map(() => true),
    )
    await publish()
    await Promise.all(staying.map(({ received }) => received))
  },
)

t.test('a stream comes through at once, stays by its comments, and comes back', { skip }, async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true', HUB_PUBLIC_URL: publicUrl })
  const publish = await openPublisher(t, hub, hub.mqttPort)
  await Promise.all(
    httpProxies.map(async (proxy) => {
      // A comment comes every 15 s.
      const impatient: Proxy = {
        ...proxy,
        configuration(ends) {
          const whole = proxy.configuration(ends)
          const less = whole
            .replaceAll(/(_timeout |timeout (?:client|server) )(?:1h|70s)/g, '$120s')
            .replace('ProxyTimeout 3600', 'ProxyTimeout 20')
          t.equal(less === whole, proxy.isPatient === true)
          return less
        },
      }
      const path = `/livestreams/${station().id}/stream`
      const first = await startProxy(t, impatient, hub)
      const behind = { httpsPort: first.port, caPath: hub.caPath }
      const reader = await openStream(t, behind, path)
      await reader.until(() => reader.named('ready').length === 1)
      await publish()
      await reader.until(() => reader.named('playing').some(({ data }) => !data.retained))
      await reader.until(() => reader.comments() >= 2)
      t.notOk(reader.hasEnded(), proxy.program)
      await first.stop()
      await reader.until(() => reader.hasEnded())
      const last = String(reader.lastId())
      await publish()
      await startProxy(t, impatient, hub, first.port)
      const back = await openStream(t, behind, path, { headers: { 'last-event-id': last } })
      await back.until(() => back.named('ready').length === 1)
      t.equal(back.named('missed').length, 0, proxy.program)
      const [missed] = back.named('playing')
      t.match(missed, { data: { retained: false } }, proxy.program)
      t.ok(Number(missed?.id) > Number(last), proxy.program)
    }),
  )
})

/** Starts a node behind nginx for HTTP and for TCP. */
async function startBehind(t: Test) {
  const home = await temporaryDirectory(t)
  const settings = { proxyProtocol: true, proxyFrom: ['127.0.0.1'], trustedProxies: ['127.0.0.1'] }
  await writeFile(join(home, 'hub.json'), JSON.stringify(settings))
  return startTestHub(t, { HUB_CONFIG: join(home, 'hub.json'), HUB_PUBLIC_URL: publicUrl })
}

/** What publishes an event through the TCP proxy at this port. */
async function openPublisher(t: Test, hub: TestHub, mqttPort: number) {
  const institution = station().institution.id
  const login = await hub.publisher([institution])
  return async () => {
    const { client } = await connect(t, { mqttPort, caPath: hub.caPath }, login)
    await client.publishAsync(`inbox/${institution}`, JSON.stringify(playing(station())), { qos: 1 })
  }
}

/** Connects a subscriber through a proxy, which then only waits. */
async function openIdle(t: Test, hub: TestHub, url: string, options: { keepalive?: number }) {
  const { username, password } = await hub.subscriber('radio/#')
  const ca = readFileSync(hub.caPath)
  const client = await connectAsync(url, {
    username,
    password,
    protocolVersion: 4,
    reconnectPeriod: 0,
    ...options,
    ca,
    servername: 'localhost',
    wsOptions: { ca, headers: { host } },
  } as Parameters<typeof connectAsync>[1])
  t.teardown(() => client.endAsync(true))
  await client.subscribeAsync(playingTopic(station()), { qos: 1 })
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()))
  const received = new Promise<void>((resolve) => client.once('message', () => resolve()))
  return { client, closed, received }
}

const browser = createBrowser(t)

t.test('a page says when a proxy does not pass on Upgrade', { skip: skip || noBrowser }, async (t) => {
  const [nginx] = httpProxies
  if (!nginx) throw new Error('no nginx')
  const without: Proxy = {
    ...nginx,
    configuration(ends) {
      const whole = nginx.configuration(ends)
      const less = whole.replaceAll(/^ *proxy_set_header (Upgrade|Connection) .*\n/gm, '')
      t.equal(whole.split('\n').length - less.split('\n').length, 2)
      return less
    },
  }
  const frontPort = await freePort()
  const hub = await startTestHub(t, { HUB_PUBLIC_URL: `https://localhost:${frontPort}` })
  const { port: proxied } = await startProxy(t, without, hub, frontPort)
  const { page } = await browser.open(t, { ...hub, httpsPort: proxied })
  await page.getByText(/no WebSocket to it opens.* must pass on the header Upgrade/).waitFor()
  const direct = await browser.open(t, hub)
  await direct.page.getByText(/^(Live|Connection lost)$/).waitFor()
  t.equal(await direct.page.getByText(/no WebSocket/).count(), 0)
})

t.test('stunnel in front of the hub hands on plain text, which no port takes', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const inFront: Proxy = {
    ...stunnel,
    configuration: ({ port, cert, key }) =>
      `foreground = yes\npid =\n[hub]\naccept = 127.0.0.1:${port}\nconnect = 127.0.0.1:${hub.httpsPort}\ncert = ${cert}\nkey = ${key}\n`,
  }
  const { port } = await startProxy(t, inFront, hub)
  await t.rejects(openClient(t, { httpsPort: port, caPath: hub.caPath })('GET', '/health'))
})

/** Starts a proxy in front of a node. Resolves when it accepts connections. */
async function startProxy(
  t: Test,
  proxy: Proxy,
  hub: TestHub,
  chosen?: number,
): Promise<Pick<Ends, 'port' | 'ports'> & { stop(): Promise<void> }> {
  const home = await temporaryDirectory(t)
  const { cert, key } = await ensureDevelopmentCertificates(join(hub.home, 'certs'))
  await writeFile(join(home, 'both.pem'), Buffer.concat([readFileSync(cert), readFileSync(key)]))
  const port = chosen ?? (await freePort())
  const ports = { tls: await freePort(), https: await freePort() }
  const file = join(home, 'proxy.conf')
  await writeFile(file, proxy.configuration({ port, ports, hub, home, cert, key }))
  // Caddy keeps its configuration there.
  const env = { ...process.env, XDG_CONFIG_HOME: home }
  const child = spawn(proxy.program, proxy.args(file), { stdio: ['ignore', 'ignore', 'pipe'], env })
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const ended = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
  }
  t.teardown(stop)
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`${proxy.program} ended: ${output}`)
    await delay(20)
  }
  return { port, ports, stop }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
