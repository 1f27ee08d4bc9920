import { cut } from '../../event/cut.ts'
import type { LeftOut } from './left-out.ts'

/** Maximum number of examples kept for each reason. */
const maxExamples = 5
const maxTextLength = 200

/** How many pieces of data an import found, imported and left out. */
export type ImportReport = ReturnType<ReturnType<typeof createReport>['shown']>

export type ReportPart = ReturnType<typeof createPart>

/** Counts what is imported and what is left out, with examples of each reason. */
export function createReport() {
  const parts = {
    retained: createPart(),
    sessions: createPart(),
    filters: createPart(),
    queued: createPart(),
  }
  return {
    ...parts,
    shown: () => ({
      retained: parts.retained.shown(),
      sessions: parts.sessions.shown(),
      filters: parts.filters.shown(),
      queued: parts.queued.shown(),
    }),
    /** How many pieces of data of each kind (`retained`, `sessions`, …) were imported. */
    counts: () =>
      Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part.shown().cameOver])),
  }
}

function createPart() {
  let cameOver = 0
  let out = 0
  const reasons = new Map<string, { count: number; examples: { of: string; why: string }[] }>()

  return {
    cameOver: (): void => void cameOver++,

    leftOut(of: string, { reason, message }: LeftOut): void {
      const known = reasons.get(reason) ?? { count: 0, examples: [] }
      reasons.set(reason, known)
      out++
      known.count++
      if (known.examples.length < maxExamples) known.examples.push({ of: short(of), why: short(message) })
    },

    shown() {
      const all = [...reasons].map(([reason, known]) => ({ reason, ...known }))
      return { found: cameOver + out, cameOver, leftOut: all.sort((a, b) => b.count - a.count) }
    },
  }
}

function short(text: string): string {
  return text.length > maxTextLength ? `${cut(text, maxTextLength)}…` : text
}
