import { isRecord } from '../../event/json.ts'
import { digits } from '../../store/commit.ts'
import type { StoredRecord } from '../../store/store.ts'

/** The form of the values of each family of keys. Of other families, an import takes every value. */
export const families: Record<string, keyof typeof forms> = {
  'credential/': 'object',
  'credential-use/': 'object',
  'user/': 'user',
  'familiar-place/': 'object',
  'signing-key/': 'object',
  'subscription/': 'object',
  'lifecycle/': 'object',
  'traffic/': 'object',
  'topic/': 'object',
  'session/': 'session',
  'time/': 'object',
  'push-standing/': 'json',
  'attempt/': 'json',
  'progress/': 'json',
  'work/': 'positioned',
  'work-dead/': 'positioned',
}

const forms = {
  object: { expected: 'a JSON object', isOne: (value: Buffer) => isObject(parsed(value)) },
  user: {
    expected: 'a JSON object with userId and email',
    isOne: (value: Buffer) => has(parsed(value), { userId: isText, email: isText }),
  },
  session: {
    expected: 'a JSON object with clientId, principal, subscriptions and owed',
    isOne: (value: Buffer) =>
      has(parsed(value), {
        ...{ clientId: isText, principal: isObject, subscriptions: Array.isArray, owed: Array.isArray },
      }),
  },
  json: { expected: 'JSON', isOne: (value: Buffer) => parsed(value) !== undefined },
  positioned: {
    expected: 'a position and a JSON object',
    isOne: (value: Buffer) =>
      /^\d+$/.test(value.toString('latin1', 0, digits)) &&
      value.includes(10, digits) &&
      isObject(parsed(value.subarray(digits, value.indexOf(10, digits)))),
  },
}

/** Why no node could read a record. Undefined: its form is right, or the import does not check its family. */
export function problemOf({ key, value }: StoredRecord): string | undefined {
  const form = families[key.slice(0, key.indexOf('/') + 1)]
  if (value === undefined || form === undefined || forms[form].isOne(value)) return undefined
  return `the record ${JSON.stringify(key.slice(0, 200))} cannot be read, expected ${forms[form].expected}`
}

function parsed(value: Buffer): unknown {
  try {
    return JSON.parse(value.toString())
  } catch {
    return undefined
  }
}

/** Whether a value is an object with these fields, without which no node could start. */
function has(value: unknown, fields: Record<string, (field: unknown) => boolean>): boolean {
  if (!isRecord(value)) return false
  return Object.entries(fields).every(([name, isOne]) => isOne(value[name]))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
