import { execFile } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isCompiled, projectFile } from './root.ts'

let compiling: Promise<string> | undefined

/**
 * The path of the node's program, compiled: it is tested as it is installed, and starts in half the time.
 * Compiled tests lie beside it; for others it is compiled once per process.
 */
export function compiledServer(): Promise<string> {
  compiling ??= isCompiled ? Promise.resolve(beside) : compile()
  return compiling
}

const beside = fileURLToPath(new URL('../server.js', import.meta.url))

async function compile(): Promise<string> {
  const output = projectFile(`.tap/compiled/${process.pid}`)
  process.once('exit', () => rmSync(output, { recursive: true, force: true }))
  const options = ['-p', projectFile('tsconfig.build.json'), '--outDir', output]
  await promisify(execFile)(projectFile('node_modules/.bin/tsc'), options)
  for (const file of ['config/sample-feed.json', 'package.json']) {
    copyFileSync(projectFile(file), join(output, file))
  }
  return join(output, 'server.js')
}
