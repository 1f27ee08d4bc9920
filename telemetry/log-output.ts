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

/**
 * Writes whole lines, `atomicBytes` at most at once, and the next when the system has taken those before: the workers of
 * a hub write to the same pipe. Only a longer line may be torn by a line of another worker.
 */
function sendToPipe(): Send {
  const { stdout } = process
  const waiting: string[] = []
  let waitingLength = 0
  let isBroken = false
  stdout.on('error', () => {
    isBroken = true
    waiting.length = 0
  })
  return (text) => {
    if (isBroken || waitingLength > maxWaiting) return false
    waiting.push(...piecesOf(text))
    waitingLength += text.length
    proceed()
    return true
  }

  function proceed(): void {
    while (stdout.writableLength === 0) {
      const piece = waiting.shift()
      if (piece === undefined) return
      waitingLength -= piece.length
      stdout.write(piece, proceed)
    }
  }
}

/** What a pipe takes as a whole, or not at all: PIPE_BUF of Linux, bytes. */
const atomicBytes = 4096

function piecesOf(text: string): string[] {
  const pieces: string[] = []
  let room = 0
  for (const [line] of text.matchAll(/[^\n]*\n|[^\n]+$/g)) {
    const bytes = Buffer.byteLength(line)
    const last = pieces.length - 1
    if (bytes <= room) pieces[last] += line
    else pieces.push(line)
    room = (bytes <= room ? room : atomicBytes) - bytes
  }
  return pieces
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
