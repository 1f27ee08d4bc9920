import { lstat, readlink } from 'node:fs/promises'
import { dirname, join, parse, resolve, sep } from 'node:path'

/** A path cannot lead over more symbolic links than this. */
const maxLinks = 40
const sticky = 0o1000
const writableByAll = 0o002

/**
 * The path behind all symbolic links of `path`; its last parts may not exist yet. Throws for a link that another user
 * has put into a folder where everyone may make files, such as `/tmp`: who writes there, perhaps as root, would write
 * where that user wants. Linux has the same rule for programs that follow links themselves (`fs.protected_symlinks`).
 */
export async function pathBehindLinks(path: string): Promise<string> {
  let { root: at } = parse(resolve(path))
  const rest = resolve(path).slice(at.length).split(sep).filter(Boolean)
  for (let links = 0; ; ) {
    const name = rest.shift()
    if (name === undefined) return at
    const next = join(at, name)
    const found = await lstat(next).catch(() => undefined)
    if (!found?.isSymbolicLink()) {
      at = next
      continue
    }
    if (++links > maxLinks) throw new Error(`${path} leads over too many links`)
    const folder = await lstat(at)
    const isShared = (folder.mode & sticky) !== 0 && (folder.mode & writableByAll) !== 0
    if (isShared && found.uid !== process.geteuid?.() && found.uid !== folder.uid) {
      throw new Error(
        `${next} is a link of another user in a folder that everyone may write to: name the file behind it`,
      )
    }
    const target = resolve(dirname(next), await readlink(next))
    at = parse(target).root
    rest.unshift(...target.slice(at.length).split(sep).filter(Boolean))
  }
}
