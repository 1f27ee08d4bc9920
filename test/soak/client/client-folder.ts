import { execFile } from 'node:child_process'
import { copyFile, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { projectFile } from '../../root.ts'
import { temporaryDirectory } from '../../start-hub.ts'

/** A folder in which somebody has installed the client package. It is gone when the test ends. */
export async function folderWithClient(t: Test): Promise<string> {
  const folder = await temporaryDirectory(t)
  const installed = join(folder, 'node_modules/now-playing-hub-client')
  await mkdir(installed, { recursive: true })
  const settings = ['-p', projectFile('client/tsconfig.build.json'), '--outDir', join(installed, 'dist')]
  await promisify(execFile)(projectFile('node_modules/.bin/tsc'), settings)
  await copyFile(projectFile('client/package.json'), join(installed, 'package.json'))
  await symlink(projectFile('node_modules/mqtt'), join(folder, 'node_modules/mqtt'))
  return folder
}
