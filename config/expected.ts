import { X509Certificate } from 'node:crypto'
import { access, constants, readFile } from 'node:fs/promises'
import { pathBehindLinks } from './foreign-links.ts'
import { makeDirectory } from './make-directory.ts'
import { show } from './mask.ts'

/**
 * Does work that depends on a setting. If the work fails, the error names the setting, its value and the expected
 * value. `expectation` may depend on the failure.
 */
export async function expected<T>(
  setting: string,
  value: unknown,
  expectation: string | ((cause: unknown) => string),
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const shown = value === undefined ? 'unset' : show(setting, value)
    const what = typeof expectation === 'string' ? expectation : expectation(cause)
    throw new Error(`${setting}: ${shown}, expected ${what}`, { cause })
  }
}

/** Makes the data directory, unless it is there already. */
export function ensureDataDirectory(path: string): Promise<void> {
  return expected('HUB_DATA_DIR', path, 'a directory that the node may write to', async () => {
    await pathBehindLinks(path)
    await makeDirectory(path, 0o700)
    await access(path, constants.W_OK | constants.X_OK)
  })
}

/** Reads the PEM file with one or several CA certificates that a setting names. */
export function readCa(setting: string, path: string): Promise<string> {
  return expected(setting, path, 'a certificate in PEM', async () => {
    const pem = await readFile(path, 'utf8')
    const [, ...certificates] = pem.split(beginning)
    if (certificates.length === 0) throw new Error('it has none')
    // Check each certificate, because TLS would silently ignore one that cannot be read.
    for (const [index, rest] of certificates.entries()) {
      try {
        new X509Certificate(`${beginning}${rest}`)
      } catch (cause) {
        throw new Error(`certificate ${index + 1} of ${certificates.length} is broken`, { cause })
      }
    }
    return pem
  })
}

const beginning = '-----BEGIN CERTIFICATE-----'

/** Opens a listener. If its port or address is not available, the error names the setting. */
export async function listening<T>(
  portSetting: string,
  { host, port }: { host: string; port: number },
  open: () => Promise<T>,
): Promise<T> {
  try {
    return await open()
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const fail = () => Promise.reject(cause)
    if (code === 'EADDRINUSE') return expected(portSetting, port, 'a port that is free', fail)
    if (code === 'EACCES') return expected(portSetting, port, 'a port that this user may open', fail)
    if (codesOfHost.has(code)) return expected('HUB_HOST', host, 'an address of this machine', fail)
    throw cause
  }
}

/** Error codes of an address that the system refuses. EINVAL: a link-local address without its interface. */
const codesOfHost = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EAI_AGAIN', 'EINVAL', 'ENOTFOUND'])
