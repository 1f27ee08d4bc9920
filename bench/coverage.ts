import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'

/** The functions of one file, and how often each has run. */
export type FileCoverage = Profiler.ScriptCoverage

let session: Session | undefined

/** From now on V8 counts how often each function of this process runs. */
export async function startCounting(): Promise<void> {
  session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
}

/** Returns the counts since `startCounting` or the last `takeCounts`. */
export async function takeCounts(): Promise<FileCoverage[]> {
  if (!session) throw new Error('nothing is counted')
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return result
}
