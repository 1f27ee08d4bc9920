import { X509Certificate } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { appendFile, copyFile, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { connect, createServer } from 'node:tls'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createCertificates } from '../../certs/certificates.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { listen } from '../listen.ts'

t.test('the pair is loaded and says when it expires', async (t) => {
  const { files, certificates } = await start(t)
  t.strictSame(certificates.current(), { cert: await readFile(files.cert), key: await readFile(files.key) })
  const days = (certificates.notAfter().getTime() - Date.now()) / (24 * 3600 * 1000)
  t.ok(days > 396 && days <= 397)
})

t.test('what cannot be used at start is refused in one line', async (t) => {
  const { files, other } = await pairs(t)
  const garbage = join(files.dir, 'garbage.pem')
  await writeFile(garbage, '-----BEGIN CERTIFICATE-----\nnonsense\n')
  const leapSecond = join(files.dir, 'leap-second.pem')
  await writeFile(leapSecond, validUntil(await readFile(files.cert), '261231235960Z'))
  for (const [certPath, keyPath, message] of [
    [join(files.dir, 'missing.pem'), files.key, /cannot read the certificate .*missing\.pem \(ENOENT/],
    [files.cert, join(files.dir, 'missing.pem'), /cannot read the key .*missing\.pem/],
    [garbage, files.key, /garbage\.pem is not a certificate in PEM/],
    [leapSecond, files.key, /leap-second\.pem is valid from .* to Bad time value/],
    [files.cert, garbage, /garbage\.pem is not an unencrypted private key/],
    [files.cert, other.key, /the key .* does not belong to/],
  ] as const) {
    const { log } = collectingLog()
    const failure = failureOf(() => createCertificates({ certPath, keyPath, log }))
    t.match(failure, message)
    t.notMatch(failure, /\n/)
  }
})

t.test('an expired certificate is only a warning', async (t) => {
  const dir = t.testdir()
  const old = new Date(Date.now() - 400 * 24 * 3600 * 1000)
  const files = await ensureDevelopmentCertificates(dir, [], old)
  const { log, entries } = collectingLog()
  const ca = await readFile(files.ca, 'utf8')
  const certificates = createCertificates({ certPath: files.cert, keyPath: files.key, ca, log })
  t.teardown(() => certificates.close())
  t.match(entries, [{ level: 40, msg: /has expired/ }])
})

t.test('a certificate without that of its issuer is a warning', async (t) => {
  const { files } = await pairs(t)
  const chain = join(files.dir, 'chain.pem')
  await writeFile(chain, `${await readFile(files.cert, 'utf8')}${await readFile(files.ca, 'utf8')}`)
  const own = await readFile(files.ca, 'utf8')
  for (const [certPath, ca, warnings] of [
    [files.cert, undefined, [{ level: 40, msg: /may lack/, issuer: /CN=/ }]],
    [files.cert, own, []],
    [chain, undefined, []],
  ] as const) {
    const { log, entries } = collectingLog()
    createCertificates({ certPath, keyPath: files.key, ca, log }).close()
    t.match(entries, warnings)
    t.equal(entries.length, warnings.length)
  }
})

t.test('a pair that no client would accept now does not replace one that is valid', async (t) => {
  let now = Date.now()
  const { files, certificates, entries, nextError } = await start(t, () => now)
  const before = certificates.current()
  const inDays = (days: number) => new Date(now + days * 24 * 3600 * 1000)
  const refused = async (at: Date, reason: RegExp) => {
    const other = await ensureDevelopmentCertificates(join(files.dir, `${at.getTime()}`), [], at)
    await replace(other.cert, files.cert)
    await replace(other.key, files.key)
    // Between the two the pair does not fit.
    const isTold = () => reason.test(String(entries.at(-1)?.reason))
    while (!isTold()) await nextError()
    t.equal(certificates.current(), before)
    return other
  }
  await refused(inDays(-400), /has expired/)
  const early = await refused(inDays(10), /is not valid yet/)
  const changed = nextChange(certificates)
  now = inDays(11).getTime()
  await changed
  t.strictSame(certificates.current().key, await readFile(early.key), 'it does when its time has come')
})

t.test('replaced files are handed on as a pair, and TLS clients see the new one', async (t) => {
  const { files, other, certificates } = await start(t)
  const server = createServer(certificates.current(), (socket) => socket.on('error', () => undefined))
  const port = await listen(t, server)
  certificates.onChange((pair) => server.setSecureContext(pair))

  t.equal(await serialOf(port, files.ca), await serialIn(files.cert))
  const changed = nextChange(certificates)
  await replace(other.cert, files.cert)
  await replace(other.key, files.key)
  const [pair] = await changed
  t.strictSame(pair, { cert: await readFile(other.cert), key: await readFile(other.key) })
  t.equal(await serialOf(port, other.ca), await serialIn(other.cert))
})

t.test('a swapped symlink counts as a replaced file', async (t) => {
  const { files, other } = await pairs(t)
  const live = join(dirname(files.dir), 'live')
  await symlink(files.dir, live)
  const { log } = collectingLog()
  const certificates = createCertificates({
    certPath: join(live, 'server.pem'),
    keyPath: join(live, 'server-key.pem'),
    log,
    intervalMs: 10,
  })
  t.teardown(() => certificates.close())
  const changed = nextChange(certificates)
  await symlink(other.dir, `${live}.new`)
  await rename(`${live}.new`, live)
  const [pair] = await changed
  t.strictSame(pair, { cert: await readFile(other.cert), key: await readFile(other.key) })
})

t.test('a chain that is still being written is not taken', async (t) => {
  const { files, other } = await pairs(t)
  const { cert: certPath, key: keyPath } = files
  const certificates = createCertificates({ certPath, keyPath, ...collectingLog(), intervalMs: 3_600_000 })
  t.teardown(() => certificates.close())
  const before = certificates.current()
  const taken: unknown[] = []
  certificates.onChange((pair) => taken.push(pair))

  await copyFile(other.key, keyPath)
  await copyFile(other.cert, certPath)
  await certificates.look()
  t.equal(certificates.current(), before, 'the intermediates may follow')
  await appendFile(certPath, await readFile(other.ca))
  await certificates.look()
  t.equal(certificates.current(), before, 'more may follow')
  await certificates.look()
  const chain = Buffer.concat([await readFile(other.cert), await readFile(other.ca)])
  t.strictSame(taken, [{ cert: chain, key: await readFile(other.key) }])
})

t.test('a bad pair is logged once and the old one stays, until a good one comes', async (t) => {
  const { files, other, certificates, entries, nextError } = await start(t)
  const before = certificates.current()
  const errors = () => entries.filter(({ level }) => level === 50)

  const mismatch = nextError()
  await replace(other.cert, files.cert)
  await mismatch
  t.match(errors(), [{ msg: /cannot be used/, reason: /does not belong to/ }])
  t.equal(certificates.current(), before)

  const missing = nextError()
  await rm(files.key)
  await missing
  t.match(errors(), [{}, { reason: /ENOENT/ }], 'another fault is told, the same is not repeated')
  t.equal(certificates.current(), before)

  const changed = nextChange(certificates)
  await replace(other.key, files.key)
  await changed
  t.strictSame(certificates.current().key, await readFile(other.key))
  t.equal(errors().length, 2)
})

t.test('a listener that fails does not stop the others', async (t) => {
  const { files, other } = await pairs(t)
  const { cert: certPath, key: keyPath } = files
  const { log, entries } = collectingLog()
  // The test looks by itself, so that no look finds the new key with the old certificate.
  const certificates = createCertificates({ certPath, keyPath, log, intervalMs: 3_600_000 })
  t.teardown(() => certificates.close())
  certificates.onChange(() => {
    throw new Error('no')
  })
  const changed = nextChange(certificates)
  await replace(other.key, files.key)
  await replace(other.cert, files.cert)
  await certificates.look()
  await certificates.look()
  await changed
  t.match(
    entries.filter(({ level }) => level === 50),
    [{ msg: /a listener could not/ }],
  )
})

async function start(t: Test, clock?: () => number) {
  const made = await pairs(t)
  const logged = collectingLog()
  const { cert: certPath, key: keyPath } = made.files
  const certificates = createCertificates({
    certPath,
    keyPath,
    log: logged.log,
    intervalMs: 10,
    ...(clock && { clock }),
  })
  t.teardown(() => certificates.close())
  return { ...made, ...logged, certificates }
}

/** Two sets of certificate files that have no key or certificate in common. */
async function pairs(t: Test) {
  const root = t.testdir({ one: {}, two: {} })
  const [one, two] = [join(root, 'one'), join(root, 'two')]
  return {
    files: { dir: one, ...(await ensureDevelopmentCertificates(one)) },
    other: { dir: two, ...(await ensureDevelopmentCertificates(two)) },
  }
}

async function replace(from: string, to: string): Promise<void> {
  await copyFile(from, `${to}.new`)
  await rename(`${to}.new`, to)
}

interface Entry {
  level: number
  msg: string
  reason?: string
}

function collectingLog() {
  const entries: Entry[] = []
  const events = new EventEmitter()
  const log = pino({
    level: 'info',
    hooks: {
      streamWrite(line) {
        const entry: Entry = JSON.parse(line)
        entries.push(entry)
        if (entry.level === 50) events.emit('logged')
        return ''
      },
    },
  })
  return { log, entries, nextError: () => waitFor(events, 'logged') }
}

function nextChange(certificates: { onChange(listener: (pair: unknown) => void): void }): Promise<unknown[]> {
  const events = new EventEmitter()
  certificates.onChange((pair) => events.emit('changed', pair))
  return waitFor(events, 'changed')
}

/** The timer keeps the process alive; the watch of the files does not. */
function waitFor(events: EventEmitter, name: string): Promise<unknown[]> {
  const alive = setTimeout(() => undefined, 10_000)
  return once(events, name).finally(() => clearTimeout(alive))
}

function failureOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'it did not fail'
}

async function serialOf(port: number, ca: string): Promise<string> {
  const client = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: await readFile(ca) })
  await once(client, 'secureConnect')
  const { serialNumber } = client.getPeerCertificate()
  client.destroy()
  return serialNumber
}

async function serialIn(path: string): Promise<string> {
  return new X509Certificate(await readFile(path)).serialNumber
}

/** A certificate with another end of its validity, which its signature does not cover. */
function validUntil(pem: Buffer, end: string): string {
  const der = new X509Certificate(pem).raw.toString('latin1').replace(/(\d{12}Z.{2})\d{12}Z/s, `$1${end}`)
  const lines = Buffer.from(der, 'latin1').toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
