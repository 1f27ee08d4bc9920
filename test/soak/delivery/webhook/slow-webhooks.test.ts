import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../../certs/development.ts'
import { slots } from '../../../../delivery/queue/limits.ts'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { institutions, playing, serviceOf, station, stations } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

/*
 * A webhook that answers just before the deadline holds a slot of the runner. Many slow webhooks of one institution
 * must not delay those of another institution.
 */
const [slow = '', healthy = ''] = institutions
const playingUrl = '/events/de.org.hub.v1.radio.track.playing'

async function start(t: Test) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...pushing(receiver), HUB_PUBLISH_RATE: '0' }, home)
  const api = await openApi(t, hub)

  async function institution(index: number, id: string) {
    const { token } = await addUser(hub, api, id)
    const livestreams = stations[index] ?? []
    const [livestream = station(index)] = livestreams
    const services = livestreams.map(serviceOf)
    const publish = async (title: string) => {
      const body = { ...playing(livestream), services, title }
      return (await api.call('POST', playingUrl, { token, body })).json
    }
    await publish('makes the topic')
    return {
      publish,
      /** Subscribes the webhooks to the livestreams in turn: an institution has at most 50 webhooks per livestream. */
      async subscribe(urls: readonly string[]): Promise<void> {
        const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example' }
        const sent = urls.map((url, nth) => {
          const { id: topic } = livestreams[nth % livestreams.length] ?? livestream
          return api.call('POST', '/subscriptions', { token, body: { ...body, url, topic } })
        })
        for (const { status } of await Promise.all(sent)) t.equal(status, 201)
      },
    }
  }
  return { home, receiver, slow: await institution(0, slow), healthy: await institution(1, healthy) }
}

/** Starts servers that accept requests, but do not answer them. */
async function startHolding(t: Test, home: string, count: number) {
  const tls = await ensureDevelopmentCertificates(join(home, 'receiver-certs'), [])
  const held = new Set<ServerResponse>()
  let arrived = () => {}
  const servers: Server[] = []
  for (let index = 0; index < count; index++) {
    const server = createServer(
      { key: readFileSync(tls.key), cert: readFileSync(tls.cert) },
      (request, response) => {
        request.resume()
        held.add(response)
        response.on('close', () => held.delete(response))
        arrived()
      },
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    servers.push(server)
  }
  t.teardown(() => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
  })
  return {
    urls: servers.map((server) => `https://localhost:${(server.address() as AddressInfo).port}/`),
    held,
    async until(isEnough: () => boolean): Promise<void> {
      while (!isEnough()) {
        await new Promise<void>((resolve) => {
          arrived = resolve
        })
      }
    },
  }
}

t.test('slow webhooks of one institution leave slots for another', { timeout: 120_000 }, async (t) => {
  const one = await start(t)
  const { total, perEndpoint } = slots.healthy
  const each = perEndpoint / 2
  const holding = await startHolding(t, one.home, total / 2 / each + 1)
  await one.slow.subscribe(holding.urls.flatMap((url) => Array.from({ length: each }, () => url)))
  await one.healthy.subscribe([one.receiver.url()])
  await one.slow.publish('Slow')
  await holding.until(() => holding.held.size === total / 2)
  await one.healthy.publish('Healthy')
  await one.receiver.until((received) => received.length === 1)
  t.equal(holding.held.size, total / 2, 'while all of these are held')
})

t.test('nor do they take all that one receiver is given', { timeout: 120_000 }, async (t) => {
  const one = await start(t)
  const { perEndpoint } = slots.healthy
  const held = new Set<ServerResponse>()
  one.receiver.behave(({ path }, response) => {
    if (path !== '/slow') return 201
    held.add(response)
    response.on('close', () => held.delete(response))
    return undefined
  })
  await one.slow.subscribe(Array.from({ length: perEndpoint + 8 }, () => one.receiver.url('/slow')))
  await one.healthy.subscribe([one.receiver.url('/healthy')])
  await one.slow.publish('Slow')
  await one.receiver.until(() => held.size === perEndpoint / 2)
  await one.healthy.publish('Healthy')
  await one.receiver.until((received) => received.some(({ path }) => path === '/healthy'))
  t.equal(held.size, perEndpoint / 2)
})
