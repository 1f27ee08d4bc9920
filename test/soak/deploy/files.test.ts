import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls, createServer } from 'node:tls'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { loadConfig } from '../../../config/config.ts'
import { codeBlock } from '../../documentation.ts'
import { projectFile, root } from '../../root.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * The paths, settings and commands in the files for service managers must exist.
 */
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const unit = read('deploy/hub.service')
const image = read('deploy/Dockerfile')
const page = read('docs/deployment.md')
/** What `npm run build` makes; `test/soak/deploy/package.test.ts` runs it. */
const built = ['dist/server.js', 'dist/hubctl.js']
const manifest = JSON.parse(read('package.json'))
const defaults = configOf({})

t.test('the unit', async (t) => {
  const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
  const prefix = /--prefix (\S+)/.exec(page)?.[1] ?? ''
  const bins = Object.keys(manifest.bin).map((name) => `${prefix}/bin/${name}`)
  t.ok(bins.includes(value('ExecStart').split(' ').at(-1) ?? ''), 'starts what the documentation installs')
  t.ok(page.includes(`useradd --system --user-group --home-dir /var/lib/hub`))
  t.equal(value('User'), 'hub')
  t.ok(page.includes(` ${value('EnvironmentFile')}\n`), 'the file of the variables is installed')
  t.equal(configOf(environmentOf(value('Environment'))).dataDir, `/var/lib/${value('StateDirectory')}`)
  t.equal(value('WorkingDirectory'), `/var/lib/${value('StateDirectory')}`)
  t.ok(Number(value('TimeoutStopSec')) > 10, 'the node ends by itself within ten seconds')
  t.ok(Number(value('LimitNOFILE')) > 2 * defaults.maxConnections + 1_000)
  t.notMatch(unit, /^MemoryDenyWriteExecute=yes/m, 'V8 could not compile')
  t.match(value('RestrictAddressFamilies'), /AF_NETLINK/, 'os.networkInterfaces needs it')
})

t.test('the hook of certbot gives a running node the renewed certificate', async (t) => {
  const etc = await temporaryDirectory(t)
  // A lineage of certbot, under the names that certbot uses.
  const lineage = async () => {
    const { cert, key } = await ensureDevelopmentCertificates(await temporaryDirectory(t))
    const live = await temporaryDirectory(t)
    await copyFile(cert, join(live, 'fullchain.pem'))
    await copyFile(key, join(live, 'privkey.pem'))
    return live
  }
  const hook = join(etc, 'hook')
  const script = codeBlock(page, 'sh', 'RENEWED_LINEAGE/fullchain.pem')
  // The owner of the files is the one who runs the test: there may be no user `hub` here.
  await writeFile(hook, script.replaceAll('/etc/hub/', `${etc}/`).replaceAll('-o root -g hub ', ''), {
    mode: 0o755,
  })
  const renew = (live: string) =>
    promisify(execFile)(hook, { env: { ...process.env, RENEWED_LINEAGE: live } })
  await renew(await lineage())
  const env = { HUB_TLS_CERT: join(etc, 'fullchain.pem'), HUB_TLS_KEY: join(etc, 'key.pem') }
  const hub = await startTestHub(t, env)
  const live = await lineage()
  await renew(live)
  const expected = new X509Certificate(await readFile(join(live, 'fullchain.pem'))).fingerprint256
  while ((await servedBy(hub.mqttPort)) !== expected) await delay(50)
  t.equal(await servedBy(hub.httpsPort), expected)
})

