import { createReadStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { offeredName } from '../../admin/backup/backup-commands.ts'
import { type About, checkFile } from '../../admin/backup/export-file.ts'
import { waitingName } from '../../admin/backup/importing.ts'
import { sync } from '../../config/sync.ts'
import { Type } from '../../event/type.ts'
import { type LocalCommand, usage } from '../command.ts'
import { type CallFailure, call } from '../connection.ts'
import { fits } from '../known-answer.ts'
import { unlessInterrupted } from './interrupted.ts'
import { atSocket, failureOf, type Place, stoppedOption } from './place.ts'
import { progress } from './progress.ts'

/** Pause between two requests that ask whether the node is back, milliseconds. */
const askEveryMs = 200
/** Longest wait for the node to start again, milliseconds. */
const patienceMs = 30 * 60_000

/** The answers of a node to `import` and `import.outcome`. `run`: which start of the node answers. */
const takenAnswer = Type.Object({ run: Type.String(), waits: Type.Optional(Type.Boolean()) })
const outcomeAnswer = Type.Object({
  run: Type.String(),
  refused: Type.Optional(Type.String()),
  last: Type.Optional(Type.String()),
})

type Done = { result: Imported } | { error: CallFailure }

/** What was taken in. `waitsIn`: the next start of the node takes it in, from this file. */
type Imported = Pick<About, 'records' | 'sha256' | 'release' | 'from'> & {
  file: string
  exportedAt: About['at']
  waits?: true
  waitsIn?: string
}

/** `hubctl import FILE`. */
export const importOfFile: LocalCommand<Imported> = {
  words: 'import',
  summary: 'take a file of hubctl export into an empty store; the node starts again meanwhile',
  parameters: ['<file>'],
  options: [stoppedOption],
  run: (input, how) => importFrom(input.text('file'), atSocket(how, input)),
  print: (result, printer) =>
    printer.sentence(
      result.waits
        ? 'The next start of the node takes in {records} records of {exportedAt}, which wait in {waitsIn}.'
        : 'Imported {records} records of {exportedAt} from {file}.',
      result,
    ),
}

async function importFrom(file: string, place: Place): Promise<Done> {
  // A pipe can be read only once, and the file is read twice.
  const found = await stat(file).catch(() => undefined)
  if (found && !found.isFile()) throw usage(`FILE must be a file of hubctl export: ${file} is no file`)
  try {
    // Check the file first. The node would restart even for an unusable file.
    const about = await checkFile(file)
    return place.stopped ? await leaveFor(file, about, place.who) : await offer(file, about, place)
  } catch (error) {
    return failureOf('import', error)
  }
}

/** Puts the file where the next start of the node looks for it. */
async function leaveFor(file: string, about: About, who: string): Promise<Done> {
  const { dataDirOfStopped } = await import('../../admin/backup/stopped.ts')
  const dataDir = await dataDirOfStopped(process.env, process.cwd())
  const socketPath = join(dataDir, 'admin.sock')
  if (!('error' in (await call(socketPath, 'import.outcome', {}, who)))) {
    throw new Error(`a node runs on ${socketPath}: leave out --stopped, or stop it`)
  }
  await copyInto(dataDir, file)
  await rename(join(dataDir, offeredName), join(dataDir, waitingName))
  await sync(dataDir)
  return waiting(file, about, dataDir)
}

function waiting(file: string, about: About, dataDir: string): Done {
  return { result: { ...shown(file, about), waits: true, waitsIn: join(dataDir, waitingName) } }
}

/** Hands the file to a running node, and waits until the import ends. */
async function offer(file: string, about: About, { socketPath, who }: Place): Promise<Done> {
  const dataDir = dirname(socketPath)
  // First asks whether there is a node.
  const before = await call(socketPath, 'import.outcome', {}, who)
  if ('error' in before) return before
  await copyInto(dataDir, file)
  const taken = await call(socketPath, 'import', {}, who)
  if ('error' in taken) {
    await rm(join(dataDir, offeredName), { force: true })
    return taken
  }
  const { result } = taken
  if (!fits(takenAnswer, result)) {
    return { error: { code: 'internal', message: 'the answer of the node is not one to an import' } }
  }
  if (result.waits) return waiting(file, about, dataDir)
  if (process.stderr.isTTY) process.stderr.write('the node takes it in, and starts again\n')
  const until = Date.now() + patienceMs
  while (Date.now() < until) {
    const answer = await call(socketPath, 'import.outcome', {}, who)
    const outcome = 'result' in answer && fits(outcomeAnswer, answer.result) ? answer.result : undefined
    if (outcome === undefined || outcome.run === result.run) {
      await delay(askEveryMs)
      continue
    }
    const { refused, last } = outcome
    if (refused !== undefined)
      return { error: { code: 'refused', message: `nothing was imported: ${refused}` } }
    if (last !== about.sha256) {
      const message = 'the node has started again without this file: its log says why'
      return { error: { code: 'refused', message } }
    }
    return { result: shown(file, about) }
  }
  const message = 'the node has not started again within 30 minutes: its log says why'
  return { error: { code: 'node.unreachable', message } }
}

/** Copies the file durably into the data directory, for the user of the node. */
async function copyInto(dataDir: string, file: string): Promise<void> {
  const path = join(dataDir, offeredName)
  await rm(path, { force: true })
  // Before there is a copy that an interruption would leave behind.
  await unlessInterrupted(async (signal) => {
    const copy = await open(path, 'wx', 0o600)
    try {
      // Changes the owner by handle: another user could swap the file under the name.
      const { uid, gid } = await stat(dataDir)
      if (process.getuid?.() === 0) await copy.chown(uid, gid)
      const written = copy.createWriteStream({ flush: true })
      await pipeline(createReadStream(file), progress('copied'), written, { signal })
    } catch (error) {
      // Half a copy must not fill the disk of the node.
      await rm(path, { force: true })
      throw error
    }
  })
}

function shown(file: string, { records, sha256, at, release, from }: About): Imported {
  return { file, records, sha256, exportedAt: at, release, from }
}
