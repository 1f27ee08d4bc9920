import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { checkFile } from '../../admin/backup/export-file.ts'
import { pathBehindLinks } from '../../config/foreign-links.ts'
import { sync } from '../../config/sync.ts'
import { type LocalCommand, usage } from '../command.ts'
import { type CallFailure, openLines } from '../connection.ts'
import { sizeText } from '../print.ts'
import { unlessInterrupted } from './interrupted.ts'
import { atSocket, failureOf, type Place, stoppedOption } from './place.ts'
import { progress } from './progress.ts'

/** What a node answers to `export`. */
interface Exported {
  file: string
  records: number
  bytes: number
  sha256: string
  exportedAt: string
  release: string
  from: string
}

/** `hubctl export FILE`. Writes and checks a draft, then renames the draft to FILE. */
export const exportCommand: LocalCommand<Exported> = {
  words: 'export',
  summary: 'copy everything that the hub has stored into a file, while it goes on; keep the file secret',
  about: '[How to use it](operators.md#files-and-backup).',
  parameters: ['<file>'],
  options: [stoppedOption],
  run: (input, how) => exportTo(input.text('file'), atSocket(how, input)),
  print: (result, printer) =>
    printer.sentence('Exported {records} records ({size}) into {file}.', {
      ...result,
      size: sizeText(result.bytes),
    }),
}

async function exportTo(named: string, place: Place): Promise<{ result: Exported } | { error: CallFailure }> {
  const file = await fileAt(named)
  const draft = `${file}.part`
  try {
    await rm(draft, { force: true })
    // The draft holds keys and password hashes: an interruption must remove it.
    return await unlessInterrupted(async (signal) => {
      const lines = place.stopped
        ? await linesOfStopped()
        : await openLines(place.socketPath, 'export', place.who, signal)
      signal.throwIfAborted()
      if ('error' in lines) return lines
      try {
        const written = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true })
        await pipeline(lines.stream, progress('exported'), createGzip({ level: 4 }), written, { signal })
      } finally {
        await lines.close()
      }
      const { records, sha256, at, release, from } = await checkFile(draft, signal)
      const { size: bytes } = await stat(draft)
      signal.throwIfAborted()
      await rename(draft, file)
      // Some file systems cannot sync a directory. The file is complete all the same.
      await sync(dirname(file)).catch(() => undefined)
      return { result: { file: named, records, bytes, sha256, exportedAt: at, release, from } }
    })
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    return failureOf('export', error)
  }
}

/** The file behind a name or symbolic link. Throws a `usage` error for a directory, device or pipe. */
async function fileAt(name: string): Promise<string> {
  const path = await pathBehindLinks(name).catch((error: Error) => {
    throw usage(`FILE: ${error.message}`)
  })
  const found = await stat(path).catch(() => undefined)
  if (!found || found.isFile()) return path
  throw usage(`FILE must be a file, or a name that is still free: ${name} is neither`)
}

/** Imports the code here: other commands start sooner without it. */
async function linesOfStopped() {
  const { openStopped } = await import('../../admin/backup/stopped.ts')
  const { lines, close } = await openStopped(process.env, process.cwd())
  const text = async function* () {
    for await (const line of lines) yield `${JSON.stringify(line)}\n`
  }
  return { stream: Readable.from(text()), close }
}
