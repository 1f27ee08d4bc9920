import type { Build } from './node.ts'

/** Numbers for a scenario: `--subscribers 1000,3000` is `subscribers: [1000, 3000]`. */
export type Options = Record<string, readonly number[]>

/** The result of one system in one run. */
export interface Sample {
  /** The task, such as `1,000 subscribers, QoS 0`. */
  case: string
  system: string
  run: number
  figures: Record<string, number>
}

/** A set of measurements that `npm run bench -- NAME` makes. */
export interface Scenario {
  /** One or two sentences for the page. */
  about: string
  /** The options of the scenario with their defaults. */
  options: Options
  /** Keys of the figures with their headings. */
  figures: Record<string, string>
  /** The figures of each table; by default one table. A table shows cases with at least one of the table's figures. */
  tables?: readonly (readonly string[])[]
  /** The system that is compared with the others. By default the hub. */
  subject?: string
  /** Figures that the page also compares: subject ÷ each other system. */
  compared: readonly string[]
  /** The parts that `--only` can choose, each with its text on the page. */
  parts?: Readonly<Record<string, string>>
  /** Figures that are 1 for yes and 0 for no. */
  yesNo?: readonly string[]
  /** The systems that `--peers` can choose. With the hub among them, `--before` is measured beside it. */
  peers?: readonly string[]
  /** `--before` cannot be measured beside the hub. */
  withoutBefore?: true
  /** `only`: the parts that the user chose; empty means all. `say` shows the progress. */
  measure(
    options: Options,
    asked: Asked,
    say: (line: string) => void,
    only: readonly string[],
  ): Promise<Sample[]>
  /** Returns a line for each missed requirement. Any line makes the command exit with 1. */
  outside?(samples: readonly Sample[]): string[]
}

/** What the user chose to measure. */
export interface Asked {
  /** Names of systems; empty means all. */
  peers: readonly string[]
  /** The node of another commit. */
  before: Build | undefined
}

/** The value of an option that takes only one. */
export function single(options: Options, name: string): number {
  const [value, ...more] = options[name] ?? []
  if (value === undefined || more.length > 0) throw new Error(`--${name} takes one number`)
  return value
}

export function list(options: Options, name: string): readonly number[] {
  return options[name] ?? []
}

/** `1,000 subscribers`, `1 subscriber`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
