import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { temporaryDirectory } from '../../start-hub.ts'

/** Writes a configuration file with these settings. Returns its path, for `HUB_CONFIG`. */
export async function writeConfig(t: Test, settings: object): Promise<string> {
  const path = join(await temporaryDirectory(t), 'hub.json')
  await writeFile(path, JSON.stringify(settings))
  return path
}
