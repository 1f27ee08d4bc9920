import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { projectFile } from '../test/root.ts'
import { goals } from './goals.ts'
import type { Sample, Scenario } from './scenario.ts'

/** The result of one system in one case: medians over the runs. */
export interface Row {
  case: string
  system: string
  runs: number
  figures: Record<string, number>
  /** Of the subject: subject ÷ system within a run, median over the runs: `ratios[system][figure]`. */
  ratios?: Record<string, Record<string, number>>
}

export function summarize(
  samples: readonly Sample[],
  { figures, compared, subject = 'hub' }: Scenario,
): Row[] {
  const groups = new Map<string, Sample[]>()
  for (const sample of samples) {
    const key = `${sample.case}\n${sample.system}`
    const group = groups.get(key)
    if (group) group.push(sample)
    else groups.set(key, [sample])
  }
  const rows = [...groups.values()].flatMap((group) => {
    const [first] = group
    if (!first) return []
    const row: Row = { case: first.case, system: first.system, runs: group.length, figures: {} }
    for (const name of Object.keys(figures)) {
      const values = group.map((sample) => sample.figures[name]).filter(isThere)
      if (values.length > 0) row.figures[name] = median(values)
    }
    if (first.system === subject) row.ratios = ratiosOf(group, samples, compared)
    return [row]
  })
  const cases = [...new Set(rows.map((row) => row.case))]
  return rows.sort((a, b) => cases.indexOf(a.case) - cases.indexOf(b.case))
}

function ratiosOf(own: readonly Sample[], all: readonly Sample[], compared: readonly string[]) {
  const ratios: Record<string, Record<string, number>> = {}
  const others = new Set(all.map(({ system }) => system).filter((system) => system !== own[0]?.system))
  for (const system of others) {
    for (const figure of compared) {
      const inRuns = own.flatMap((sample) => {
        const other = all.find(
          (each) => each.system === system && each.run === sample.run && each.case === sample.case,
        )
        const [mine, theirs] = [sample.figures[figure], other?.figures[figure]]
        return isThere(mine) && theirs ? [mine / theirs] : []
      })
      if (inRuns.length > 0) ratios[system] = { ...ratios[system], [figure]: median(inRuns) }
    }
  }
  return ratios
}

/** NaN: nothing came that could be measured. */
function isThere(value: number | undefined): value is number {
  return value !== undefined && !Number.isNaN(value)
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

/** The rows as Markdown tables: figures, then ratios. */
export function toTables(rows: readonly Row[], scenario: Scenario): string {
  const { figures, compared, yesNo = [], tables = [Object.keys(figures)] } = scenario
  const cell = (name: string, { figures: { [name]: value } }: Row) =>
    yesNo.includes(name) ? (value === 1 ? 'yes' : 'no') : format(value)
  const table = tables
    .map((names) => ({ names, of: rows.filter((row) => names.some((name) => name in row.figures)) }))
    .filter(({ of }) => of.length > 0)
    .map(({ names, of }) =>
      align([
        ['case', 'system', ...names.map((name) => figures[name] ?? name)],
        ...of.map((row) => [row.case, row.system, ...names.map((name) => cell(name, row))]),
      ]),
    )
    .join('\n\n')
  const ratios = rows.flatMap((row) =>
    Object.entries(row.ratios ?? {}).map(([system, of]) => [
      row.case,
      `${row.system} ÷ ${system}`,
      ...compared.map((name) => format(of[name])),
    ]),
  )
  if (ratios.length === 0) return table
  const headings = compared.map((name) => (figures[name] ?? name).replace(/, (ms|µs|s)$/, ''))
  return `${table}\n\n${align([['case', 'ratio', ...headings], ...ratios])}`
}

function format(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '–'
  if (value === Infinity) return '∞'
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

/** Aligns the first `left` columns to the left, the others to the right. */
function align([heading = [], ...rows]: string[][], left = 2): string {
  const widths = heading.map((_, column) =>
    Math.max(...[heading, ...rows].map((row) => row[column]?.length ?? 0), 3),
  )
  const line = (cells: string[]) =>
    `| ${cells.map((cell, column) => (column < left ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, column) =>
    column < left ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  )
  return [line(heading), line(rule), ...rows.map(line)].join('\n')
}

/** Packages whose versions the page names. */
const packages = [
  ['aedes', 'Aedes'],
  ['aedes-persistence-redis', 'aedes-persistence-redis'],
] as const

/** The machine, the versions of the systems, and the date. */
export function machine(): { cpu: string; memory: string; versions: string; date: string } {
  const [first] = cpus()
  const { dependencies, devDependencies } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'))
  return {
    cpu: `${cpus().length} × ${first?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 1024 ** 3)} GiB`,
    versions: [
      `Node ${process.versions.node} (OpenSSL ${process.versions.openssl})`,
      versionOf('mosquitto', ['-h'], /version ([\d.]+)/, 'Mosquitto'),
      versionOf('nats-server', ['--version'], /v([\d.]+)/, 'NATS'),
      ...packages.map(([name, title]) => `${title} ${dependencies[name] ?? devDependencies[name]}`),
    ]
      .filter(Boolean)
      .join(', '),
    date: new Date().toISOString().slice(0, 10),
  }
}

function versionOf(command: string, args: string[], pattern: RegExp, name: string): string {
  try {
    const path = `${process.env.PATH}:/usr/sbin`
    const output = execFileSync(command, args, { env: { PATH: path }, encoding: 'utf8' })
    return `${name} ${pattern.exec(output)?.[1] ?? ''}`
  } catch (error) {
    // Mosquitto exits with 3 after its help, which contains the version.
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : ''
    const version = pattern.exec(output)?.[1]
    return version ? `${name} ${version}` : ''
  }
}

const page = projectFile('docs/benchmarks.md')
const table = align(
  [
    ['what', 'goal', 'measured', '`npm run bench --` …'],
    ...goals.map(({ row, goal, measured, command }) => [row, goal, measured, `\`${command}\``]),
  ],
  4,
)

