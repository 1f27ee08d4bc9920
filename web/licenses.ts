import { readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Metafile } from 'esbuild'

/** The licences of all packages in a bundle, which was made in the folder `from`. */
export async function licensesOf({ inputs }: Metafile, from: string): Promise<string> {
  const packages = new Set(
    Object.keys(inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  )
  const texts = [...packages].sort().map(async (path) => {
    const folder = resolve(from, path)
    const file = (await readdir(folder)).find((name) => /^licen[cs]e/i.test(name))
    const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8')
    return `${path.replace(/^.*node_modules\//, '')}\n\n${text.trim()}\n`
  })
  return (await Promise.all(texts)).join('\n----\n\n')
}
