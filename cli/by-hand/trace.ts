import { traceLine } from '../../operations/clients.ts'
import type { Of } from '../../operations/operation.ts'
import type { CommandOf } from '../command.ts'
import { fits } from '../known-answer.ts'
import type { Printer } from '../print.ts'
import { localTime } from '../time/local-time.ts'

type TraceLine = Of<typeof traceLine>

/** The packets of one client, a line each. */
export const trace: Partial<CommandOf<'trace'>> = {
  summary: 'packets of one client as they come and go; --json prints one value per line',
  line: (value, printer) => (fits(traceLine, value) ? shown(value, printer) : printer.properties(value)),
  isLast: (value) => fits(traceLine, value) && value.what === 'over',
}

function shown(line: TraceLine, printer: Printer): string {
  const { at, node, connection, what, packet } = line
  if (line.leftOut !== undefined)
    return printer.warning(
      `${line.leftOut ?? 'an unknown number of'} packets of ${node} left out: too many at once`,
    )
  const words = wordsOf(line).join(' ')
  return printer.line([
    [localTime(at), 29],
    [connection === undefined ? node : `${node} ${connection}`, 16],
    [packet === undefined ? what : `${what} ${packet}`, 15],
    ...(words === '' ? [] : [[words, 0] as const]),
  ])
}

/** What the line says besides, each with its name. */
function wordsOf({
  packetId,
  topic,
  filters,
  qos,
  retain,
  dup,
  returnCodes,
  bytes,
  payloadBytes,
  text,
}: TraceLine) {
  return [
    packetId !== undefined && `id ${packetId}`,
    topic,
    filters?.join(', '),
    qos !== undefined && `QoS ${qos}`,
    retain && 'retained',
    dup && 'repeated',
    returnCodes && `code ${returnCodes.join(' ')}`,
    payloadBytes !== undefined && `payload ${payloadBytes} bytes`,
    bytes !== undefined && `of ${bytes} bytes`,
    text,
  ].filter((word) => word !== undefined && word !== false && word !== '')
}
