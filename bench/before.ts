import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { projectFile, root } from '../test/root.ts'
import { makeFolder } from './ending.ts'
import type { Build } from './node.ts'

const run = promisify(execFile)

/**
 * Builds another commit of this repository in a folder that goes with this process. npm installs its packages if they
 * are others than those installed here.
 */
export async function buildCommit(revision: string): Promise<Build> {
  const folder = makeFolder()
  const archive = join(folder, 'commit.tar')
  const isKnown = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]
  await run('git', isKnown, { cwd: root }).catch(() => {
    throw new Error(`${revision} is no commit of this repository`)
  })
  await run('git', ['archive', '--output', archive, '--end-of-options', revision], { cwd: root })
  await run('tar', ['-xf', archive, '-C', folder])
  const [wanted, installed] = await Promise.all([packagesOf(folder), packagesOf(root)])
  // Copies, because `npm sbom` of the build takes no linked packages.
  if (wanted === installed) await run('cp', ['-a', '--reflink=auto', projectFile('node_modules'), folder])
  else await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder })
  await run('npm', ['run', 'build'], { cwd: folder })
  return { server: join(folder, 'dist/server.js'), project: folder }
}

/** The packages that `npm ci` would install, with their versions. */
async function packagesOf(project: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8'))
  const versions = Object.entries<{ version?: string }>(packages).map(([path, { version }]) => [
    path,
    version,
  ])
  return JSON.stringify(versions.filter(([path]) => path?.startsWith('node_modules/')))
}
