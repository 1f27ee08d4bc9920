const masked = '***'

/**
 * A setting as it may be shown: passwords, tokens and the credentials in URLs are masked. What counts
 * as secret depends on the name; values inside of objects and lists are masked by their own names.
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

// Not every `key`: `tlsKey` is the path of one.
const secretName = /password|passwd|secret|token|(?<!per)credential|authorization|api[-_]?key|^key$/i

/**
 * Works on broken URLs too, because refused ones are shown. It rather masks a letter too many than shows a password: the
 * names of parameters stay, their values go.
 */
function maskUrl(text: string): string {
  return text
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*[:/].*@|^([a-z][a-z0-9+.-]*:\/\/).*@/is, '$1$2***@')
    .replace(/([?&;][^=&;#]*=)[^&;#]*/g, `$1${masked}`)
    .replace(/(:\/\/.*?\?)[^=&;#]+(?=#|$)/s, `$1${masked}`)
    .replace(/(:\/\/.*?#).+/s, `$1${masked}`)
}

/** A value as a problem names it. */
export function show(name: string, value: unknown): string {
  const shown = JSON.stringify(mask(name, value))
  return shown.length > 200 ? `${shown.slice(0, 200)}…` : shown
}
