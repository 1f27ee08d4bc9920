import t from 'tap'
import { enabledTargets, type PluginTarget } from '../../../delivery/plugins/targets.ts'
import { type HubEvent, kindByName } from '../../../event/kind.ts'
import { control, data, playing, station } from '../../events.ts'

/* The rules of service.md §2.6 and §4.2 and of design.md §10, row by row. */

const dts: PluginTarget = { type: 'dts', autoEnable: true, url: 'https://dts.example/' }
const manual: PluginTarget = { type: 'manual', autoEnable: false, url: 'https://manual.example/' }
const silent: PluginTarget = { type: 'silent', url: 'https://silent.example/' }
const targets = [dts, manual, silent]

const now = 'de.org.hub.v1.radio.track.playing'
const next = 'de.org.hub.v1.radio.track.next'

function enabled(kindName: string, event: Record<string, unknown>, configured = targets) {
  const kind = kindByName.get(kindName)
  if (!kind) throw new Error(kindName)
  return enabledTargets(event as unknown as HubEvent, kind, configured)
}

const track = (type: string, plugins?: unknown) => ({
  ...playing(station(), { type }),
  ...(plugins !== undefined && { plugins }),
})

type Row = [kind: string, type: string, plugins: unknown, expected: string[]]
const rows: Row[] = [
  // If an event names no plugin, targets with `autoEnable` get music that plays now.
  [now, 'music', undefined, ['dts']],
  [now, 'music', null, ['dts']],
  [now, 'music', [], ['dts']],
  ...['audio', 'commercial', 'jingle', 'live', 'news', 'traffic', 'weather'].map(
    (type): Row => [now, type, undefined, []],
  ),
  [next, 'music', undefined, []],
  [next, 'music', [], []],
  // An entry of `plugins` enables its target for every kind of event.
  [now, 'music', [{ type: 'manual' }], ['dts', 'manual']],
  [now, 'news', [{ type: 'manual' }], ['manual']],
  [next, 'music', [{ type: 'manual' }], ['manual']],
  [next, 'music', [{ type: 'dts' }], ['dts']],
  [next, 'news', [{ type: 'dts' }, { type: 'silent' }], ['dts', 'silent']],
  [now, 'music', [{ type: 'dts', isDeactivated: false }], ['dts']],
  [now, 'news', [{ type: 'dts', isDeactivated: false }], ['dts']],
  // An entry with `isDeactivated` disables its target.
  [now, 'music', [{ type: 'dts', isDeactivated: true }], []],
  [next, 'music', [{ type: 'dts', isDeactivated: true }], []],
  [now, 'music', [{ type: 'manual', isDeactivated: true }], ['dts']],
  [now, 'music', [{ type: 'dts', isDeactivated: true }, { type: 'manual' }], ['manual']],
  [now, 'music', [{ type: 'dts' }, { type: 'dts', isDeactivated: true }], []],
  [now, 'music', [{ type: 'dts', isDeactivated: true }, { type: 'dts' }], []],
  // Two entries for the same target enable it once.
  [now, 'music', [{ type: 'dts' }, { type: 'dts', id: '2' }], ['dts']],
  [next, 'music', [{ type: 'manual' }, { type: 'manual' }], ['manual']],
  // Entries that match no configured target change nothing.
  [now, 'music', [{ type: 'other' }], ['dts']],
  [now, 'music', [{ id: 'dts' }], ['dts']],
  [next, 'music', [{}], []],
  [now, 'music', [{ type: 'DTS', isDeactivated: true }], ['dts']],
  [now, 'music', [{ type: '__proto__' }, { type: 'constructor' }], ['dts']],
]

t.test('which targets get an event', async (t) => {
  for (const [kind, type, plugins, expected] of rows) {
    t.same(
      enabled(kind, track(type, plugins)).map((one) => one.type),
      expected,
      `${type} ${kind.split('.').at(-1)} with ${JSON.stringify(plugins)}`,
    )
  }
})

t.test('the item has the entry that made it so', async (t) => {
  const entry = { type: 'dts', id: '7', station: 'kw1', nested: { a: [1] } }
  t.same(enabled(now, track('music', [{ type: 'other' }, entry, { type: 'dts', id: '8' }])), [
    { type: 'dts', plugin: entry },
  ])
  t.same(enabled(now, track('music')), [{ type: 'dts', plugin: { type: 'dts' } }])
})

t.test('control and data enable by name only, and their lists are read with care', async (t) => {
  const both = [
    ['de.org.hub.v1.radio.control', control(station())],
    ['de.org.hub.v1.radio.data', data(station())],
  ] as const
  for (const [kind, event] of both) {
    t.same(enabled(kind, event), [])
    t.same(enabled(kind, { ...event, type: 'music' }), [])
    t.match(enabled(kind, { ...event, plugins: [{ type: 'dts' }] }), [{ type: 'dts' }])
    for (const plugins of ['dts', 1, {}, [null], ['dts'], [[]], [{ type: 1 }], [{ type: ['dts'] }], true]) {
      t.same(enabled(kind, { ...event, plugins }), [], JSON.stringify(plugins))
    }
  }
})
