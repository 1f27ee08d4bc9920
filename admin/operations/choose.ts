/**
 * Returns the rows of a list that match, at most `limit`. `wanted` has a value for each field that matters. The field
 * of a row must equal the value or, if the field is a list, contain it. The value undefined matches every row.
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
