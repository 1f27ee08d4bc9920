import { fstatSync, writeSync } from 'node:fs'

/** Maximum number of bytes that wait until the reader of the log takes them. */
const maxWaiting = 1024 * 1024
/** Time between two writes, milliseconds. Each write wakes the reader of the log, and that costs processor time. */
const usualPauseMs = 50

/** Writes without waiting. False: not all of the text was written. */
type Send = (text: string) => boolean

interface LogOutput {
  write(line: string): void
  /** Writes the remaining lines, at once. */
  flushSync(): void
}

/**
 * Writes log lines to the standard output, in groups at least `pauseMs` apart. A slow reader, a full disk or a broken
 * pipe must not hold up or end the node. Lines that cannot be written are dropped: `onLost` gets their number after the
 * next successful write.
 */
export function createLogOutput(
  onLost: (lines: number) => void,
  send: Send = sender(1),
  pauseMs = usualPauseMs,
): LogOutput {
  let lines: string[] = []
  let lost = 0
  let written = -pauseMs
  process.on('exit', flushSync)
  return {
    write(line) {
      if (lines.push(line) > 1) return
      const wait = written + pauseMs - performance.now()
      if (wait > 0) setTimeout(flushSync, wait)
      else setImmediate(flushSync)
    },
    flushSync,
  }

  function flushSync(): void {
    if (lines.length === 0) return
    const group = lines
    lines = []
    written = performance.now()
    if (!send(group.join(''))) {
      lost += group.length
    } else if (lost > 0) {
      const told = lost
      lost = 0
      onLost(told)
    }
  }
}

/** Writes to a pipe as fast as its reader reads, and to a file at once. */
function sender(descriptor: number): Send {
  const target = fstatSync(descriptor)
  if (target.isFIFO() || target.isSocket()) return sendToPipe()
  return sendToFile((bytes) => writeSync(descriptor, bytes))
}

function sendToPipe(): Send {
  const { stdout } = process
  let isBroken = false
  stdout.on('error', () => {
    isBroken = true
  })
  return (text) => {
    if (isBroken || stdout.writableLength > maxWaiting) return false
    stdout.write(text)
    return true
  }
}

/**
 * `write` returns how many bytes it wrote, and throws if it wrote none. After a torn line, the next write begins with a
 * line end.
 */
export function sendToFile(write: (bytes: Buffer) => number): Send {
  let isTorn = false
  return (text) => {
    const bytes = Buffer.from(isTorn ? `\n${text}` : text)
    try {
      const written = write(bytes)
      isTorn = bytes[written - 1] !== lineEnd
      return written === bytes.length
    } catch {
      return false // most likely the disk is full: a later write may succeed
    }
  }
}

const lineEnd = '\n'.charCodeAt(0)
