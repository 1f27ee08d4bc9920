import t from 'tap'
import type { Report } from '../../../validator/messages.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { playing, playingTopic, serviceOf, station } from '../../events.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'

/* Houses that rebroadcast each other (open.md §7): over the real doors, they are warned and nothing is blocked. */

const [a, b] = [station(0, 0), station(1, 0)]
type Livestream = typeof a
const idOf = ({ institution }: Livestream) => institution.id
const codes = (warnings: readonly { errorCode: string }[] = []) => warnings.map(({ errorCode }) => errorCode)

t.test('a pair of rebroadcasters is warned in the reports of both, and marked', async (t) => {
  const hub = await startTestHub(t)
  const { reports } = await rebroadcast(t, [hub, hub])
  const [first, second] = reports
  for (const report of [...first.slice(0, 3), ...second.slice(0, 3)])
    t.notOk(report.warnings, 'no warning yet')
  for (const [livestream, report] of [
    [a, first[3]],
    [b, second[3]],
  ] as const) {
    t.equal(report?.outcome, 'published')
    t.match(report?.warnings, [{ path: '.services', errorCode: 'loop.echo' }])
    t.match(report?.warnings?.[0]?.message, `${livestream.id}, 3 times`)
    const other = livestream === a ? b : a
    t.notMatch(report?.warnings?.[0]?.message, other.id, 'nothing of the other house')
  }
  const newest = await hub.ask<{ livestream: { id: string }; loop: object | null }[]>('events.newest')
  const looping = newest.filter(({ loop }) => loop !== null)
  t.same(new Set(looping.map(({ livestream }) => livestream.id)), new Set([a.id, b.id]))
  t.match(looping.find(({ livestream }) => livestream.id === a.id)?.loop, { with: b.id })
  t.match(
    hub.lines.filter(({ msg }) => msg === 'a livestream plays in a loop with another'),
    [
      { livestream: a.id, with: b.id },
      { livestream: b.id, with: a.id },
    ],
  )
})

t.test('over HTTPS the answer warns, and what comes in over MQTT counts, too', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const user = await addUser(hub, api, idOf(a))
  const publisher = await connectPublisher(t, hub, await hub.publisher([idOf(b)]), idOf(b))
  const { event: name, ...song } = playing(a)
  const post = async () => {
    const { status, json } = await api.call('POST', `/events/${name}`, { token: user.token, body: song })
    return { status, codes: codes(json.warnings as { errorCode: string }[] | undefined) }
  }
  // The first event of a livestream makes its topic.
  await post()
  const answers: Awaited<ReturnType<typeof post>>[] = []
  const reports: Report[] = []
  for (let round = 0; round < 5; round++) {
    answers.push(await post())
    reports.push(await publisher.publish({ event: name, ...song, services: [serviceOf(b)] }))
  }
  const expected = [[], [], [], ['loop.echo'], ['loop.echo']]
  t.same(
    answers.map(({ codes }) => codes),
    expected,
  )
  t.same(
    reports.map(({ warnings }) => codes(warnings)),
    expected,
  )
  for (const { status } of answers) t.equal(status, 201, 'nothing is blocked')
  const { json } = await api.call('GET', `/institution/livestreams/${a.id}`, { token: user.token })
  t.match(json, { livestreamId: a.id, loopSince: /^20/ })
  t.notMatch(JSON.stringify(json), b.id, 'nothing of the other house')
})

t.test('with HUB_LOOPS=off nobody is warned', async (t) => {
  const hub = await startTestHub(t, { HUB_LOOPS: 'off' })
  const { reports } = await rebroadcast(t, [hub, hub])
  t.same(
    reports.flat().flatMap(({ warnings }) => codes(warnings)),
    [],
  )
})

t.test('each house on a node of its own', { skip: withoutRedis }, async (t) => {
  const { a: one, b: two } = await startFleet(t, 2)
  const { reports } = await rebroadcast(t, [one, two])
  for (const reportsOfHouse of reports) {
    t.same(
      reportsOfHouse.slice(0, 3).flatMap(({ warnings }) => codes(warnings)),
      [],
    )
    t.same(codes(reportsOfHouse[4]?.warnings), ['loop.echo'])
  }
})

interface House {
  mqttPort: number
  caPath: string
  publisher(institutions: string[]): Promise<{ username: string; password: string }>
  subscriber(...filters: string[]): Promise<{ username: string; password: string }>
}

/**
 * Lets `a` publish a song. Then each house publishes for itself what it receives from the other, five times. Returns the
 * reports of both.
 */
async function rebroadcast(t: Parameters<typeof connect>[0], [one, two]: [House, House]) {
  const houses = await Promise.all(
    (
      [
        [one, a, b],
        [two, b, a],
      ] as const
    ).map(async ([hub, own, other]) => {
      const publisher = await connectPublisher(t, hub, await hub.publisher([idOf(own)]), idOf(own))
      const { client, received } = await connect(t, hub, await hub.subscriber(playingTopic(other)))
      await client.subscribeAsync(playingTopic(other), { qos: 1 })
      return { own, publisher, received, heard: 0 }
    }),
  )
  const [first, second] = houses
  if (!first || !second) throw new Error('two houses')
  const reports: [Report[], Report[]] = [[await first.publisher.publish(playing(a))], []]
  for (let round = 0; round < 5; round++) {
    for (const index of [1, 0] as const) {
      const house = index === 0 ? first : second
      const { json } = await house.received.until(() => true, house.heard++)
      const { id: _, ...event } = json
      reports[index].push(await house.publisher.publish({ ...event, services: [serviceOf(house.own)] }))
    }
  }
  return { reports }
}
