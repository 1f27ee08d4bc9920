import { execFile } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isCompiled, projectFile, root } from './root.ts'

/** The path of the node's program: the bundle beside bundled tests, otherwise the output of `tsc`. */
export function compiledServer(): Promise<string> {
  return isCompiled ? Promise.resolve(beside) : builtServer()
}

const beside = fileURLToPath(new URL('../server.js', import.meta.url))

let building: Promise<string> | undefined

/** The path of the node's program as `npm run build` makes it, built once per process. */
function builtServer(): Promise<string> {
  building ??= build()
  return building
}

function build(): Promise<string> {
  const output = projectFile(`.tap/compiled/${process.pid}`)
  process.once('exit', () => rmSync(output, { recursive: true, force: true }))
  return buildServer(root, output)
}

/** Compiles the node of a project folder as `npm run build` does. Resolves with the path of its program. */
export async function buildServer(project: string, output: string): Promise<string> {
  const options = ['-p', join(project, 'tsconfig.build.json'), '--outDir', output]
  await promisify(execFile)(join(project, 'node_modules/.bin/tsc'), options)
  for (const file of ['config/sample-feed.json', 'package.json']) {
    copyFileSync(join(project, file), join(output, file))
  }
  return join(output, 'server.js')
}
