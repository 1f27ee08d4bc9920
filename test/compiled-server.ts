import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isCompiled, projectFile } from './root.ts'

/** The path of the node's program as `npm run build` makes it: beside bundled tests, otherwise made once per process. */
export function compiledServer(): Promise<string> {
  if (isCompiled) return Promise.resolve(beside)
  building ??= build()
  return building
}

const beside = fileURLToPath(new URL('../server.js', import.meta.url))

let building: Promise<string> | undefined

async function build(): Promise<string> {
  const output = projectFile(`.tap/compiled/${process.pid}`)
  process.once('exit', () => rmSync(output, { recursive: true, force: true }))
  const { bundle } = await import('../deploy/bundle.ts')
  await bundle(output)
  copyFileSync(projectFile('package.json'), join(output, 'package.json'))
  return join(output, 'server.js')
}
