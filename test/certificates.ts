import { constants, copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureDevelopmentCertificates } from '../certs/development.ts'
import { projectFile } from './root.ts'

const files = ['ca-key.pem', 'ca.pem', 'server-key.pem', 'server.pem']

/** Copies development certificates into `dir` unless they are there. All tests share one set. */
export async function shareCertificates(dir: string): Promise<void> {
  const shared = projectFile('.tap/certs')
  await ensureDevelopmentCertificates(shared)
  await mkdir(dir, { recursive: true })
  await Promise.all(files.map((file) => copyUnlessThere(join(shared, file), join(dir, file))))
}

async function copyUnlessThere(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
