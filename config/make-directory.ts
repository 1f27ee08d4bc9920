import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a directory and those above it, unless they are there. Below `/proc`, `mkdir` of Node with `recursive` never ends:
 * `/proc` answers ENOENT, and so Node makes the directory above again and again.
 */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  if (await isDirectory(path)) return
  const above = dirname(path)
  if (above !== path) await makeDirectory(above, mode)
  await mkdir(path, { mode }).catch(async (error: unknown) => {
    // Another process may have made it meanwhile.
    if (!(await isDirectory(path))) throw error
  })
}

function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}
