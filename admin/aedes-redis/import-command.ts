import type { Credential } from '../../acl/credential.ts'
import { mask } from '../../config/mask.ts'
import { describeFailure, refusal } from '../../operations/errors.ts'
import type { NodeParts } from '../../operations/node-parts.ts'
import { workWithProgress } from '../../operations/progress.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Audit } from '../audit.ts'
import { type Importing, importFromAedes } from './import.ts'
import { createReport } from './report.ts'
import { createSessionCredentials } from './session-credentials.ts'
import { openAedesSource } from './source.ts'

const name = 'import.aedes-redis'

type Import = NodeParts['importFromAedes']

/** Makes the function that imports the data of an Aedes broker from its Redis. It runs one import at a time. */
export function createAedesImport(
  parts: Parameters<typeof importFromAedes>[1] & {
    audit: Audit
    credential: (username: string) => Credential | undefined
    /** Maximum number of filters that one session may have. */
    maxFilters: number
    log: Pick<Log, 'error'>
  },
): Import {
  const { audit, feed, now, credential, maxFilters, log } = parts
  let isRunning = false

  return async ({ progress = true, ...asked }, who) => {
    if (isRunning) throw refusal('an import from Aedes is running already: wait for its end')
    isRunning = true
    try {
      const importing = await prepare(asked)
      const { report } = importing
      const work = (signal: AbortSignal) => carryOut(asked.url, { ...importing, signal }, who).finally(over)
      if (!progress) return await work(new AbortController().signal)
      const failed = (error: unknown) => describeFailure(error, log, { command: name, who })
      return workWithProgress(work, { progress: report.counts, failed })
    } catch (error) {
      over()
      throw error
    }
  }

  function over(): void {
    isRunning = false
  }

  async function prepare(asked: Parameters<Import>[0]): Promise<Omit<Importing, 'signal'>> {
    const { url, users = [], dryRun = false } = asked
    if (!feed()) throw refusal('there is no livestream feed yet: nobody can say what belongs to a livestream')
    const sessionCredentials = createSessionCredentials(users, { credential, now })
    const source = await openAedesSource(url, maxFilters)
    return { source, sessionCredentials, report: createReport(), isDry: dryRun }
  }

  async function carryOut(url: string, importing: Importing, who: string) {
    const { source, report, isDry } = importing
    const target = String(mask('url', url))
    try {
      if (isDry) await importFromAedes(importing, parts)
      else {
        await audit.change(who, name, async (first) => {
          await first(target, null)
          await importFromAedes(importing, parts)
          await audit.record({ who, action: name, target, detail: { cameOver: report.counts() } })
        })
      }
      return { source: target, dryRun: isDry, ...report.shown() }
    } finally {
      source.close()
    }
  }
}
