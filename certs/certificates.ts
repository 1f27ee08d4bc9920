import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
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
  log: Pick<Log, 'info' | 'warn' | 'error'>
  /** Time between two looks at the files, milliseconds. */
  intervalMs?: number
}) {
  const { certPath, keyPath, log, intervalMs = 1000 } = parts
  const listeners = new Set<(pair: KeyPair) => void>()
  let current = check(readPair())
  warnAboutValidity()
  // What the last look found, and whether the node has acted on it.
  let last = { found: contentOf(current.pair), isDone: true }
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
      last = { found, isDone: found === contentOf(current.pair) }
    } else if (!last.isDone) {
      last.isDone = true
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
    try {
      current = check(pair)
    } catch (error) {
      keepOld(reasonOf(error))
      return
    }
    log.info({ certPath, notAfter: current.certificate.validTo }, 'certificate replaced')
    warnAboutValidity()
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

  function warnAboutValidity(): void {
    const { validFrom, validTo } = current.certificate
    const now = Date.now()
    if (Date.parse(validTo) <= now) log.warn({ certPath, notAfter: validTo }, 'the certificate has expired')
    if (Date.parse(validFrom) > now)
      log.warn({ certPath, notBefore: validFrom }, 'the certificate is not valid yet')
  }

  function readPair(): KeyPair {
    return { cert: readPem('certificate', certPath), key: readPem('key', keyPath) }
  }

  function check(pair: KeyPair) {
    const certificate = parse(`${certPath} is not a certificate in PEM`, () => new X509Certificate(pair.cert))
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
