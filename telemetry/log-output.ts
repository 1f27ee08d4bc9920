import { fstatSync, writeSync } from 'node:fs'

/** How much may wait for whoever reads it, bytes. */
const maxWaiting = 1024 * 1024
/** Between two writes, milliseconds: each wakes whoever reads, who wants the processor then. */
const pauseMs = 10

/** Takes what can be written without waiting; false: not all of it was taken. */
type Send = (text: string) => boolean

interface LogOutput {
  write(line: string): void
  /** Writes what is still to be written, at once. */
  flushSync(): void
}

/**
 * Standard output for log lines. Neither a reader who stands still, nor a disk that is full, nor a pipe that broke holds
 * up the node or ends it: lines that cannot be written are lost and counted. `onLost` is told how many, when there is
 * room again. A line is written when its turn of the event loop is over, many in a short time together.
 */
export function createLogOutput(onLost: (lines: number) => void, send: Send = sender(1)): LogOutput {
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

/** A pipe is written to as fast as it is read. Anything else has no reader that could hold it up. */
function sender(descriptor: number): Send {
  const target = fstatSync(descriptor)
  return target.isFIFO() || target.isSocket() ? sendToPipe() : (text) => sendToFile(descriptor, text)
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

function sendToFile(descriptor: number, text: string): boolean {
  try {
    return writeSync(descriptor, text) === Buffer.byteLength(text)
  } catch {
    return false // The disk is full, most likely: to be tried again with the next lines.
  }
}
