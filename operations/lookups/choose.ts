/**
 * Returns at most `limit` rows that match. Each field of a row must equal the value in `wanted`, or contain that value
 * if the field is a list. An undefined value matches every row.
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
