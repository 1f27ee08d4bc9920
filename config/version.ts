import { readFileSync } from 'node:fs'

/** The release, from `package.json`. That file is one folder up, or two folders up from compiled code in `dist/`. */
export const version = readVersion()

function readVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version
    } catch {
      // not here: this code runs from `dist/`, so the file is one folder further up
    }
  }
  return 'unknown'
}
