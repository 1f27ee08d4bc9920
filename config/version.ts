import { readFileSync } from 'node:fs'

/** The release, from `package.json`. Without the file: `unknown`. */
export const version = readVersion()

function readVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version
    } catch {
      // not here: compiled code in `dist/` is one folder deeper
    }
  }
  return 'unknown'
}
