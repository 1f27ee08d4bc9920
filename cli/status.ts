import type { Command } from './command.ts'
import { valueAt } from './print.ts'

/** Adds the unit to values of `status`, by their paths. */
const units: Record<string, (value: number) => string> = {
  uptime: duration,
  'budget.p50': milliseconds,
  'budget.p99': milliseconds,
  'certificate.expiryDays': (days) => `${days} days`,
  'memory.rss': (bytes) => `${Math.round(bytes / 1024 / 1024)} MiB`,
}

export const statusCommand: Command = {
  words: 'status',
  options: [{ flags: '--counters', summary: 'also all counters; --json always has them' }],
  operation: 'status',
  print: (result, printer, input) => printer.properties(input?.flag('counters') ? result : withUnits(result)),
}

function withUnits(result: unknown): unknown {
  const { counters: _counters, ...status } = Object(result)
  for (const [path, shown] of Object.entries(units)) {
    const value = valueAt(status, path)
    const [group = '', name] = path.split('.')
    if (typeof value !== 'number') continue
    status[group] = name === undefined ? shown(value) : { ...Object(status[group]), [name]: shown(value) }
  }
  return status
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
