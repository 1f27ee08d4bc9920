import type { Socket } from 'node:net'
import { quote } from '../../event/error.ts'
import { OutgoingBuffer } from '../../listener/outgoing-buffer.ts'
import type { OnAir } from '../../on-air/on-air.ts'
import { viewOf } from '../../on-air/view.ts'
import { type Answer, refuse } from '../answer.ts'
import { streamBusy, streamHeaders } from '../event-stream.ts'
import { checkCount, delay, delayMsOf, livestreamId, livestreamList } from './on-air-routes.ts'
import { checkNumber, valuesOf } from './parameters.ts'
import type { Call, GuardedRoute, QueryParameter } from './route.ts'

/** The parts of the hub that these routes ask. */
interface StreamParts {
  onAir: OnAir
  isPagePublic: boolean
  /** Bytes that may wait for one reader (`HUB_OUTGOING_BUFFER`). */
  outgoingBuffer: number
}

/** Visitors of a public page read no further back than this, milliseconds. */
const strangersBackMs = 5 * 60_000

const lastEventId = {
  description:
    'Position of the last event that the reader has, where it cannot send the header Last-Event-ID',
  isList: false,
} satisfies QueryParameter

/** Routes that stream events as Server-Sent Events (open.md §4). */
export function streamRoutes({ onAir, isPagePublic, outgoingBuffer }: StreamParts): GuardedRoute[] {
  const stream = {
    method: 'GET',
    tag: 'On air',
    permission: 'subscribe',
    readers: true,
    crossOrigin: true,
    isStream: true,
    strangers: isPagePublic,
    description:
      'Server-Sent Events: the state, then `ready`, then each event as it comes. With Last-Event-ID: what was missed, instead of the state.',
    answers: {
      200: { description: 'The stream', mediaType: 'text/event-stream' },
      400: 'Invalid parameter',
      404: 'There is no such livestream',
    },
  } as const
  return [
    {
      ...stream,
      path: '/livestreams/{livestreamId}/stream',
      id: 'livestreamStream',
      summary: 'Stream the events of a livestream',
      params: { livestreamId },
      query: { lastEventId, delay },
      handle: (call) => begin(call, [call.params.livestreamId ?? '']),
    },
    {
      ...stream,
      path: '/stream',
      id: 'livestreamsStream',
      summary: 'Stream the events of several livestreams, or of all',
      query: { livestream: livestreamList, lastEventId, delay },
      handle: (call) => begin(call, valuesOf(call.query.livestream)),
    },
  ]

  function begin(call: Call, asked: readonly string[]): Answer {
    const wrong = [...checkNumber('delay', call.query.delay, delay), ...checkCount(asked)]
    if (wrong.length > 0) return refuse(400, wrong)
    const view = viewOf(call.filters)
    const unknown = asked.find((id) => !onAir.livestreams.find(id, view))
    if (unknown !== undefined) return refuse(404, undefined, `Livestream not found: ${quote(unknown)}`)
    if (!onAir.streams.hasRoom()) return streamBusy
    const { holder, expiresAt, isStillUser } = call
    const wanted = {
      view,
      livestreams: asked.length > 0 ? asked : undefined,
      delayMs: delayMsOf(call),
      after: positionAsked(call),
      mostBackMs: holder === undefined ? strangersBackMs : Number.POSITIVE_INFINITY,
      holder,
      expiresAt,
      isStillUser,
    }
    return {
      status: 200,
      body: undefined,
      headers: streamHeaders,
      stream: (socket) => serve(socket, wanted),
    }
  }

  function serve(socket: Socket, wanted: Parameters<typeof onAir.streams.open>[1]): void {
    const slow = () => {
      ended('slow')
      socket.destroy()
    }
    const outgoing = new OutgoingBuffer(socket, outgoingBuffer, { slow, dropped: () => undefined })
    const ended = onAir.streams.open(
      {
        write(bytes) {
          if (!outgoing.accepts(bytes.length, 1)) return false
          outgoing.write(bytes)
          return true
        },
        paced: () => outgoing.paced(),
        end: () => socket.destroySoon(),
      },
      wanted,
    )
    socket.on('close', () => {
      outgoing.close()
      ended('closed')
    })
  }
}

/** The position after which the reader goes on. NaN: it cannot be read. */
function positionAsked({ header, query }: Call): number | undefined {
  const text = header('last-event-id') ?? query.lastEventId
  if (text === undefined || text === '') return undefined
  return /^[0-9]{1,15}$/.test(String(text)) ? Number(text) : Number.NaN
}
