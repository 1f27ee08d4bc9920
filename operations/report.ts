import { institution } from './arguments.ts'
import { unknownName } from './errors.ts'
import { anInstitution } from './examples.ts'
import { ownOf } from './institution/own.ts'
import { report, reportOf, week, whyNoWeek } from './institution/report.ts'
import { reads } from './operation.ts'

/** The weekly report of an institution, as its own users see it (open.md §7). */
export const reportOperations = {
  'report.institution': reads('what became of the events of an institution in a week', {
    args: { institution, week },
    example: { institution: anInstitution, week: '2026-W48' },
    check: ({ week }) => whyNoWeek(week),
    hubctl: {
      typed: { week: ['--week <week>', 'such as 2026-W48; without it, the last whole one'] },
      about:
        'The [weekly report](institutions.md#the-weekly-report) of that institution: events, refusals by code, what came late or lacked something, gaps, how often `next` came true. Weeks begin on Monday, by UTC; the hub keeps 13.',
    },
    result: report,
    async run(node, { institution, week }) {
      const shown = await reportOf(ownOf(node, { institutionId: institution, permissions: [] }), week)
      const isKnown = node.feed.current()?.hasInstitution(institution) ?? true
      if (!isKnown && shown.livestreams.length === 0 && shown.refused === 0)
        throw unknownName('institution', institution)
      return shown
    },
  }),
}
