import type { ServerResponse } from 'node:http'

/** The lines with which a command answers while it works. */
export type Lines = AsyncIterableIterator<unknown>

/** Whether a command answers line by line. */
export function isLineByLine(result: unknown): result is Lines {
  return typeof result === 'object' && result !== null && Symbol.asyncIterator in result
}

/** Sends one JSON value per line until the client leaves or `closing` aborts. Waits for slow clients. */
export async function sendLines(response: ServerResponse, lines: Lines, closing: AbortSignal): Promise<void> {
  let isOver = false
  let goOn = () => {}
  const end = () => {
    isOver = true
    void lines.return?.()
    goOn()
  }
  // All waits for `drain` share one listener. A listener for each wait would stay behind if the wait ended early.
  response.on('drain', () => goOn())
  response.once('close', end)
  closing.addEventListener('abort', end, { once: true })
  if (closing.aborted || response.closed) end()
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  response.flushHeaders()
  try {
    for await (const line of lines) {
      if (response.write(`${JSON.stringify(line)}\n`) || isOver) continue
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
    }
  } finally {
    closing.removeEventListener('abort', end)
    response.off('close', end)
    // Do not wait for the sending: a stalled client would keep the node from closing.
    response.end()
  }
}
