import { parseJson } from '../event/json.ts'
import { jsonFault } from '../event/json-fault.ts'

/** Reads the content of a JSON file. Problems never quote the file: any word may be a password. */
export function readJson(content: Uint8Array): { value: unknown } | { problems: string[] } {
  const parsed = parseJson(content)
  if ('value' in parsed) return parsed
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    return { problems: ['it is not UTF-8, expected JSON'] }
  }
  if (text.startsWith('\uFEFF')) return { problems: ['it starts with a byte order mark, expected JSON'] }
  const fault = jsonFault(text)
  if (fault !== undefined) return { problems: [fault] }
  if (!/^\s*\{/.test(text)) return { problems: ['expected an object'] }
  // `parseJson` also refuses some JSON, such as a key that occurs twice.
  return { problems: parsed.errors.map(({ path, message }) => `at ${path}: ${message}`) }
}
