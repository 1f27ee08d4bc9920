import { readFileSync } from 'node:fs'

/** The release, from `package.json`: one folder up, or two in `dist/`. */
export const version = readVersion()

function readVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version
    } catch {
      // not here: this is the compiled tree
    }
  }
  return 'unknown'
}
