/** Numbers a scenario can be told: `--subscribers 1000,3000` is `subscribers: [1000, 3000]`. */
export type Options = Record<string, readonly number[]>

/** What one system did in one run. */
export interface Sample {
  /** What was asked of it, such as `1,000 subscribers, QoS 0`. */
  case: string
  system: string
  run: number
  figures: Record<string, number>
}

/** One command: `npm run bench -- NAME`. */
export interface Scenario {
  /** One or two sentences for the page. */
  about: string
  /** What it can be told, and what it does unless told. */
  options: Options
  /** Keys of the figures with their headings. */
  figures: Record<string, string>
  /** Figures that stand together in a table, which has the cases that have one of them; unless told all do. */
  tables?: readonly (readonly string[])[]
  /** Figures whose ratios to the other systems are shown. */
  compared: readonly string[]
  /** What `--only` can choose from, if anything, each with what the page says of it. */
  parts?: Readonly<Record<string, string>>
  /** Figures that are 1 for yes and 0 for no. */
  yesNo?: readonly string[]
  /** `peers`: the systems asked for. `say` shows how far it is. `only`: the parts asked for. */
  measure(
    options: Options,
    peers: readonly string[],
    say: (line: string) => void,
    only: readonly string[],
  ): Promise<Sample[]>
  /** What is not as it must be, a line each: the command then ends with 1. */
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
