import { cut } from '../event/cut.ts'

const masked = '***'

/**
 * Masks passwords, tokens, and the credentials in URLs. The schema of a setting says whether its value is secret. Where
 * there is none, as for a field of a plugin target that belongs to its driver, the name says it.
 */
export function mask(name: string, value: unknown, schema?: object): unknown {
  const { writeOnly, properties, items }: Keywords = schemaOf(value, schema) ?? {
    writeOnly: secretName.test(name),
  }
  if (writeOnly) return masked
  if (typeof value === 'string') return maskUrl(value)
  if (Array.isArray(value)) return value.map((item) => mask(name, item, items))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, mask(key, inner, properties?.[key])]),
    )
  }
  return value
}

/** The schema of a value: of several, the one that its discriminator names; if there is none, all of it is a secret. */
function schemaOf(value: unknown, schema: Keywords | undefined): Keywords | undefined {
  const { discriminator, oneOf } = schema ?? {}
  if (!discriminator) return schema
  const { propertyName } = discriminator
  const named = oneOf?.find(({ properties }) => {
    const { const: only } = Object(properties?.[propertyName])
    return only !== undefined && only === Object(value)[propertyName]
  })
  return named ?? { writeOnly: true }
}

/** The keywords of JSON Schema that matter here. */
interface Keywords {
  discriminator?: { propertyName: string }
  oneOf?: Keywords[]
  writeOnly?: boolean
  properties?: Record<string, object>
  items?: object
}

/** `key` counts only as the whole name. All other words count anywhere in a name. */
const secretName = /password|passwd|secret|token|credential|authorization|api[-_]?key|^key$/i

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
export function show(name: string, value: unknown, schema?: object): string {
  const shown = JSON.stringify(mask(name, value, schema))
  return shown.length > 200 ? `${cut(shown, 200)}…` : shown
}
