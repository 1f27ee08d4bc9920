import t from 'tap'
import type { BodySchemas } from '../../../bridge-https/body.ts'
import { describeApi } from '../../../bridge-https/description/openapi.ts'
import { eventSchemas } from '../../../event/kind.ts'
import { DataEvent } from '../../../event/kinds/data.ts'
import { TrackEvent } from '../../../event/kinds/track.ts'

const ofEvents = eventSchemas.map((schema) => String(Object(schema).$id))

t.test('an event is described where a route takes it, with all that it names', async (t) => {
  const ofTrack = ['Contributor', 'Service', 'Reference', 'MediaItem', 'EventPlugin', 'TrackEvent']
  t.strictSame(described([TrackEvent]), ofTrack)
  t.ok(described([DataEvent]).includes('DataEvent'))
  t.notOk(described([DataEvent]).includes('TrackEvent'))
})

/** The event schemas in the OpenAPI document of a route with this body. */
function described(body: BodySchemas): string[] {
  const route = {
    ...({ method: 'POST', path: '/x', id: 'x', summary: 'x', tag: 'x', body, answers: {} } as const),
    handle: () => ({ status: 200, body: undefined }),
  }
  const about = { version: '1', publicUrl: 'https://hub.example', stateOf: () => 'live' as const }
  const { components } = describeApi([route], about) as { components: { schemas: object } }
  return Object.keys(components.schemas).filter((name) => ofEvents.includes(name))
}