/** The fingerprint of the certificate at a port. */
async function servedBy(port: number): Promise<string> {
  const socket = connectTls({ port, host: 'localhost', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

t.test('all ways to start a node give V8 the same options', async (t) => {
  const optionsOf = (command: string) => command.match(/--(?!import)[\w-]+=\d+/g)
  const expected = optionsOf(manifest.scripts.start)
  t.ok(expected)
  t.same(optionsOf(/^ExecStart=.*$/m.exec(unit)?.[0] ?? ''), expected)
  t.same(optionsOf(/^CMD .*$/m.exec(image)?.[0] ?? ''), expected)
})

t.test('the file of variables', async (t) => {
  const text = read('deploy/hub.env')
  const lines = text.split('\n').filter((line) => /^#?HUB_/.test(line))
  const all = environmentOf(lines.map((line) => line.replace(/^#/, '')).join('\n'))
  const { HUB_CONFIG, ...variables } = all
  t.ok(HUB_CONFIG?.startsWith('/etc/hub/'))
  t.match(configOf(variables), { stage: 'prod', proxyProtocol: true })
  t.match(configOf(environmentOf(lines.join('\n'))), { publicUrl: 'https://hub.example' })
})

t.test('the image', async (t) => {
  const all = (word: string) =>
    [...image.matchAll(new RegExp(`^${word} (.*)$`, 'gm'))].map(([, rest]) => rest)
  t.match(configOf(environmentOf(all('ENV').join('\n').replaceAll(' ', '\n'))), {
    dataDir: '/data',
    host: '0.0.0.0',
  })
  t.same(all('EXPOSE'), [`${defaults.mqttPort} ${defaults.httpsPort}`])
  t.same(all('STOPSIGNAL'), ['SIGTERM'])
  t.equal(all('USER').at(-1), 'hub')
  for (const [, path = ''] of image.matchAll(/\/opt\/hub\/((?:dist|deploy)\/[\w/-]+\.js)/g)) {
    t.ok(path.startsWith('deploy/') ? existsSync(join(root, path)) : built.includes(path), path)
    t.ok(manifest.files.includes(path.split('/')[0]), `${path} is packed`)
  }
  for (const [, name] of image.matchAll(/&& npm (?:run )?([a-z]+)/g)) t.equal(name, 'ci')
  const ignored = read('.dockerignore').split('\n')
  for (const line of read('.gitignore').split('\n')) t.ok(ignored.includes(line), `${line} stays out`)
})

t.test('the health check asks the node of its environment', async (t) => {
  const hub = await startTestHub(t)
  // Import the source instead of the compiled configuration.
  const script = read('deploy/healthcheck.js').replace(
    '../dist/config.js',
    pathToFileURL(projectFile('config/config.ts')).href,
  )
  const check = (env: Record<string, string>) => {
    const args = [`--import=${import.meta.resolve('tsx')}`, '--input-type=module', '--eval', script]
    return promisify(execFile)(process.execPath, args, { env: { PATH: process.env.PATH, ...env } })
  }
  const port = String(hub.httpsPort)
  t.match(await check({ HUB_HTTPS_PORT: port }), { stdout: /"status":"ok"/ })
  await t.rejects(check({ HUB_HTTPS_PORT: port, HUB_PROXY_PROTOCOL: 'true' }), { code: 1 })
  await t.rejects(check({ HUB_HTTPS_PORT: 'x' }), { code: 1, stderr: /HUB_HTTPS_PORT/ })
  const behind = await startTestHub(t, { HUB_PROXY_PROTOCOL: 'true', HUB_HOST: '0.0.0.0' })
  const env = { HUB_HTTPS_PORT: String(behind.httpsPort), HUB_HOST: '0.0.0.0' }
  t.match(await check({ ...env, HUB_PROXY_PROTOCOL: 'true' }), { stdout: /"status":"ok"/ })
  const settings = { proxyProtocol: true, proxyFrom: ['192.0.2.7'] }
  const strict = { HUB_CONFIG: join(t.testdir({ 'hub.json': JSON.stringify(settings) }), 'hub.json') }
  const { httpsPort } = await startTestHub(t, strict)
  await t.rejects(check({ ...strict, HUB_HTTPS_PORT: String(httpsPort) }), { code: 1, stderr: /proxyFrom/ })
  await hub.close()
  await t.rejects(check({ HUB_HTTPS_PORT: port }), { code: 1, stderr: /ECONNREFUSED/ })

  const certs = dirname(hub.caPath)
  const server = createServer(
    { key: readFileSync(join(certs, 'server-key.pem')), cert: readFileSync(join(certs, 'server.pem')) },
    (socket) => {
      socket.on('error', () => {})
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"status"', () => socket.destroy())
    },
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { port: broken } = server.address() as AddressInfo
  await t.rejects(check({ HUB_HTTPS_PORT: String(broken) }), { code: 1 }, 'half an answer is no health')
})

function environmentOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
}

function configOf(env: Record<string, string>) {
  const loaded = loadConfig(env, root)
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  return loaded.config
}
