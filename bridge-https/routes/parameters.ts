import { type ErrorItem, errorItem, quote } from '../../event/error.ts'

/** Errors of a parameter of the query that must be a whole number. Undefined is fine. */
export function checkNumber(
  name: string,
  value: unknown,
  { minimum, maximum }: { minimum: number; maximum: number },
): ErrorItem[] {
  if (value === undefined) return []
  const path = `.query.${name}`
  const expected = `expected a whole number from ${minimum} to ${maximum}`
  if (typeof value !== 'string' || !/^-?[0-9]{1,20}$/.test(value))
    return [errorItem('type.openapi.validation', path, `${quote(value)}, ${expected}`)]
  if (Number(value) < minimum) return [errorItem('minimum.openapi.validation', path, `${value}, ${expected}`)]
  if (Number(value) > maximum) return [errorItem('maximum.openapi.validation', path, `${value}, ${expected}`)]
  return []
}

/** The values of a parameter of the query that may be repeated, each once. */
export function valuesOf(value: unknown): string[] {
  return [...new Set([value ?? []].flat().map(String))]
}
