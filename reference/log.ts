import { mostLimited } from '../telemetry/limit.ts'
import { type MessageRow, messages } from '../telemetry/messages.ts'
import { code, type ReferencePage, table } from './page.ts'

/** What the log says. */
export function logPage(): ReferencePage {
  const rows = Object.entries<MessageRow>(messages).map(([message, row]) => {
    const { level, also, fields = [], isLimited, means } = row
    const all = isLimited ? [...fields, 'leftOut?'] : fields
    return [code(message), also ? `${level}, ${also}` : level, code(...all), means]
  })
  return {
    name: 'log',
    title: 'Messages of the log',
    about: 'The lines of [the log](operators.md#log) by their text, with their fields, and what to do.',
    text: `Each line has \`level\`, \`time\`, \`pid\`, \`hostname\` and \`msg\` besides; of a driver also \`plugin\`. A field with \`?\` is not in each line. Where something fails for many events or clients at once, the
log has the first ${mostLimited} lines of a message in each minute, and \`leftOut\` counts those that had no line before this one.

${table(['`msg`', 'level', 'fields', 'what it means'], rows)}`,
  }
}
