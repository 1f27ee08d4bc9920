/*
 * The text of Server-Sent Events (HTML Living Standard §9.2), as open.md §4 lays it out. An empty line stands behind
 * events alone: some libraries, such as fetch-event-source, make a message without `data` of any other.
 */

/** Opens a stream: after how many milliseconds the client comes back when the stream has ended. */
export function retryAfter(ms: number): Buffer {
  return Buffer.from(`retry: ${ms}\n`)
}

/** Keeps connections from being taken for dead. Clients drop comments. */
export const comment = Buffer.from(':\n')

/** What a stream says of itself. Clients are told of no event without `data`. `id`: where a return goes on. */
export function notice(event: 'ready' | 'missed' | 'bye', about: object, id?: number): Buffer {
  return Buffer.from(`event: ${event}\n${idLine(id)}data: ${JSON.stringify(about)}\n\n`)
}

/** An event of a livestream. `id`: its position, after which a return goes on. */
export function eventOf(
  { topic, payload }: { topic: string; payload: Buffer },
  { isRetained = false, id }: { isRetained?: boolean; id?: number },
): Buffer {
  const [, livestreamId = '', ...levels] = topic.split('/')
  const about = `"livestreamId":${JSON.stringify(livestreamId)},"retained":${isRetained}`
  return Buffer.from(
    `event: ${levels.at(-1)}\n${idLine(id)}data: {${about},"event":${inOneLine(payload.toString())}}\n\n`,
  )
}

function idLine(id: number | undefined): string {
  return id === undefined ? '' : `id: ${id}\n`
}

/**
 * A line break would end the field. Only imported events may have one, between their tokens. Line separators of Unicode
 * stand in texts alone, and readers that cut a text into lines, such as `iter_lines` of Python's requests, cut there too.
 */
function inOneLine(json: string): string {
  if (!/[\r\n\u0085\u2028\u2029]/.test(json)) return json
  const line = /[\r\n]/.test(json) ? JSON.stringify(JSON.parse(json)) : json
  return line.replace(
    /[\u0085\u2028\u2029]/g,
    (separator) => `\\u${separator.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
