import { type MessageRow, messages } from '../telemetry/messages.ts'
import { code, type ReferencePage, table } from './page.ts'

/** What the log says. */
export function logPage(): ReferencePage {
  const rows = Object.entries<MessageRow>(messages).map(([message, { level, also, fields = [], means }]) => {
    return [code(message), also ? `${level}, ${also}` : level, code(...fields), means]
  })
  return {
    name: 'log',
    title: 'Messages of the log',
    about: 'The lines of [the log](operators.md#log) by their text, with their fields, and what to do.',
    text: `Each line has \`level\`, \`time\`, \`pid\`, \`hostname\` and \`msg\` besides; of a driver also \`plugin\`. A field with \`?\` is not in each line.

${table(['`msg`', 'level', 'fields', 'what it means'], rows)}`,
  }
}