/** The beginning of the page. */
export const introduction = `# Benchmarks

This page is written by \`npm run bench -- --page\`. Every scenario measures the systems side by side, in turn, in
the same run, with load generators in processes of their own on the same machine. Figures are medians over the
runs; a ratio is the median of the ratios within a run. Machines differ and are noisy: look at the ratios. Every second run measures
the systems in the opposite order. For the second half of the runs, systems that stay up are started anew, also in the
opposite order. Sections older than 2026-11-30 had one order in all runs.

The goals of the hub, with the command that measures each. COMMIT is the commit to compare with. The floor is the least that a hub must
do with an event: MQTT over TLS, the check of its shape, one synced batch for all events that came during the last one, and PUBACK after
it. Bare sockets, bare Fastify and the bare client do the least of the other rows. The figures were measured in November 2026 on two cores
of a virtual machine: with Node.js 24, and in brackets with Node.js 20. The [decisions](decisions/README.md) say what was tried where a
goal is missed.

${table}
`

/** Writes the section of a scenario into the page. Chosen parts or systems make a section of their own. */
export function writePage(
  name: string,
  scenario: Scenario,
  { only, peers, before }: { only: readonly string[]; peers: readonly string[]; before: string | undefined },
  rows: readonly Row[],
  command: string,
): void {
  const parts = Object.entries(scenario.parts ?? {}).filter(
    ([part]) => only.length === 0 || only.includes(part),
  )
  const chosen = only.length === 0 ? name : `${name}: ${only.join(', ')}`
  const systems = before === undefined ? peers : [...peers, `before: ${before}`]
  const title = systems.length === 0 ? chosen : `${chosen} (${systems.join(', ')})`
  const texts = parts.map(([, text]) => text).filter(Boolean)
  const about = [scenario.about, ...(texts.length > 1 ? ['', ...texts.map((text) => `- ${text}`)] : texts)]
  const written = existsSync(page) ? readFileSync(page, 'utf8') : ''
  const [, ...sections] = written.split(/^## /m)
  const { cpu, memory, versions, date } = machine()
  const runs = Math.max(...rows.map((row) => row.runs))
  const section = `${title}

${about.join(texts.length > 1 ? '\n' : ' ')}

\`${command}\`, ${runs} runs, ${date}: ${cpu}, ${memory}; ${versions}.

${toTables(rows, scenario)}
`
  const kept = sections.filter((other) => !other.startsWith(`${title}\n`)).map((other) => `${other.trim()}\n`)
  const all = [...kept, section].sort()
  writeFileSync(page, [introduction, ...all.map((each) => `## ${each}`)].join('\n'))
}
