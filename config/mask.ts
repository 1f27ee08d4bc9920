const masked = '***'

/**
 * A setting as it may be shown: passwords, tokens and the credentials in URLs are masked. The name decides whether a
 * value is secret: the name of the setting, or of the field inside an object. Items of a list have the list's name.
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

// Only the whole name `key` is secret, not every name with `key`: `tlsKey` is the path of a key.
const secretName = /password|passwd|secret|token|(?<!per)credential|authorization|api[-_]?key|^key$/i

/**
 * Works on broken URLs too, because a problem shows the URL that was refused. It masks a letter too many rather than
 * show a password. Names of parameters stay, their values are masked.
 */
function maskUrl(text: string): string {
  return text
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*[:/].*@|^([a-z][a-z0-9+.-]*:\/\/).*@/is, '$1$2***@')
    .replace(/([?&;][^=&;#]*=)[^&;#]*/g, `$1${masked}`)
    .replace(/(:\/\/.*?\?)[^=&;#]+(?=#|$)/s, `$1${masked}`)
    .replace(/(:\/\/.*?#).+/s, `$1${masked}`)
}

/** A value as the text of a problem shows it. */
export function show(name: string, value: unknown): string {
  const shown = JSON.stringify(mask(name, value))
  return shown.length > 200 ? `${shown.slice(0, 200)}…` : shown
}
