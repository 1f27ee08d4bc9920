import { open } from 'node:fs/promises'

/** Makes a file, or the names in a directory, survive power loss. */
export async function sync(path: string): Promise<void> {
  const file = await open(path)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
