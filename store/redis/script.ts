import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { digits } from '../commit.ts'
import { conditionKinds, kinds } from './changes.ts'

export type Argument = string | number | Buffer

/** Sends one command. Rejects with the error of Redis or of the connection. */
export type Send = (command: string, args: readonly Argument[]) => Promise<unknown>

export type Keys = ReturnType<typeof keysOf>

/** The Redis keys of one store. The braces put all keys in one hash slot: a script cannot use several. */
export function keysOf(space: string) {
  const below = (name: string) => `{${space}}:2:${name}`
  return {
    /** Hash of 3.0.0-beta.1, as `values`. 3.0.0-beta.2 has moved it to `values`. */
    formerValues: `{${space}}:values`,
    /** Hash: key → event time and value. */
    values: below('values'),
    /** Sorted set: all keys, in the order of their bytes. */
    keys: below('keys'),
    /** Stream: the log of changes. */
    log: below('log'),
    /**
     * Hash with three fields:
     * - `id`: the id of the last log entry
     * - `size`: bytes of the log after the newest mark
     * - `number`: the last number that a commit took
     */
    head: below('log-head'),
    /** List of marks: ids of log entries, about `markEvery` bytes apart. The script cuts the log at the oldest mark. */
    marks: below('log-marks'),
    /** String: the number of a node's last group, and the answer of the script. */
    writer: (node: string) => below(`writer:${node}`),
  }
}

/** The position before the first entry of the log. */
export const start = '0-0'

/** Maximum number of marks. A further mark removes the oldest mark, and the log before that mark. */
export const logMarks = 16

/** What the Lua files know of this code, as locals of the same values. */
const constants = [
  `local START, DIGITS, LOG_MARKS = '${start}', ${digits}, ${logMarks}`,
  ...localsOf('KIND', kinds),
  ...localsOf('CONDITION', conditionKinds),
]

export const commitScript = createScript('commit')
export const pageScript = createScript('page')
export const numberScript = createScript('number')

/** Runs the script of a Lua file, by its hash, or by its text if Redis does not know the hash. */
function createScript(file: string) {
  const lua = [...constants, readLua('refuse'), readLua(file)].join('\n')
  const hash = createHash('sha1').update(lua).digest('hex')
  return async (send: Send, keys: readonly string[], args: readonly Argument[]): Promise<unknown> => {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await send('evalsha', [hash, ...rest])
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return send('eval', [lua, ...rest])
    }
  }
}

function readLua(file: string): string {
  return readFileSync(new URL(`./${file}.lua`, import.meta.url), 'utf8')
}

/** `notNewerThan` of `CONDITION` becomes `CONDITION_NOT_NEWER_THAN`. */
function localsOf(prefix: string, numbers: Readonly<Record<string, number>>): string[] {
  return Object.entries(numbers).map(([name, number]) => {
    return `local ${prefix}_${name.replace(/[A-Z]/g, '_$&').toUpperCase()} = ${number}`
  })
}
