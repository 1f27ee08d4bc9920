import type { Options, Scenario } from './scenario.ts'
import { scenarios } from './scenarios.ts'
import { systems } from './stage.ts'

/** What the user asked for. */
export interface Arguments {
  runs: { name: string; scenario: Scenario; options: Options }[]
  peers: string[]
  /** The commit whose node is measured beside the hub. */
  before: string | undefined
  /** The Node.js that runs this node. */
  node: string | undefined
  /** The parts of a scenario to measure. Empty: all parts. */
  only: string[]
  json: boolean
  page: boolean
  /** The options as the user typed them, for the page (`docs/benchmarks.md`). */
  told: string
}

/** Reads the arguments of `npm run bench --`. `problem`: why they are wrong. */
export function readArguments(args: readonly string[]): Arguments | { problem: string } {
  const names: string[] = []
  const told: Record<string, number[]> = {}
  const asked: Arguments = {
    runs: [],
    peers: [],
    before: undefined,
    node: undefined,
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
      else if (flag === 'node') asked.node = value
      else told[flag] = value.split(',').map(Number)
    }
  }
  if (asked.node !== undefined && asked.before === undefined) return { problem: '--node needs --before' }
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

/** What `--help` says. */
export function usageText(): string {
  const lines = Object.entries(scenarios).map(([name, { options, parts, peers }]) => {
    const flags = Object.entries(options).map(([flag, values]) => `--${flag} ${values.join(',')}`)
    if (peers) flags.push(`--peers ${peers.join(',')}`)
    if (parts) flags.push(`--only ${Object.keys(parts).join(',')}`)
    return `  ${name.padEnd(14)}${flags.join(' ')}`
  })
  return `npm run bench -- [SCENARIO …] [--json] [--page] [--before COMMIT [--node PATH]]\n${lines.join('\n')}\n`
}
