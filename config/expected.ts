import { show } from './mask.ts'

/**
 * Does what depends on a setting. Its failure begins with the setting, its value and what was expected, as
 * every other problem of the configuration does.
 */
export async function expected<T>(
  setting: string,
  value: unknown,
  expectation: string,
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const shown = value === undefined ? 'unset' : show(setting, value)
    throw new Error(`${setting}: ${shown}, expected ${expectation}`, { cause })
  }
}

/** Opens a listener; a port or an address that cannot be had is a problem of its setting. */
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
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      return expected('HUB_HOST', host, 'an address of this machine', fail)
    }
    throw cause
  }
}
