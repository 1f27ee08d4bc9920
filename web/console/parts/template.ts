import { amount, capital, relative } from '../words.ts'

/** The value at a path such as `store.ok`. Undefined: there is none. */
export function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => Object(inner)[name], value)
}

/** Whether there is nothing to show: no value, or an empty text or list. */
export function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** Whether each field of `where` has one of its values. A field that is missing counts as null. */
export function fits(value: unknown, where: Readonly<Record<string, readonly unknown[]>> = {}): boolean {
  return Object.entries(where).every(([path, values]) => values.includes(valueAt(value, path) ?? null))
}

/**
 * A sentence with the values of its fields, as `InConsole` describes it. Undefined: a field is empty, false or 0, so
 * there is nothing to say.
 */
function sentence(template: string, value: unknown): string | undefined {
  let isEmpty = false
  const text = template.replace(/\{([\w.]+)(\?|\|[^}]+)?\}/g, (_, path: string, way = '') => {
    const found = valueAt(value, path)
    const noun = way.slice(1)
    if (!found || (Array.isArray(found) && found.length === 0)) isEmpty = true
    if (way === '?') return ''
    return noun === '' ? textOf(found) : amount(Array.isArray(found) ? found.length : Number(found), noun)
  })
  return isEmpty ? undefined : text
}

/** The sentences that have something to say. */
export function sentences(templates: readonly string[] = [], value: unknown): string[] {
  return templates.flatMap((template) => sentence(template, value) ?? [])
}

/** Whether a text is an instant in ISO 8601. */
export function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' && isInstant(value) ? relative(value) : String(value)
}

/** The words of a field: `clientId` is "Client", `revokeAt` is "Revoke", `keepAlive` is "Keep alive". */
export function wordsOf(field: string): string {
  const words = field
    .replace(/(?<=.)(Id|At)$/, '')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replaceAll(/[-_.]/g, ' ')
  return capital(words)
}
