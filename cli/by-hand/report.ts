import type { Result } from '../../operations/operations.ts'
import type { ByHand } from '../command.ts'
import type { Printer } from '../print.ts'

type WeeklyReport = Result<'report.institution'>
type ReportSums = WeeklyReport | WeeklyReport['livestreams'][number]

/** `hubctl report institution`: the sums, then why events were refused, then each livestream. */
export const report: ByHand = {
  'report.institution': {
    print: (report, printer) =>
      [
        printer.properties(sumsOf(report)),
        printer.list(
          report.refusals,
          [['REFUSED FOR', 'errorCode'], 'events', ['WHAT MENDS IT', 'remedy']],
          'No event was refused.',
        ),
        livestreamsOf(report, printer),
      ].join('\n\n'),
  },
}

function sumsOf(report: WeeklyReport) {
  const { week, from, to, isOver, institutionId, events, refused } = report
  return {
    institution: institutionId,
    week: `${week}, ${from.slice(0, 10)} to ${dayBefore(to)}${isOver ? '' : ', not over yet'}`,
    events,
    refused,
    ...sharesOf(report),
  }
}

/** The counts of the report, each with its share of all. */
function sharesOf(of: ReportSums) {
  const { elements, late, music, withoutIsrc, withoutArtist, withoutCover, announced, cameTrue } = of
  return {
    elements,
    late: share(late, elements),
    music,
    'without ISRC': share(withoutIsrc, music),
    'without artist': share(withoutArtist, music),
    'without cover': share(withoutCover, music),
    gaps: of.gaps === 0 ? 0 : `${of.gaps}, ${of.gapMinutes} minutes`,
    'next came true':
      announced === 0 ? 'none was announced' : `${share(cameTrue, announced)} of ${announced}`,
  }
}

function livestreamsOf({ livestreams }: WeeklyReport, printer: Printer): string {
  return printer.list(
    livestreams.map((one) => ({
      ...one,
      title: one.title ?? one.livestreamId,
      late: share(one.late, one.elements),
      withoutIsrc: share(one.withoutIsrc, one.music),
      withoutArtist: share(one.withoutArtist, one.music),
      withoutCover: share(one.withoutCover, one.music),
      cameTrue: share(one.cameTrue, one.announced),
    })),
    [
      ['LIVESTREAM', 'title'],
      'events',
      'elements',
      'late',
      ['NO ISRC', 'withoutIsrc'],
      ['NO ARTIST', 'withoutArtist'],
      ['NO COVER', 'withoutCover'],
      'gaps',
      ['MINUTES', 'gapMinutes'],
      ['NEXT CAME TRUE', 'cameTrue'],
      'silentSince',
    ],
    'The institution has no livestream.',
  )
}

function share(part: number, of: number): string {
  return of === 0 || part === 0 ? String(part) : `${part} (${Math.round((100 * part) / of)} %)`
}

/** Another hub may answer with a text that is no instant. */
function dayBefore(instant: string): string {
  const time = Date.parse(instant) - 1
  return Number.isNaN(time) ? instant : new Date(time).toISOString().slice(0, 10)
}
