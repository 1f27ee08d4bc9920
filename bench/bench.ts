import { buildCommit } from './before.ts'
import type { Build } from './node.ts'
import { machine, summarize, toTables, writePage } from './report.ts'
import type { Options, Scenario } from './scenario.ts'
import { attacks } from './scenarios/attacks.ts'
import { client } from './scenarios/client.ts'
import { cold } from './scenarios/cold.ts'
import { connect } from './scenarios/connect.ts'
import { fanout } from './scenarios/fanout.ts'
import { growth } from './scenarios/growth.ts'
import { hazards } from './scenarios/hazards.ts'
import { idle } from './scenarios/idle.ts'
import { ingest } from './scenarios/ingest.ts'
import { latency } from './scenarios/latency.ts'
import { pages } from './scenarios/pages.ts'
import { push } from './scenarios/push.ts'
import { retained } from './scenarios/retained.ts'
import { sessions } from './scenarios/sessions.ts'
import { slowReaders } from './scenarios/slow-readers.ts'
import { start } from './scenarios/start.ts'
import { week } from './scenarios/week.ts'
import { systems } from './stage.ts'

/** The scenarios by their names in `npm run bench -- NAME …`. Without a name, all run. */
const scenarios: Record<string, Scenario> = {
  latency,
  cold,
  fanout,
  ingest,
  connect,
  idle,
  retained,
  growth,
  push,
  'slow-readers': slowReaders,
  sessions,
  start,
  week,
  pages,
  attacks,
  hazards,
  client,
}

const asked = readArguments(process.argv.slice(2))
if ('problem' in asked) {
  process.stderr.write(`${asked.problem}\n${usageText()}`)
  process.exit(2)
}
// stdout is for results only, so progress goes to stderr.
const say = (line: string) => {
  process.stderr.write(`  ${line}\n`)
}
const before = await buildBefore(asked.before)
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

async function buildBefore(revision: string | undefined): Promise<Build | undefined> {
  if (revision === undefined) return undefined
  say(`builds ${revision}`)
  try {
    return await buildCommit(revision)
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    process.exit(1)
  }
}

interface Asked {
  runs: { name: string; scenario: Scenario; options: Options }[]
  peers: string[]
  /** The commit whose node is measured beside the hub. */
  before: string | undefined
  /** The parts of a scenario to measure. Empty: all parts. */
  only: string[]
  json: boolean
  page: boolean
  /** The options as the user typed them, for the page (`docs/benchmarks.md`). */
  told: string
}

function readArguments(args: readonly string[]): Asked | { problem: string } {
  const names: string[] = []
  const told: Record<string, number[]> = {}
  const asked: Asked = {
    runs: [],
    peers: [],
    before: undefined,
    only: [],
    json: false,
    page: false,
    told: '',
  }
  for (let index = 0; index < args.length; index++) {
    const argument = args[index] ?? ''
    const flag = argument.startsWith('--') ? argument.slice(2) : undefined
    if (flag === undefined) names.push(argument)
    else if (flag === 'json') asked.json = true
    else if (flag === 'page') asked.page = true
    else if (flag === 'help') return { problem: 'Measures systems side by side.' }
    else {
      const value = args[++index] ?? ''
      asked.told += ` ${argument} ${value}`
      if (flag === 'peers') asked.peers = value.split(',')
      else if (flag === 'only') asked.only = value.split(',')
      else if (flag === 'before') asked.before = value
      else told[flag] = value.split(',').map(Number)
    }
  }
  const unknownPeer = asked.peers.find((peer) => !Object.hasOwn(systems, peer))
  if (unknownPeer !== undefined) return { problem: `--peers ${unknownPeer} is unknown` }
  for (const name of names.length > 0 ? names : Object.keys(scenarios)) {
    const scenario = Object.hasOwn(scenarios, name) ? scenarios[name] : undefined
    if (!scenario) return { problem: `${name} is unknown` }
    const unknownPart = asked.only.find((part) => !Object.hasOwn(scenario.parts ?? {}, part))
    if (unknownPart !== undefined) return { problem: `${name} has no part ${unknownPart}` }
    if (asked.before !== undefined && !scenario.peers?.includes('hub')) {
      return { problem: `${name} has no --before` }
    }
    for (const [flag, values] of Object.entries(told)) {
      if (!Object.hasOwn(scenario.options, flag)) return { problem: `${name} has no --${flag}` }
      if (!values.every((value) => value >= 0)) return { problem: `--${flag} needs numbers, with commas` }
    }
    asked.runs.push({ name, scenario, options: { ...scenario.options, ...told } })
  }
  return asked
}

function usageText(): string {
  const lines = Object.entries(scenarios).map(([name, { options, parts }]) => {
    const flags = Object.entries(options).map(([flag, values]) => `--${flag} ${values.join(',')}`)
    if (parts) flags.push(`--only ${Object.keys(parts).join(',')}`)
    return `  ${name.padEnd(14)}${flags.join(' ')}`
  })
  const peers = Object.keys(systems).join(',')
  return `npm run bench -- [SCENARIO …] [--json] [--page] [--before COMMIT] [--peers ${peers}]\n${lines.join('\n')}\n`
}
