import { cut } from '../event/cut.ts'

const masked = '***'

/**
 * Masks passwords, tokens, and the credentials in URLs. The name of a setting or field says whether the value is
 * secret.
 */
export function mask(name: string, value: unknown): unknown {
  if (secretName.test(name)) return masked
  if (typeof value === 'string') return maskUrl(value)
  if (Array.isArray(value)) return value.map((item) => mask(name, item))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mask(key, inner)]))
  }
  return value
}

// `key` counts only as the whole name, because `tlsKey` is the path of a key. All other words count anywhere in a name.
// `(?<!per)` excludes `maxSessionsPerCredential`, which is a number.
const secretName = /password|passwd|secret|token|(?<!per)credential|authorization|api[-_]?key|^key$/i

/**
 * Masks the secrets in a URL; in doubt, masks too much. Works on broken URLs, too: error messages show URLs that were
 * refused.
 */
function maskUrl(text: string): string {
  return text
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*[:/].*@|^([a-z][a-z0-9+.-]*:\/\/).*@/is, '$1$2***@')
    .replace(/([?&;][^=&;#]*=)[^&;#]*/g, `$1${masked}`)
    .replace(/(:\/\/.*?\?)[^=&;#]+(?=#|$)/s, `$1${masked}`)
    .replace(/(:\/\/.*?#).+/s, `$1${masked}`)
}

/** The value of a setting as error messages show it: masked, and cut after 200 characters. */
export function show(name: string, value: unknown): string {
  const shown = JSON.stringify(mask(name, value))
  return shown.length > 200 ? `${cut(shown, 200)}…` : shown
}
