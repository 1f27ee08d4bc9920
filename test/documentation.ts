import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { projectFile } from './root.ts'

/** Reads a page of `docs/`. */
export function readPage(name: string): string {
  return readFileSync(projectFile(`docs/${name}`), 'utf8')
}

/** Returns the one code block in this language that contains `having`. Throws unless exactly one does. */
export function codeBlock(page: string, language: string, having: string): string {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))]
    .map(([, block = '']) => block)
    .filter((block) => block.includes(having))
  const [block] = blocks
  if (block === undefined || blocks.length > 1) throw new Error(`${blocks.length} blocks have ${having}`)
  return block
}

/** Starts a program and collects the lines that it prints. The program ends with the test. */
export function startProgram(
  t: Test,
  command: readonly string[],
  options: { cwd: string; env: Record<string, string> },
) {
  const [program = '', ...args] = command
  const child: ChildProcess = spawn(program, args, options)
  const lines: string[] = []
  const complaints: string[] = []
  const waiting = new Set<() => void>()
  const check = () => {
    for (const look of waiting) look()
  }
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue
    createInterface(stream).on('line', (line) => {
      lines.push(line)
      if (stream === child.stderr) complaints.push(line)
      check()
    })
  }
  const ended = once(child, 'close').then(check, check)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })

  return {
    lines,
    /** The lines of these that stand on stderr. */
    complaints,
    /** Writes to its standard input. */
    write: (text: string) => void child.stdin?.write(text),
    /** Ends its standard input. */
    end: () => void child.stdin?.end(),
    /** Ends it like kill -9. */
    kill: () => child.kill('SIGKILL'),
    /** Resolves with the exit code when the program has ended. */
    ended: ended.then(() => child.exitCode),
    /** Resolves with the first line that matches. Rejects if the program ends without one. */
    line(pattern: RegExp): Promise<RegExpExecArray> {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = lines.map((line) => pattern.exec(line)).find((match) => match !== null)
          const isRunning = child.exitCode === null && child.signalCode === null
          if (!found && isRunning) return
          waiting.delete(look)
          if (found) resolve(found)
          else reject(new Error(`${program} ended:\n${lines.join('\n')}`))
        }
        waiting.add(look)
        look()
      })
    },
  }
}

/** The link anchors of the headings of a page (`## Who may do what` → `who-may-do-what`). */
export function anchorsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
}
