import t, { type Test } from 'tap'
import { createPlanner } from '../../delivery/planner.ts'
import type { PluginTarget } from '../../delivery/plugins/targets.ts'
import type { WorkGroup } from '../../delivery/queue/work-item.ts'
import { createPushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { type HubEvent, kindByName } from '../../event/kind.ts'
import { control, playing, station } from '../events.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

const [livestream, other] = [station(0, 0), station(0, 1)]
const institutionId = livestream.institution.id
const request = { institutionId, url: 'https://a.example/', contact: 'a@b', createdBy: 'u' }

/** Two nodes that share a store, each with its planner. */
async function openNodes(t: Test, targets: readonly PluginTarget[] = [], whyClosed = () => '') {
  const space = createSharedSpace()
  const open = async () => {
    const store = space.openFollowed(t)
    const subscriptions = await createPushSubscriptions({ store, serviceAccount: 'a@b', clock: Date.now })
    let planned: readonly WorkGroup[] = []
    const { plan, pluginTargets } = createPlanner({
      subscriptions,
      targets,
      whyClosed: () => whyClosed() || undefined,
      queues: {
        plan({ groups }) {
          planned = groups
          return []
        },
      },
    })
    store.start()
    return {
      store,
      subscriptions,
      pluginTargets,

      /** The planned items of an event, in order, each as `<nth> <scope> <queue>`. */
      owed(event: object, livestreamIds = [livestream.id], isRepeatedWhole = false): string[] {
        planned = []
        const { event: name, id } = event as { event: string; id: string }
        const kind = kindByName.get(name)
        if (!kind) throw new Error(`${name} is no event`)
        const accepted = { event: event as HubEvent, id, kind, time: 0, institutionId, livestreamIds }
        plan({ ...accepted, payload: Buffer.from('') }, { once: () => [], isRepeatedWhole })
        return planned.flatMap(({ scope, content, queues }) =>
          queues.map((queue) => `${'nth' in content ? content.nth : '?'} ${scope} ${queue}`),
        )
      },
    }
  }
  return { a: await open(), b: await open() }
}

t.test(
  'an event goes to the webhooks of its livestreams, on every node as soon as it knows them',
  async (t) => {
    const { a, b } = await openNodes(t)
    const event = playing(livestream)
    t.same(a.owed(event), [])
    const made = await a.subscriptions.add({ ...request, topicId: livestream.id })
    const name = made?.name ?? ''
    const owed = [`0 ${livestream.id} ${name}`]
    t.same(a.owed(event), owed)
    await settled(b.store)
    t.same(b.owed(event), owed)
    t.same(a.owed(event, [other.id]), [])
    t.same(
      a.owed(event, [other.id, livestream.id]),
      [`1 ${livestream.id} ${name}`],
      'by the place of its message',
    )
    t.same(a.owed(control(livestream)), [], 'track events only')
    await b.subscriptions.disable(name)
    await b.subscriptions.pause(name, 'root')
    t.same(b.owed(event), owed, 'also while nothing is sent')
    await b.subscriptions.remove(institutionId, name)
    t.same(b.owed(event), [])
    await settled(a.store)
    t.same(a.owed(event), [])
  },
)

t.test('a webhook gets tracks of the types that it names, whatever came before', async (t) => {
  const { a } = await openNodes(t)
  const made = await a.subscriptions.add({ ...request, topicId: livestream.id, types: ['music'] })
  const owed = (type: string) => a.owed(playing(livestream, { type }))
  for (const type of ['news', 'music', 'news'])
    t.same(owed(type), type === 'music' ? [`0 ${livestream.id} ${made?.name}`] : [], type)
})

t.test('nothing goes to webhooks when push has retired', async (t) => {
  let why = ''
  const { a } = await openNodes(t, [], () => why)
  await a.subscriptions.add({ ...request, topicId: livestream.id })
  t.equal(a.owed(playing(livestream)).length, 1)
  why = 'retired'
  t.same(a.owed(playing(livestream)), [])
})

t.test('an event goes to the targets that it names, and to those that enable themselves', async (t) => {
  const { a: none } = await openNodes(t)
  const { a: named } = await openNodes(t, [{ type: 'dts' }])
  const { a: self } = await openNodes(t, [{ type: 'dts', autoEnable: true }])
  const dts = ['0 plugins.dts plugins.dts']
  const music = playing(livestream, { type: 'music' })
  const asking = { ...control(livestream), plugins: [{ type: 'dts' }] }
  const cases: [object, string[], string[], string[]][] = [
    [music, [], [], dts],
    [control(livestream), [], [], []],
    [asking, [], dts, dts],
    [{ ...music, plugins: [{ type: 'dts', isDeactivated: true }] }, [], [], []],
    [{ ...music, plugins: 'none' }, [], [], dts],
  ]
  for (const [event, ...expected] of cases) {
    t.same([none.owed(event), named.owed(event), self.owed(event)], expected)
  }
  t.same([...none.pluginTargets, ...named.pluginTargets], ['dts'], 'warnings name them')
})
