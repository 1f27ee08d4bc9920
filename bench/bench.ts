import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Arguments, readArguments, usageText } from './arguments.ts'
import { buildCommit } from './before.ts'
import { exitOnSignals } from './ending.ts'
import type { Build } from './node.ts'
import { machine, summarize, toTables, writePage } from './report.ts'

const asked = readArguments(process.argv.slice(2))
if ('help' in asked) {
  process.stdout.write(usageText())
  process.exit()
}
if ('problem' in asked) {
  process.stderr.write(`${asked.problem}\n${usageText()}`)
  process.exit(2)
}
exitOnSignals()
// stdout is for results only, so progress goes to stderr.
const say = (line: string) => {
  process.stderr.write(`  ${line}\n`)
}
const before = await buildBefore(asked)
const results: Record<string, unknown> = {}
for (const { name, scenario, options } of asked.runs) {
  say(name)
  const samples = await scenario.measure(options, { peers: asked.peers, before }, say, asked.only)
  const rows = summarize(samples, scenario)
  results[name] = { options, rows }
  if (!asked.json) process.stdout.write(`\n${name}\n\n${toTables(rows, scenario)}\n\n`)
  for (const line of scenario.outside?.(samples) ?? []) {
    say(line)
    process.exitCode = 1
  }
  if (asked.page) writePage(name, scenario, asked, rows, `npm run bench -- ${name}${asked.told}`)
}
if (asked.json) process.stdout.write(`${JSON.stringify({ machine: machine(), results })}\n`)

async function buildBefore({ before: revision, node: runtime }: Arguments): Promise<Build | undefined> {
  if (revision === undefined) return undefined
  say(`builds ${revision}`)
  try {
    if (runtime !== undefined) await promisify(execFile)(runtime, ['--version'])
    return { ...(await buildCommit(revision)), runtime }
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    process.exit(1)
  }
}
