import { chmod, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { pathBehindLinks } from '../../config/foreign-links.ts'
import { makeDirectory } from '../../config/make-directory.ts'
import { codeOf } from '../../telemetry/reason.ts'

/** A log-in as it is kept between commands. */
export interface KeptLogIn {
  /** URL of the hub, without a path. */
  url: string
  email: string
  token: string
  refreshToken: string
  /** When the token ends, ISO 8601. */
  expires: string
  /** The CA that signs the certificate of the hub, PEM. Absent if the user named none. */
  ca?: string
}

/**
 * Reads the log-in to a hub. Undefined: there is none, or its file is damaged. Each hub has its own file. Commands for
 * different hubs never write to the same file.
 */
export async function readLogIn(url: string): Promise<KeptLogIn | undefined> {
  try {
    const kept: unknown = JSON.parse(await readFile(pathOf(url), 'utf8'))
    return isKept(kept) && kept.url === url ? kept : undefined
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Stores a log-in that other users cannot read. No command ever reads half a file. */
export async function keepLogIn(kept: KeptLogIn): Promise<void> {
  const path = pathOf(kept.url)
  const draft = `${path}.${process.pid}`
  await pathBehindLinks(directory())
  await makeDirectory(directory(), 0o700)
  await chmod(directory(), 0o700)
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    try {
      await file.chmod(0o600)
      await file.writeFile(`${JSON.stringify(kept, null, 2)}\n`)
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    // The draft has a token that is valid for 30 days.
    await rm(draft, { force: true })
    throw error
  }
}

/** Removes the log-in to a hub, and drafts that killed commands left. Resolves with false if there was no log-in. */
export async function forgetLogIn(url: string): Promise<boolean> {
  const drafts = `${basename(pathOf(url))}.`
  const names = await readdir(directory()).catch(() => [])
  for (const name of names) if (name.startsWith(drafts)) await rm(join(directory(), name), { force: true })
  try {
    await rm(pathOf(url))
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

function pathOf(url: string): string {
  return join(directory(), `${encodeURIComponent(new URL(url).host)}.json`)
}

/** Ignores a relative path in XDG_CONFIG_HOME (XDG Base Directory Specification). */
function directory(): string {
  const { XDG_CONFIG_HOME: base = '' } = process.env
  return join(isAbsolute(base) ? base : join(homedir(), '.config'), 'hubctl')
}

function isKept(value: unknown): value is KeptLogIn {
  const { ca, ...texts } = Object(value)
  const names = ['url', 'email', 'token', 'refreshToken', 'expires']
  return (
    names.every((name) => typeof texts[name] === 'string') && (ca === undefined || typeof ca === 'string')
  )
}
