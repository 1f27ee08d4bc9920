/**
 * The rows of a list that are asked for, at most `limit`. `wanted`: fields with the value that they must have, or that
 * must be among theirs; undefined: any.
 */
export function choose<Row>(
  rows: readonly Row[],
  wanted: Record<string, unknown>,
  limit?: number,
): readonly Row[] {
  const asked = Object.entries(wanted).filter(([, value]) => value !== undefined)
  const chosen = rows.filter((row) => asked.every(([field, value]) => has(Object(row)[field], value)))
  return limit === undefined ? chosen : chosen.slice(0, limit)
}

function has(found: unknown, value: unknown): boolean {
  return Array.isArray(found) ? found.includes(value) : found === value
}
