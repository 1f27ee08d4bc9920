import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

/* What is probably wrong with a published event is said at every door (open.md §3). */
const [own = ''] = institutions
const path = '/events/de.org.hub.v1.radio.track.playing'
const late = () => new Date(Date.now() - 60_000).toISOString()
const wrong = () => playing(station(), { start: late(), isrc: 'unknown', plugins: [{ type: 'nobody' }] })

onEachStore('reports, answers, dry runs, the history and a metric have the warnings', async (t, store) => {
  const hub = await startTestHub(t, store)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const warnings = [
    { path: '.start', errorCode: 'start.clock', message: /s behind it$/ },
    { path: '.isrc', errorCode: 'isrc.form', message: /"unknown"/ },
    { path: '.plugins.0.type', errorCode: 'plugin.unknown' },
  ]
  const report = await studio.publish(wrong())
  t.match(report, { outcome: 'published', errors: [], warnings })
  t.ok(Number(Object(report.warnings)[0].startBehindMs) >= 60_000)
  t.match(await studio.publish(wrong(), { topic: `inbox/${own}/check` }), { dryRun: true, warnings })
  t.notOk('warnings' in (await studio.publish(playing(station()))))
  const payload = Buffer.from(JSON.stringify(wrong())).toString('base64')
  t.match(await hub.ask('check', { payload, institution: own }), { outcome: 'published', warnings })
  t.match(await hub.ask('events.show', { id: String(report.id) }), { report: { warnings } })

  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const post = (query: string, body: object) => api.call('POST', path + query, { token, body })
  const belowBody = warnings.map((warning) => ({ ...warning, path: `.body${warning.path}` }))
  const answer = await post('', wrong())
  t.match(answer, {
    status: 201,
    json: { statuses: { published: 1 }, errors: undefined, warnings: belowBody },
  })
  t.match(await post('?dryRun=true', wrong()), { json: { dryRun: true, warnings: belowBody } })
  t.notOk('warnings' in (await post('', playing(station()))).json)
  const { id } = Object(answer.json.event)
  t.match(await hub.ask('events.show', { id }), { report: { warnings } }, 'an answer is in the history, too')

  const counted = (await api.call('GET', '/metrics')).text
    .split('\n')
    .filter((line) => line.startsWith('hub_event_warnings_total{'))
  const expected = warnings.map(
    ({ errorCode }) => `hub_event_warnings_total{institution="${own}",code="${errorCode}"} 2`,
  )
  t.same(counted, expected, 'dry runs do not count')
})
