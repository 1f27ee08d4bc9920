import { execFile } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = new URL('../', import.meta.url)
const output = new URL(`.tap/compiled/${process.pid}/`, root)

let compiling: Promise<string> | undefined

/**
 * Compiles the node, once per test file or run of the bench: it is tested as it is installed, and starts in half the
 * time. The path of its program.
 */
export function compiledServer(): Promise<string> {
  compiling ??= compile()
  return compiling
}

async function compile(): Promise<string> {
  const path = (name: string, base = output) => fileURLToPath(new URL(name, base))
  process.once('exit', () => rmSync(output, { recursive: true, force: true }))
  const options = ['-p', path('tsconfig.build.json', root), '--outDir', path('.')]
  // The test runner puts its loaders into every child, and the compiler does not run with them.
  await promisify(execFile)('env', ['-u', 'NODE_OPTIONS', path('node_modules/.bin/tsc', root), ...options])
  copyFileSync(path('config/sample-feed.json', root), path('config/sample-feed.json'))
  copyFileSync(path('package.json', root), path('package.json'))
  return path('server.js')
}
