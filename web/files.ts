import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where `npm run build` puts the files that browsers load. */
const built = fileURLToPath(new URL('./public', import.meta.url))

/** The files of the pages. The first request makes them if they are not built. */
export function createWebFiles() {
  if (existsSync(built)) return { directory: async () => built, close: async () => {} }
  let made: Promise<string> | undefined

  return {
    /** The directory that holds the files. */
    directory(): Promise<string> {
      if (made) return made
      made = make()
      // The next request tries again.
      made.catch(() => {
        made = undefined
      })
      return made
    },
    async close(): Promise<void> {
      const directory = await made?.catch(() => undefined)
      if (directory !== undefined) await rm(directory, { recursive: true, force: true })
    },
  }
}

async function make(): Promise<string> {
  // A static import would fail in the npm package, which has no esbuild.
  const { bundle } = await import('./bundle.ts')
  const directory = await mkdtemp(join(tmpdir(), 'hub-web-'))
  try {
    await bundle(directory)
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw error
  }
  return directory
}
