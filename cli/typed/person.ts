import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { usage } from '../command.ts'

/** Whether a person can answer on the terminal. */
export function isPersonThere(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks a person on the terminal. `isSecret`: the typed text is not shown. */
export async function askPerson(question: string, { isSecret = false } = {}): Promise<string> {
  // With `terminal: true`, readline echoes the typed text, in place of the terminal. For a secret, `output` drops it.
  const output = isSecret ? new Writable({ write: (_chunk, _encoding, done) => done() }) : process.stderr
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  // Prints the question only now, because from here on the terminal does not show typed text.
  if (isSecret) process.stderr.write(question)
  const given = new Promise<never>((_, reject) => {
    lines.once('SIGINT', () => reject(usage('given up')))
    lines.once('close', () => reject(usage('nothing was typed')))
  })
  try {
    return await Promise.race([lines.question(isSecret ? '' : question), given])
  } finally {
    given.catch(() => undefined)
    lines.close()
    if (isSecret) process.stderr.write('\n')
  }
}

/** Reads the first `count` lines of the standard input. For scripts: `askPerson` asks a person at a terminal. */
export async function readInput(count: number): Promise<string[]> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk))
    length += chunk.length
    if (length > maxInputBytes) throw usage('the standard input is too long')
  }
  return Buffer.concat(chunks).toString().split(/\r?\n/).slice(0, count)
}

const maxInputBytes = 64 * 1024
