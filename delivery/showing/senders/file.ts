import { rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { FileContent } from '../../outputs/output.ts'

/**
 * Replaces a file as a whole: who reads it gets the old content or the new one. The node that ends between the steps
 * leaves a file with a dot in front, which the next time removes.
 */
export async function replaceFile({ file, content }: FileContent): Promise<void> {
  const beside = join(dirname(file), `.${basename(file)}.new`)
  await rm(beside, { force: true })
  try {
    // `wx` follows no link that somebody puts there.
    await writeFile(beside, content, { flag: 'wx', mode: 0o644 })
    await rename(beside, file)
  } catch (error) {
    await rm(beside, { force: true }).catch(() => undefined)
    throw error
  }
}
