import type { Options, Scenario } from './scenario.ts'
import { scenarios } from './scenarios.ts'

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

/** Reads the arguments of `npm run bench --`. `problem`: why they are wrong, `help`: they ask for the usage. */
export function readArguments(args: readonly string[]): Arguments | { problem: string } | { help: true } {
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
    else if (flag === 'help') return { help: true }
    else {
      const value = args[++index]
      if (!value || value.startsWith('--')) return { problem: `${argument} needs a value` }
      asked.told += ` ${argument} ${value}`
      if (flag === 'peers') asked.peers = value.split(',')
      else if (flag === 'only') asked.only = value.split(',')
      else if (flag === 'before') asked.before = value
      else if (flag === 'node') asked.node = value
      else told[flag] = value.split(',').map(Number)
    }
  }
  if (asked.node !== undefined && asked.before === undefined) return { problem: '--node needs --before' }
  const { peers, before } = asked
  if (before !== undefined && peers.length > 0 && !peers.includes('hub')) {
    return { problem: '--before is measured beside the hub: it needs --peers hub' }
  }
  for (const name of names.length > 0 ? names : Object.keys(scenarios)) {
    const scenario = Object.hasOwn(scenarios, name) ? scenarios[name] : undefined
    if (!scenario) return { problem: `${name} is unknown` }
    const unknownPart = asked.only.find((part) => !Object.hasOwn(scenario.parts ?? {}, part))
    if (unknownPart !== undefined) return { problem: `${name} has no part ${unknownPart}` }
    const unknownPeer = peers.find((peer) => !scenario.peers?.includes(peer))
    if (unknownPeer !== undefined) return { problem: `${name} has no peer ${unknownPeer}` }
    if (before !== undefined && (!scenario.peers?.includes('hub') || scenario.withoutBefore)) {
      return { problem: `${name} has no --before` }
    }
    for (const [flag, values] of Object.entries(told)) {
      if (!Object.hasOwn(scenario.options, flag)) return { problem: `${name} has no --${flag}` }
      if (!values.every((value) => value >= (flag === 'runs' ? 1 : 0))) {
        const least = flag === 'runs' ? ' from 1 on' : ', with commas'
        return { problem: `--${flag} needs numbers${least}` }
      }
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
