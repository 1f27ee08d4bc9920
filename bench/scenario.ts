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

/** One command: `npm run bench -- NAME`. */
export interface Scenario {
  /** One or two sentences for the page. */
  about: string
  /** Its options with their defaults. */
  options: Options
  /** Keys of the figures with their headings. */
  figures: Record<string, string>
  /** Figures that share a table, which shows the cases with at least one of them. By default all share one. */
  tables?: readonly (readonly string[])[]
  /** Figures whose ratios to the other systems are shown. */
  compared: readonly string[]
  /** The parts that `--only` can choose, each with its text on the page. */
  parts?: Readonly<Record<string, string>>
  /** Figures that are 1 for yes and 0 for no. */
  yesNo?: readonly string[]
  /** `peers`: the systems asked for. `say` shows the progress. `only`: the parts asked for. */
  measure(
    options: Options,
    peers: readonly string[],
    say: (line: string) => void,
    only: readonly string[],
  ): Promise<Sample[]>
  /** The failed requirements, one line each. If there is any, the command ends with exit code 1. */
  outside?(samples: readonly Sample[]): string[]
}

/** The one value of an option. */
export function single(options: Options, name: string): number {
  const [value] = options[name] ?? []
  if (value === undefined) throw new Error(`--${name} is missing`)
  return value
}

export function list(options: Options, name: string): readonly number[] {
  return options[name] ?? []
}

/** `1,000 subscribers`, `1 subscriber`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
