import { createWriteStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { longestFirst } from './order.ts'
import { root } from './root.ts'

/*
 * Runs the compiled tests in the named files and folders, each file in a separate process. Default: all tests but the
 * long ones. `TEST_OUTPUT` names a file for the complete TAP output. Why not `tap run`: docs/decisions, "Tests
 * have a runner of their own".
 */

const timeoutSeconds = 600

t.register()
t.setTimeout(0)
const files = longestFirst(testsAsked(process.argv.slice(2)))
// Tests also wait, so there can be more jobs than cores. With three more on two cores, those before a commit use 97 % of
// the processor time, the long ones 85 %.
t.jobs = availableParallelism() + (files.every(isLong) ? 5 : 3)
show(t.pipe(new PassThrough()))
for (const file of files) {
  // `env -u` removes the loaders of mocks and coverage, which `t.spawn` passes on.
  void t.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, file], {
    name: relative(root, file),
    cwd: root,
    at: null,
    stack: '',
    env: { ...process.env, TAP_TIMEOUT: `${timeoutSeconds}` },
    timeout: timeoutSeconds * 1000,
    buffered: true,
  })
}

function testsAsked(paths: readonly string[]): string[] {
  const all = join(root, '.compiled/test')
  const tests = paths.length > 0 ? paths.flatMap(testsIn) : testsIn(all).filter((file) => !isLong(file))
  if (tests.length === 0) throw new Error(`no tests in ${paths.join(', ') || all}`)
  return tests
}

/** The tests below the folder `path`, or `path` itself if it is a file. */
function testsIn(path: string): string[] {
  if (statSync(path).isFile()) return [resolve(path)]
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).sort()
  return names.filter((name) => name.endsWith('.test.js')).map((name) => resolve(path, name))
}

/** Whether `npm run test:soak` runs a test: those of `test/soak/`, and the one that works in a copy of the project. */
function isLong(file: string): boolean {
  const name = relative(join(root, '.compiled/test'), file)
  return name.startsWith('soak/') || name === 'one-row.test.js'
}

/** Prints one line per test file, the totals, and each failure with its reasons. */
function show(tap: PassThrough): void {
  const output = process.env.TEST_OUTPUT
  if (output) tap.pipe(createWriteStream(output))
  let isReason = false
  let wasFailure = false
  createInterface({ input: tap }).on('line', (line) => {
    const isFailure = /^ *not ok/.test(line)
    isReason ||= wasFailure && /^ *---$/.test(line)
    if (isFailure || isReason || /^(ok|Bail out|# [^S])/.test(line))
      process.stdout.write(`${withSources(line)}\n`)
    if (/^ *\.\.\.$/.test(line)) isReason = false
    wasFailure = isFailure
  })
}

/**
 * Names the places of a line in the sources instead of in the bundles. Node.js can do that (`--enable-source-maps`), but
 * then reads the map of each module: 0.15 s for each test.
 */
function withSources(line: string): string {
  return line.replaceAll(/([^\s():]+\.js):(\d+):(\d+)/g, (place, file, row, column) => {
    const map = `${resolve(root, file)}.map`
    if (!existsSync(map)) return place
    const entry = new SourceMap(JSON.parse(readFileSync(map, 'utf8'))).findEntry(row - 1, column - 1)
    if (!('originalSource' in entry)) return place
    const source = relative(root, resolve(dirname(map), entry.originalSource))
    return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  })
}
