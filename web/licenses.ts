import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Metafile } from 'esbuild'

/** A package: its folder, and the notices in those of its files that are in a bundle. */
type Packages = Map<string, Set<string>>

/**
 * The licences of all packages in a bundle, which was made in the folder `from`. A package may itself be a bundle of
 * others: those that it depends on are named as well, and the notices that it holds.
 */
export async function licensesOf(bundle: Metafile, from: string): Promise<string> {
  const packages = await packagesOf(bundle, from)
  const texts = [...packages].map(async ([folder, notices]) => {
    const file = (await readdir(folder)).find((name) => /^licen[cs]e/i.test(name))
    const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8')
    const name = folder.replace(/^.*node_modules\//, '')
    return `${[name, text.trim(), ...notices].join('\n\n')}\n`
  })
  return (await Promise.all(texts)).sort().join('\n----\n\n')
}

/** The folders of the packages in a bundle, of those in the folders `beside` it, and of all that they depend on. */
export async function packagesOf(
  { inputs }: Pick<Metafile, 'inputs'>,
  from: string,
  beside: readonly string[] = [],
): Promise<Packages> {
  const packages: Packages = new Map()
  for (const folder of beside) await addWithNeeded(folder, packages)
  for (const path of Object.keys(inputs)) {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
    if (folder === undefined) continue
    const notices = await addWithNeeded(resolve(from, folder), packages)
    for (const [notice] of (await readFile(resolve(from, path), 'utf8')).matchAll(legalComment))
      notices.add(notice)
  }
  return packages
}

const legalComment = /\/\*!.*?\*\//gs

async function addWithNeeded(folder: string, packages: Packages): Promise<Set<string>> {
  const known = packages.get(folder)
  if (known) return known
  const notices = new Set<string>()
  packages.set(folder, notices)
  const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies ?? {})) {
    const needed = folderOf(name, folder)
    if (needed !== undefined) await addWithNeeded(needed, packages)
  }
  return notices
}

/** Where Node finds a package for the files of another. Undefined: it is not installed. */
function folderOf(name: string, from: string): string | undefined {
  const folder = join(from, 'node_modules', name)
  if (existsSync(folder)) return folder
  return dirname(from) === from ? undefined : folderOf(name, dirname(from))
}
