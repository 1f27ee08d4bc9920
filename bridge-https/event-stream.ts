import type { Answer } from './answer.ts'

/**
 * Headers of a stream. `no-transform`: a proxy that compresses would hold events back until it has enough of them
 * (RFC 9111 §5.2.2.6). `x-accel-buffering`: nginx passes on each event at once.
 */
export const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** Milliseconds after which a reader comes back that found no room. */
const busyMs = 30_000

/** Tells a reader to come back later. `EventSource` never comes back from another status than 200 (open.md §4). */
export const streamBusy: Answer = {
  status: 200,
  body: `retry: ${busyMs}\nevent: bye\ndata: {"reason":"limit"}\n\n`,
  headers: streamHeaders,
}
