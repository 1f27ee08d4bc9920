import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { usage } from '../command.ts'

/** Whether a person can answer on the terminal. */
export function isPersonThere(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** A question to a person. `isSecret`: the typed answer is not shown. */
interface Question {
  text: string
  isSecret?: boolean
}

/**
 * Asks a person on the terminal. Resolves with the answers, one for each line: a password manager may type address and
 * password at once.
 */
export async function askPerson(questions: readonly Question[]): Promise<string[]> {
  let isHidden = false
  // With `terminal: true`, readline writes the typed text to `output`. While `isHidden` is set, `output` drops that
  // text.
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!isHidden) process.stderr.write(chunk)
      done()
    },
  })
  const lines = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 })
  try {
    return await new Promise((resolve, reject) => {
      const answers: string[] = []
      lines.once('SIGINT', () => reject(usage('given up')))
      lines.once('close', () => reject(usage('nothing was typed')))
      lines.on('line', (line) => {
        if (isHidden) process.stderr.write('\n')
        if (answers.push(line) < questions.length) ask()
        else resolve(answers)
      })
      ask()

      function ask(): void {
        const { text = '', isSecret = false } = questions[answers.length] ?? {}
        isHidden = isSecret
        // `isHidden` must be set before the question appears, because the person may type at once.
        if (isSecret) process.stderr.write(text)
        lines.setPrompt(isSecret ? '' : text)
        lines.prompt()
      }
    })
  } finally {
    lines.close()
  }
}

/** Reads the first `count` lines of the standard input, for scripts. `askPerson` asks at a terminal. */
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
