import { operationNames, operations, type Result } from '../../operations/operations.ts'
import { type CommandOf, usage } from '../command.ts'
import { typedArguments } from '../typed/arguments.ts'

/** `hubctl status`: with units, and short unless the counters are asked for. */
export const status: Partial<CommandOf<'status'>> = {
  options: [{ flags: '--counters', summary: 'also all counters; --json always has them' }],
  print: (result, printer, input) => printer.properties(input?.flag('counters') ? result : withUnits(result)),
}

export const trend: Partial<CommandOf<'trend'>> = {
  print: ({ samples }, printer) =>
    printer.list(
      samples,
      [
        ['UNTIL', 'at'],
        ['PUBLISHED', 'events.published'],
        ['BLOCKED', 'events.blocked'],
        ['INVALID', 'events.invalid'],
        ['FAILED', 'events.failed'],
        'deliveries',
        'connections',
        ['P50 MS', 'p50'],
        ['P99 MS', 'p99'],
        ['OVER BUDGET', 'exceeded'],
      ],
      'The node has just been started.',
    ),
}

/** The actions in the audit log: every command that changes something, and backups. */
const actions = [
  ...operationNames.filter((name) => operations[name].effect !== 'none'),
  ...['export', 'import'],
]

/** `hubctl audit`: entries name a node if nodes share the store. */
export const audit: Partial<CommandOf<'audit'>> = {
  async args(input) {
    const action = input.optional('action')
    if (action === undefined || actions.includes(action)) return typedArguments('audit').args(input)
    throw usage(`action must be one of ${actions.join(', ')}, not "${action}"`)
  },
  print(entries, printer) {
    const saysNode = entries.some(({ node }) => node !== undefined)
    const columns = ['at', 'who', 'action', 'target', 'detail'] as const
    return printer.list(entries, saysNode ? [...columns, 'node'] : columns, 'No changes.')
  },
}

function withUnits({ counters: _counters, ...status }: Result<'status'>) {
  const { uptime, budget, certificate, memory, workers } = status
  return {
    ...status,
    uptime: duration(uptime),
    budget: { ...budget, p50: milliseconds(budget.p50), p99: milliseconds(budget.p99) },
    certificate: { ...certificate, expiryDays: `${certificate.expiryDays} days` },
    memory: { ...memory, rss: mebibytes(memory.rss) },
    ...(workers && {
      workers: workers
        .map((each) => {
          const load = `${each.connections} connections, ${mebibytes(each.rss)}`
          return `${each.node} for ${duration(each.uptime)}, ${load}`
        })
        .join('\n'),
    }),
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}

function milliseconds(value: number): string {
  return `${Math.round(value * 100) / 100} ms`
}

/** A duration in its two largest units, such as `3d 4h` or `5m 10s`. */
function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [Math.floor(seconds) % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  const shown = parts.slice(first < 0 ? -1 : first).slice(0, 2)
  return shown.map(([count, unit]) => `${count}${unit}`).join(' ')
}
