import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { listen } from '../listen.ts'
import { evaluate, moduleOf } from '../root.ts'
import { words } from '../words.ts'

const run = promisify(execFile)
const day = 24 * 3600 * 1000

t.test('openssl accepts the chain for every name of this machine', async (t) => {
  const { files } = await make(t, ['hub.test', '10.0.0.7'])
  for (const name of ['localhost', 'hub.test', hostname()]) {
    const { stdout } = await openssl(files, ['-verify_hostname', name])
    t.match(stdout, /server\.pem: OK/, name)
  }
  for (const address of ['127.0.0.1', '::1', '10.0.0.7']) {
    const { stdout } = await openssl(files, ['-verify_ip', address])
    t.match(stdout, /server\.pem: OK/, address)
  }
  await t.rejects(openssl(files, ['-verify_hostname', 'elsewhere.test']), 'and for no other')
})

t.test('the certificates say what they are for, and for how long', async (t) => {
  const now = new Date('2026-03-01T12:00:00Z')
  const { files } = await make(t, [], now)
  const ca = new X509Certificate(await readFile(files.ca))
  const cert = new X509Certificate(await readFile(files.cert))
  t.equal(ca.ca, true)
  t.equal(cert.ca, false)
  t.equal(new Date(ca.validTo).toISOString(), '2036-03-01T12:00:00.000Z', 'CA: 10 years')
  t.equal(Date.parse(cert.validTo), now.getTime() + 397 * day)
  for (const { validFrom } of [ca, cert]) {
    t.equal(new Date(validFrom).toISOString(), '2026-03-01T11:00:00.000Z', 'for clocks that are behind, too')
  }
  t.equal(cert.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
  const { stdout } = await run('openssl', ['x509', '-in', files.cert, '-noout', '-text'])
  t.match(stdout, /Basic Constraints: critical\s+CA:FALSE/)
  t.match(stdout, /Key Usage: critical\s+Digital Signature\n/)
  t.match(stdout, /Extended Key Usage:\s+TLS Web Server Authentication\n/)
  const { stdout: caText } = await run('openssl', ['x509', '-in', files.ca, '-noout', '-text'])
  t.match(caText, /Basic Constraints: critical\s+CA:TRUE, pathlen:0/)
  t.match(caText, /Key Usage: critical\s+Certificate Sign, CRL Sign/)
})

t.test('keys are for the owner alone, and no drafts stay behind', async (t) => {
  const { dir, files } = await make(t)
  t.equal((await stat(files.key)).mode & 0o777, 0o600)
  t.equal((await stat(join(dir, 'ca-key.pem'))).mode & 0o777, 0o600)
  const { stdout } = await run('ls', ['-A', dir])
  t.strictSame(stdout.trim().split('\n').sort(), ['ca-key.pem', 'ca.pem', 'server-key.pem', 'server.pem'])
})

t.test('a certificate that cannot be written leaves no draft behind', async (t) => {
  const { dir } = await make(t)
  const before = await readAll(dir)
  // `ulimit -f 0` below lets the process make new files, but write no byte into them.
  const late = `new Date(Date.now() + ${368 * day})`
  const script = `import { ensureDevelopmentCertificates } from ${moduleOf('certs/development.ts')}
    await ensureDevelopmentCertificates(${JSON.stringify(dir)}, [], ${late})`
  const env = { ...process.env, TSX_DISABLE_CACHE: '1' } // `ulimit` would also cut short the files of the cache of tsx
  await t.rejects(run('sh', ['-c', 'ulimit -f 0; exec "$@"', 'sh', ...evaluate, script], { env }), {
    message: /EFBIG/,
  })
  t.strictSame((await readdir(dir)).sort(), ['ca-key.pem', 'ca.pem', 'server-key.pem', 'server.pem'])
  t.strictSame(await readAll(dir), before)
})

t.test('a TLS client that trusts the CA connects', async (t) => {
  const { files } = await make(t)
  const server = createServer(
    { cert: await readFile(files.cert), key: await readFile(files.key) },
    (socket) => socket.end('hello'),
  )
  const port = await listen(t, server)
  for (const servername of ['localhost', '']) {
    const client = connect({
      port,
      host: '127.0.0.1',
      ca: await readFile(files.ca),
      ...(servername ? { servername } : {}),
    })
    await once(client, 'secureConnect')
    t.equal(client.authorized, true)
    client.destroy()
  }
  const stranger = connect({ port, host: '127.0.0.1' })
  const [error] = await once(stranger, 'error')
  t.match(error, { code: /UNABLE_TO_VERIFY|SELF_SIGNED/ }, 'nobody else trusts it')
})

t.test('what is good stays as it is', async (t) => {
  const { dir, files } = await make(t)
  const before = await readAll(dir)
  await ensureDevelopmentCertificates(dir)
  t.strictSame(await readAll(dir), before)
  t.equal(files.cert, join(dir, 'server.pem'))
})

t.test('the server certificate is renewed before it expires; the CA and the keys stay', async (t) => {
  const { dir, files } = await make(t)
  const before = await readAll(dir)
  await ensureDevelopmentCertificates(dir, [], new Date(Date.now() + 366 * day))
  t.strictSame(await readAll(dir), before, '31 days before: not yet')
  await ensureDevelopmentCertificates(dir, [], new Date(Date.now() + 368 * day))
  const after = await readAll(dir)
  t.not(after['server.pem'], before['server.pem'], '29 days before: renewed')
  t.strictSame({ ...after, 'server.pem': '' }, { ...before, 'server.pem': '' })
  t.match(
    (await openssl(files, ['-attime', String(Math.floor(Date.now() / 1000) + 700 * 86_400)])).stdout,
    /OK/,
  )
})

t.test('a CA that would not outlive the server certificate is issued again with its key', async (t) => {
  const { dir, files } = await make(t)
  const before = await readAll(dir)
  const later = new Date(Date.now() + 9.5 * 365.25 * day)
  await ensureDevelopmentCertificates(dir, [], later)
  const after = await readAll(dir)
  t.not(after['ca.pem'], before['ca.pem'])
  t.equal(after['ca-key.pem'], before['ca-key.pem'])
  t.match(
    (await openssl(files, ['-attime', String(Math.floor(later.getTime() / 1000) + 396 * 86_400)])).stdout,
    /OK/,
  )
})

t.test('a new name makes a new server certificate', async (t) => {
  const { dir, files } = await make(t)
  await ensureDevelopmentCertificates(dir, ['hub.test'])
  t.match((await openssl(files, ['-verify_hostname', 'hub.test'])).stdout, /OK/)
})

t.test('a name no certificate can carry is left out', async (t) => {
  const { files } = await make(t, ['not a name', 'fe80::1%eth0', ''])
  t.match((await openssl(files, ['-verify_hostname', 'localhost'])).stdout, /OK/)
})

t.test('missing and damaged certificates are made again from their keys', async (t) => {
  const { dir, files } = await make(t)
  for (const path of [files.cert, files.ca]) {
    await writeFile(path, 'cut short')
    await ensureDevelopmentCertificates(dir)
    t.match((await openssl(files, [])).stdout, /OK/, path)
  }
})

t.test('a key that is there is never replaced', async (t) => {
  const { dir, files } = await make(t)
  await writeFile(files.key, 'perhaps encrypted')
  await t.rejects(ensureDevelopmentCertificates(dir), {
    message: /server-key\.pem is not an unencrypted EC P-256 key/,
  })
  t.equal(await readFile(files.key, 'utf8'), 'perhaps encrypted')
})

t.test("somebody's own certificate is never overwritten", async (t) => {
  const { dir, files } = await make(t)
  const own = words(`req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=mine`)
  await run('openssl', [...own, '-keyout', files.key, '-out', files.cert])
  const before = await readAll(dir)
  await t.rejects(ensureDevelopmentCertificates(dir), { message: /server\.pem was not made here/ })
  t.strictSame(await readAll(dir), before)
})

t.test('many at once agree', async (t) => {
  const dir = t.testdir()
  const script = `import { ensureDevelopmentCertificates } from ${moduleOf('certs/development.ts')}
    await Promise.all([1, 2, 3].map(() => ensureDevelopmentCertificates(${JSON.stringify(dir)})))`
  const [node, ...args] = evaluate
  const other = () => run(node, [...args, script])
  const [files] = await Promise.all([
    ensureDevelopmentCertificates(dir),
    ensureDevelopmentCertificates(dir),
    other(),
    other(),
  ])
  t.match((await openssl(files, [])).stdout, /OK/)
  const cert = new X509Certificate(await readFile(files.cert))
  const before = await readAll(dir)
  await ensureDevelopmentCertificates(dir)
  t.strictSame(await readAll(dir), before, 'nothing was left to repair')
  t.ok(cert.verify(new X509Certificate(await readFile(files.ca)).publicKey))
})

async function make(t: Test, hosts: string[] = [], now?: Date) {
  const dir = t.testdir()
  const files = await ensureDevelopmentCertificates(dir, hosts, now)
  return { dir, files }
}

function openssl(files: { ca: string; cert: string }, options: string[]) {
  return run('openssl', [
    'verify',
    '-x509_strict',
    '-CAfile',
    files.ca,
    '-purpose',
    'sslserver',
    ...options,
    files.cert,
  ])
}

async function readAll(dir: string): Promise<Record<string, string>> {
  const names = ['ca.pem', 'ca-key.pem', 'server.pem', 'server-key.pem']
  const contents = await Promise.all(
    names.map(async (name) => [name, await readFile(join(dir, name), 'utf8')]),
  )
  return Object.fromEntries(contents)
}
