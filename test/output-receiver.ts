import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { connectPublisher } from './clients.ts'
import { playing, station } from './events.ts'
import { listen } from './listen.ts'
import { startTestHub, temporaryDirectory } from './start-hub.ts'

/** A title that came over HTTP: `GET /{name}?t={text}`. */
export interface Came {
  name: string
  text: string
  at: number
}

/** A server over plain HTTP that notes titles, and answers as `behave` says; by default 200. */
export async function startTitleServer(t: Test) {
  const came: Came[] = []
  let behave = (_: Came, response: ServerResponse, _request: IncomingMessage): void => {
    response.end('ok')
  }
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://h')
    const one = { name: pathname.slice(1), text: searchParams.get('t') ?? '', at: performance.now() }
    came.push(one)
    behave(one, response, request)
  })
  const port = await listen(t, server)
  return {
    came,
    texts: (name: string) => came.filter((one) => one.name === name).map(({ text }) => text),
    port,
    behave(next: typeof behave): void {
      behave = next
    },
  }
}

export const [first, second] = [station(0, 0), station(0, 1)] as const
const institution = first.institution.id

/** A hub with an output `web` for two livestreams, called `first` and `second` there. */
export async function openOutput(
  t: Test,
  url: string,
  fields: Record<string, unknown> = {},
  variables: Record<string, string> = {},
) {
  const home = await temporaryDirectory(t)
  const config = join(home, 'hub.json')
  const livestreams = { [first.id]: 'first', [second.id]: 'second' }
  const output = { name: 'web', driver: 'url-template', url, livestreams, ...fields }
  writeFileSync(config, JSON.stringify({ outputs: [output] }))
  const env = { HUB_CONFIG: config, HUB_DATA_DIR: join(home, 'data'), ...variables }
  const start = () => startTestHub(t, env, home)
  const hub = await start()
  const { publish } = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  return {
    hub,
    start,
    play: (title: string, more: Record<string, unknown> = {}, livestream = first) =>
      publish(playing(livestream, { title, artist: null, ...more })),
    lane: (there = 'first', of = hub) => laneOf(of, there),
  }
}

export interface ShownLane {
  there: string
  state: string
  title: string | null
  acknowledged: number
  failed: number
  stale: number
  lastReason: string | null
}

export async function laneOf(
  hub: { ask<Result>(command: string): Promise<Result> },
  there: string,
): Promise<ShownLane> {
  const lanes = await hub.ask<ShownLane[]>('outputs.list')
  const found = lanes.find((lane) => lane.there === there)
  if (!found) throw new Error(`there is no lane ${there}`)
  return found
}
