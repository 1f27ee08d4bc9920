import { dirname } from 'node:path'
import { reasonOf } from '../../../telemetry/reason.ts'
import type { FileContent } from '../../outputs/output.ts'
import { replaceFile } from './file.ts'

/* The process that writes the files of outputs. `file-process.ts` starts it, and says why. */

export interface FileTask extends FileContent {
  id: number
}

export interface FileResult {
  id: number
  /** Null: the file is replaced. */
  error: string | null
}

/** The last task of each folder. One that does not answer has one thread, and holds up its own files only. */
const tails = new Map<string, Promise<void>>()

process.on('message', (task: FileTask) => void write(task))
// The hub has ended. An orderly exit would wait for a folder that does not answer.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// Signals are for the hub: it says when to end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

async function write({ id, file, content }: FileTask): Promise<void> {
  const folder = dirname(file)
  const before = tails.get(folder) ?? Promise.resolve()
  const done = before.then(() => replaceFile({ file, content }))
  const tail = done.catch(() => undefined)
  tails.set(folder, tail)
  const error = await done.then(() => null, reasonOf)
  if (tails.get(folder) === tail) tails.delete(folder)
  const result: FileResult = { id, error }
  if (process.connected) process.send?.(result)
}
