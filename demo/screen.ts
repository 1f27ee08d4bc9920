import pc from 'picocolors'
import stringWidth from 'string-width'
import { kindByName } from '../event/kind.ts'
import type { Decision, Institution } from './broadcasters.ts'
import type { Arrival } from './subscribers.ts'

export type Screen = ReturnType<typeof createScreen>

/** Widths of the fixed columns. Station and text share the rest of the line. */
const widths = { time: 8, who: 3, what: 9, ms: 8 }
/** Widths if the output is not a terminal. */
const plainWidths = { station: 24, text: 48 }
/** Smallest width that lines are made for. A narrower terminal wraps them. */
const leastWidth = 72

/** Shows the demonstration on `output`. Lines are coloured and cut on a terminal only. */
export function createScreen(
  output: { isTTY?: boolean; columns?: number; write(text: string): unknown },
  titleOf: (livestreamId: string) => string,
) {
  const isTerminal = output.isTTY === true
  const colours = pc.createColors(isTerminal && pc.isColorSupported)
  const paint = {
    playing: colours.green,
    next: colours.cyan,
    control: colours.magenta,
    data: colours.blue,
    published: colours.dim,
    blocked: colours.yellow,
    invalid: colours.yellow,
    failed: colours.red,
  }

  return {
    line,

    /** An empty line and a heading. */
    heading(text: string): void {
      line('')
      line(colours.bold(text))
    },

    /** A message that a subscriber received. */
    arrival({ subscriber, kind, livestreamId, event, ms }: Arrival): void {
      row({
        who: subscriber,
        station: titleOf(livestreamId),
        what: kind,
        text: describeEvent(event),
        ms: ms === undefined ? 'again' : formatMs(ms),
      })
    },

    /** What the hub reports to a broadcaster about one of its events. */
    feedback({ title }: Institution, { event, outcome, errors }: Decision): void {
      const kind = kindByName.get(event.event)?.suffix.split('/').at(-1) ?? 'event'
      const where = event.services.map(({ id }) => titleOf(id)).join(', ')
      row({ who: 'fb', station: title, what: outcome, text: `${kind} · ${where}`, ms: '' })
      for (const { errorCode, path, message } of errors) {
        const indent = ' '.repeat(widths.time + widths.who + 4)
        line(paintFor(outcome)(fit(`${indent}${errorCode} at ${path}: ${message}`, terminalWidth())))
      }
    },

    /** Shows the summary at the end, as rows of two columns. */
    table(rows: readonly (readonly [label: string, value: string])[]): void {
      const width = Math.max(...rows.map(([label]) => stringWidth(label)))
      for (const [label, value] of rows) line(`  ${pad(label, width)}  ${value}`)
    },

    /** Shows the last sentence, which says whether all went well. */
    verdict(text: string, good: boolean): void {
      line('')
      line((good ? colours.green : colours.red)(text))
    },
  }

  function line(text: string): void {
    output.write(`${text}\n`)
  }

  function row(cells: { who: string; station: string; what: string; text: string; ms: string }): void {
    const { who, station, what, text, ms } = cells
    const room = roomFor()
    const columns = [
      colours.dim(new Date().toTimeString().slice(0, widths.time)),
      pad(who, widths.who),
      pad(fit(station, room.station), room.station),
      paintFor(what)(pad(what, widths.what)),
      pad(fit(text, room.text), room.text),
      colours.dim(ms.padStart(widths.ms)),
    ]
    line(columns.join('  ').trimEnd())
  }

  function roomFor(): { station: number; text: number } {
    if (!isTerminal) return plainWidths
    const fixed = Object.values(widths).reduce((sum, width) => sum + width + 2, 2)
    const left = terminalWidth() - fixed
    const station = Math.min(Math.max(Math.floor(left * 0.35), 14), 26)
    return { station, text: left - station }
  }

  function fit(text: string, width: number): string {
    return isTerminal ? cut(text, width) : text
  }

  function terminalWidth(): number {
    return Math.max(output.columns ?? 80, leastWidth)
  }

  function paintFor(what: string): (text: string) => string {
    return what in paint ? paint[what as keyof typeof paint] : String
  }
}

/** Milliseconds with one digit behind the point. */
export function formatMs(ms: number): string {
  return `${ms.toFixed(1)} ms`
}

/** The one line a display would show of an event. */
function describeEvent({ title, artist, name, state, text }: Record<string, unknown>): string {
  if (typeof name === 'string') return `${name} ${state === true ? 'on' : 'off'}`
  if (typeof text === 'string') return text
  return typeof artist === 'string' ? `${artist} – ${title}` : String(title)
}

/** Cuts `text` to at most `width` columns of a terminal. An ellipsis stands for the rest. */
export function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  let kept = ''
  let used = 0
  for (const { segment } of graphemes.segment(text)) {
    used += stringWidth(segment)
    if (used > width - 1) break
    kept += segment
  }
  return `${kept.trimEnd()}…`
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(width - stringWidth(text), 0))
}

const graphemes = new Intl.Segmenter()
