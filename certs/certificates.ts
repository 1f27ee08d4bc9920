import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createSecureContext, rootCertificates } from 'node:tls'
import type { Log } from '../telemetry/log.ts'
import { reasonOf } from '../telemetry/reason.ts'

export type Certificates = ReturnType<typeof createCertificates>

/** Certificate and key of a TLS listener, PEM. */
interface KeyPair {
  cert: Buffer
  key: Buffer
}

/**
 * Holds the certificate and key in use. Takes a replaced pair without a restart (design.md §3), if the pair is usable.
 * Throws an error of one line if the first files are unusable.
 */
export function createCertificates(parts: {
  certPath: string
  keyPath: string
  /** PEM: the CA that clients are told to trust. */
  ca?: string | undefined
  log: Pick<Log, 'info' | 'warn' | 'error'>
  /** Time between two looks at the files, milliseconds. */
  intervalMs?: number
  clock?: () => number
}) {
  const { certPath, keyPath, ca = '', log, intervalMs = 1000, clock = Date.now } = parts
  const listeners = new Set<(pair: KeyPair) => void>()
  let current = check(readPair())
  warnAboutCurrent()
  // What the last look found, and when the node acts on it; undefined: it has acted.
  let last: { found: string; from: number | undefined } = {
    found: contentOf(current.pair),
    from: undefined,
  }
  let looking = false
  // Compares content: modification times and inotify both miss a swapped symlink (mosquitto#524).
  const timer = setInterval(() => void look(), intervalMs).unref()

  return {
    /** The certificate and key in use now. */
    current: (): KeyPair => current.pair,

    /** When the certificate in use expires. */
    notAfter: (): Date => new Date(current.certificate.validTo),

    /** Calls the listener with every new usable pair, until `close`. */
    onChange: (listener: (pair: KeyPair) => void): void => void listeners.add(listener),

    look,

    /** Stops looking at the files. */
    close(): void {
      clearInterval(timer)
      listeners.clear()
    },
  }

  async function look(): Promise<void> {
    if (looking) return
    looking = true
    try {
      judge(await readAgain())
    } finally {
      looking = false
    }
  }

  /**
   * Acts if two looks in a row find the same content. A single look could find one file still old, or a chain half
   * written.
   */
  function judge(files: KeyPair | { reason: string }): void {
    const found = 'reason' in files ? files.reason : contentOf(files)
    if (found !== last.found) {
      last = { found, from: found === contentOf(current.pair) ? undefined : 0 }
    } else if (last.from !== undefined && last.from <= clock()) {
      last.from = undefined
      if ('reason' in files) keepOld(files.reason)
      else take(files)
    }
  }

  async function readAgain(): Promise<KeyPair | { reason: string }> {
    try {
      const [cert, key] = await Promise.all([readFile(certPath), readFile(keyPath)])
      return { cert, key }
    } catch (error) {
      return { reason: reasonOf(error) }
    }
  }

  function take(pair: KeyPair): void {
    let next: typeof current
    try {
      next = check(pair)
    } catch (error) {
      keepOld(reasonOf(error))
      return
    }
    const problem = whyNotAt(clock(), next.certificate)
    // No client would get in with the new one any more.
    if (problem !== undefined && whyNotAt(clock(), current.certificate) === undefined) {
      keepOld(`${certPath} ${problem}`)
      const from = Date.parse(next.certificate.validFrom)
      if (from > clock()) last.from = from
      return
    }
    current = next
    log.info({ certPath, notAfter: current.certificate.validTo }, 'certificate replaced')
    warnAboutCurrent()
    for (const listener of listeners) handOn(listener)
  }

  function handOn(listener: (pair: KeyPair) => void): void {
    try {
      listener(current.pair)
    } catch (err) {
      log.error({ err, certPath }, 'a listener could not change to the replaced certificate')
    }
  }

  function keepOld(reason: string): void {
    log.error({ certPath, keyPath, reason }, 'the replaced certificate cannot be used, the old one stays')
  }

  function warnAboutCurrent(): void {
    const { certificate, pair } = current
    const { validFrom, validTo } = certificate
    const now = clock()
    if (Date.parse(validTo) <= now) log.warn({ certPath, notAfter: validTo }, 'the certificate has expired')
    if (Date.parse(validFrom) > now)
      log.warn({ certPath, notBefore: validFrom }, 'the certificate is not valid yet')
    const issuer = missingIssuer(certificate, certificatesIn(pair.cert.toString('latin1')), ca)
    if (issuer !== undefined) log.warn({ certPath, issuer }, 'the certificate may lack the one of its issuer')
  }

  function readPair(): KeyPair {
    return { cert: readPem('certificate', certPath), key: readPem('key', keyPath) }
  }

  function check(pair: KeyPair) {
    const certificate = parse(`${certPath} is not a certificate in PEM`, () => new X509Certificate(pair.cert))
    const { validFrom, validTo } = certificate
    // OpenSSL reads such a certificate, and clients refuse it. The time may be a second 60, or a day that does not exist.
    if (Number.isNaN(Date.parse(validFrom)) || Number.isNaN(Date.parse(validTo)))
      throw new Error(`${certPath} is valid from ${validFrom} to ${validTo}`)
    const key = parse(`${keyPath} is not an unencrypted private key in PEM`, () => createPrivateKey(pair.key))
    if (!certificate.checkPrivateKey(key))
      throw new Error(`the key ${keyPath} does not belong to ${certPath}`)
    // OpenSSL also refuses keys that are too weak, and broken intermediate certificates.
    parse(`TLS cannot use ${certPath}`, () => createSecureContext(pair))
    return { pair, certificate }
  }
}

function contentOf({ cert, key }: KeyPair): string {
  return `${cert.toString('latin1')}\n${key.toString('latin1')}`
}

function readPem(what: string, path: string): Buffer {
  return parse(`cannot read the ${what} ${path}`, () => readFileSync(path))
}

function parse<T>(failure: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Error(`${failure} (${reasonOf(error)})`)
  }
}

/** Why clients refuse the certificate at this time. Undefined: they do not. */
function whyNotAt(now: number, { validFrom, validTo }: X509Certificate): string | undefined {
  if (Date.parse(validTo) <= now) return `has expired (${validTo})`
  return Date.parse(validFrom) > now ? `is not valid yet (${validFrom})` : undefined
}

/**
 * Goes from a certificate to its issuers among `others`. Returns the first issuer that is not there, and is neither a
 * CA that everybody knows nor `ca`. Undefined: the chain is complete.
 */
function missingIssuer(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  ca: string,
): string | undefined {
  const rest = new Set(others)
  let last = leaf
  for (;;) {
    if (last.checkIssued(last)) return undefined
    const next = [...rest].find((other) => last.checkIssued(other))
    if (!next) break
    rest.delete(next)
    last = next
  }
  const roots = [...certificatesIn(ca), ...rootCertificates.map((pem) => new X509Certificate(pem))]
  return roots.some((root) => last.checkIssued(root)) ? undefined : last.issuer.replaceAll('\n', ', ')
}

function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}
