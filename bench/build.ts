import { execFile } from 'node:child_process'
import { copyFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = new URL('../', import.meta.url)
// As deep as `dist`: the node finds its package.json one level up.
const output = new URL('.bench/', root)

let building: Promise<string> | undefined

/** Compiles the node, once per run of the bench: it is measured as it is installed. The path of its program. */
export function compiledServer(): Promise<string> {
  building ??= build()
  return building
}

async function build(): Promise<string> {
  const path = (name: string, base = output) => fileURLToPath(new URL(name, base))
  const options = ['-p', path('tsconfig.build.json', root), '--outDir', path('.')]
  await promisify(execFile)(path('node_modules/.bin/tsc', root), options)
  await copyFile(path('config/sample-feed.json', root), path('config/sample-feed.json'))
  return path('server.js')
}
