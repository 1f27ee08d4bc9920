import t from 'tap'
import { createMetrics } from '../../telemetry/metrics.ts'
import { countWarnings } from '../../validator/warning-counts.ts'
import { feedOf, item } from './feeds.ts'
import { warningsCounted } from './warnings-counted.ts'

const warnings = [{ path: '.isrc', message: '', errorCode: 'isrc.form' }]

t.test('institutions that the feed does not list have one series together', async (t) => {
  const metrics = createMetrics()
  const parts = { feed: { inUse: { feed: feedOf(item(1)) } }, metrics }
  countWarnings([...warnings, ...warnings], 'urn:org:institution:1', parts)
  for (let id = 100; id < 200; id++) countWarnings(warnings, `urn:org:institution:${id}`, parts)
  countWarnings(warnings, 'urn:org:institution:1', { feed: { inUse: undefined }, metrics })
  t.same(await warningsCounted(metrics), [
    ['urn:org:institution:1', 'isrc.form', 2],
    ['other', 'isrc.form', 101],
  ])
  t.same(
    Object.keys(await metrics.snapshot()).filter((name) => name.startsWith('hub_event_warnings')),
    [],
    'they are not in hubctl status',
  )
})
