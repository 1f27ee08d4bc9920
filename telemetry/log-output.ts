import { fstatSync, writeSync } from 'node:fs'

/** Maximum number of bytes that wait until the reader of the log takes them. */
const maxWaiting = 1024 * 1024
/** Time between two writes, milliseconds. Each write wakes the reader of the log, which then needs the processor. */
const usualPauseMs = 10

/** Writes without waiting. False: not all of the text was written. */
type Send = (text: string) => boolean

interface LogOutput {
  write(line: string): void
  /** Writes the remaining lines, at once. */
  flushSync(): void
}

/**
 * Writes log lines to the standard output. A reader that stands still, a full disk or a broken pipe must neither hold
 * up the node nor end it. So lines that cannot be written are dropped and counted. After the next write that succeeds,
 * `onLost` gets their number. Lines are written together: after the turn of the event loop in which the first of them
 * was logged, but not earlier than `pauseMs` after the last write.
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

/** Writes to a pipe only as fast as its reader reads. Writes to a file at once: no reader can hold the node up. */
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
 * `write` writes bytes and returns how many it could write. It throws if it could write none. If a write stops in the
 * middle of a line, the next write begins with a line end. Otherwise the torn line and the next line would be one.
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
