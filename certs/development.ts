import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  X509Certificate,
} from 'node:crypto'
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { codeOf } from '../telemetry/reason.ts'

const dayMs = 24 * 3600 * 1000
/** Some TLS clients refuse server certificates that are valid for over 398 days. */
const serverDays = 397
const caYears = 10
/** Validity begins this long before the certificate is made, for clients with slow clocks. */
const clockDifferenceMs = 3600 * 1000
/** Part of the issuer name. Certificates of other issuers are never overwritten. */
const caName = 'now-playing hub development CA'
/** A server certificate is replaced this many days before it expires. */
const renewDays = 30

/** The paths of the certificate files of a development set-up. */
interface DevelopmentCertificates {
  cert: string
  key: string
  /** The CA certificate that clients must trust (`mosquitto_sub --cafile`). */
  ca: string
}

/**
 * Makes, completes or renews a development CA and a server certificate in `dir`.
 *
 * Several processes may do this at the same time without a lock. Key files are never replaced, so all processes use the
 * same keys. The name of the CA follows from its key. So a certificate of one process fits the CA and the key of
 * another.
 */
export async function ensureDevelopmentCertificates(
  dir: string,
  hosts: readonly string[] = [],
  now = new Date(),
): Promise<DevelopmentCertificates> {
  const path = (name: string) => join(dir, name)
  const files = { cert: path('server.pem'), key: path('server-key.pem'), ca: path('ca.pem') }
  const names = [...new Set(['localhost', '127.0.0.1', '::1', hostname(), ...hosts])].filter(isHostOrAddress)

  await mkdir(dir, { recursive: true })
  const server = await readServer(files)
  // Returns before the key of the CA is read. Only a renewal needs that key, so it may be missing here.
  if (server !== undefined && isFresh(server, names, now)) return files

  await Promise.all([files.cert, files.ca].map(refuseForeign))
  const caKey = await ensureKey(path('ca-key.pem'))
  const ca = await ensureCa(files.ca, caKey, now)
  const serverKey = await ensureKey(files.key)
  const { issueServerCertificate } = await import('./issue.ts')
  const validity = { notBefore: validFrom(now), notAfter: new Date(now.getTime() + serverDays * dayMs) }
  const cert = await issueServerCertificate({ ca, caKey, serverKey, names, ...validity })
  await replaceFile(files.cert, cert, 0o644)
  return files
}

/** The server's certificate and that of the CA, if both and the server's key fit together. */
async function readServer(files: DevelopmentCertificates) {
  const [cert, key, ca] = await Promise.all([files.cert, files.key, files.ca].map(readIfThere))
  try {
    const parsed = { cert: new X509Certificate(cert ?? ''), ca: new X509Certificate(ca ?? '') }
    const fits = keysMatch(parsed.cert, key ?? '') && parsed.cert.verify(parsed.ca.publicKey)
    return fits ? parsed : undefined
  } catch {
    return undefined // not PEM, or cut short: the caller makes the files again
  }
}

function isFresh(
  server: { cert: X509Certificate; ca: X509Certificate },
  names: string[],
  now: Date,
): boolean {
  const soon = now.getTime() + renewDays * dayMs
  const valid = [server.cert, server.ca].every(
    (cert) => Date.parse(cert.validFrom) <= now.getTime() && Date.parse(cert.validTo) > soon,
  )
  return valid && names.every((name) => covers(server.cert, name))
}

function covers(cert: X509Certificate, name: string): boolean {
  return (isIP(name) ? cert.checkIP(name) : cert.checkHost(name)) !== undefined
}

/** Throws rather than overwrite a certificate that an operator has put there. */
async function refuseForeign(path: string): Promise<void> {
  const present = await readIfThere(path)
  const issuer = present === undefined ? undefined : issuerOf(present)
  if (issuer === undefined || issuer.includes(caName)) return
  throw new Error(
    `${path} was not made here and does not fit: name it with HUB_TLS_CERT, HUB_TLS_KEY, HUB_TLS_CA`,
  )
}

/** The key in the file, or a new one. An existing key is never replaced: it may be the only copy. */
async function ensureKey(path: string): Promise<string> {
  // If two processes make a key, both use the key that is written first.
  if ((await readIfThere(path)) === undefined) await createFile(path, makeKey(), 0o600)
  const key = await readFile(path, 'utf8')
  if (!isOurKind(key))
    throw new Error(`${path} is not an unencrypted EC P-256 key in PEM: move it away and start again`)
  return key
}

/**
 * Returns a CA certificate for `caKey`. The CA certificate stays valid for longer than a new server certificate.
 * Replaces a present CA certificate that does not meet this.
 */
async function ensureCa(path: string, caKey: string, now: Date): Promise<string> {
  const present = await readIfThere(path)
  if (present !== undefined && isCaOf(caKey, present, now)) return present
  const made = await makeCaCertificate(caKey, now)
  await replaceFile(path, made, 0o644)
  return made
}

function isCaOf(caKey: string, pem: string, now: Date): boolean {
  try {
    const cert = new X509Certificate(pem)
    const needed = now.getTime() + serverDays * dayMs
    const valid = Date.parse(cert.validFrom) <= now.getTime() && Date.parse(cert.validTo) > needed
    return valid && cert.ca && keysMatch(cert, caKey)
  } catch {
    return false
  }
}

function makeKey(): string {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
}

function isOurKind(privateKey: string): boolean {
  try {
    return createPrivateKey(privateKey).asymmetricKeyDetails?.namedCurve === 'prime256v1'
  } catch {
    return false
  }
}

async function makeCaCertificate(caKey: string, now: Date): Promise<string> {
  const notAfter = new Date(now)
  notAfter.setUTCFullYear(notAfter.getUTCFullYear() + caYears)
  // Each CA needs its own name: clients find the issuer by name.
  const mark = createHash('sha256')
    .update(publicKeyOf(caKey) ?? '')
    .digest('hex')
    .slice(0, 8)
  const { issueCaCertificate } = await import('./issue.ts')
  return issueCaCertificate({ name: `CN=${caName} ${mark}`, caKey, notBefore: validFrom(now), notAfter })
}

function validFrom(now: Date): Date {
  return new Date(now.getTime() - clockDifferenceMs)
}

/** The host name of a container can hold characters that certificates do not allow. */
function isHostOrAddress(name: string): boolean {
  if (isIP(name) > 0) return !name.includes('%') // no zone such as fe80::1%eth0
  return /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(name)
}

function issuerOf(pem: string): string | undefined {
  try {
    return new X509Certificate(pem).issuer
  } catch {
    return undefined
  }
}

function keysMatch(cert: X509Certificate, privateKey: string): boolean {
  const publicKey = publicKeyOf(privateKey)
  return publicKey !== undefined && cert.publicKey.export({ type: 'spki', format: 'pem' }) === publicKey
}

function publicKeyOf(privateKey: string): string | undefined {
  try {
    return createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
  } catch {
    return undefined
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Creates a file with its whole content in one step. An existing file stays. */
async function createFile(path: string, content: string, mode: number): Promise<void> {
  try {
    await fromDraft(path, content, mode, link)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

/** Replaces a file in one step: readers see the old or the new content. */
function replaceFile(path: string, content: string, mode: number): Promise<void> {
  return fromDraft(path, content, mode, rename)
}

/** Writes a draft beside the file, then calls `place`. Removes the draft, also after a failure. */
async function fromDraft(
  path: string,
  content: string,
  mode: number,
  place: (draft: string, path: string) => Promise<void>,
): Promise<void> {
  const draft = join(dirname(path), `.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const file = await open(draft, 'wx', mode)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await place(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
}
