import { errorTable, schemaErrorTable } from '../event/error.ts'
import { warningTable } from '../event/warnings.ts'
import { differences } from '../validator/dialect.ts'
import { feedRefusals } from '../validator/feed/refusals.ts'
import { code, type ReferencePage, table } from './page.ts'

/** What the hub refuses or warns of, and what to do. */
export function errorsPage(): ReferencePage {
  return {
    name: 'errors',
    title: 'Errors and warnings',
    about: 'The codes in `errors` and `warnings` of an event, and the reasons to refuse a livestream feed.',
    text: [errors(), warnings(), newerForm(), feed()].join('\n\n'),
  }
}

function errors(): string {
  const ofEvents = Object.entries(errorTable).map(([name, { sentence, outcome, remedy }]) => {
    return [code(name), outcome, sentence, remedy]
  })
  const ofSchemas = Object.entries(schemaErrorTable).map(([keyword, { sentence, remedy }]) => {
    return [code(`${keyword}.openapi.validation`), 'invalid', sentence, remedy]
  })
  return `## Errors

[What an outcome means](publishers.md#error-codes). Codes are stable, sentences are not.

${table(['`errorCode`', 'outcome', 'what it means', 'what to do'], [...ofEvents, ...ofSchemas])}`
}

function warnings(): string {
  const rows = Object.entries(warningTable).map(([name, row]) => {
    const amid = 'exampleAmid' in row ? `, ${row.exampleAmid.means}` : ''
    return [code(name), row.sentence, code(JSON.stringify(row.example)) + amid, row.remedy]
  })
  return `## Warnings

The hub has [published the event all the same](publishers.md#warnings). The examples are fields that warn, of an event
received at \`2026-01-31T12:00:00+01:00\`.

${table(['`errorCode`', 'what it means', 'example', 'what to do'], rows)}`
}

function newerForm(): string {
  const rows = differences.map(({ code: name, newer, becomes }) => [code(name), newer, becomes])
  return `## The newer form

Warnings about what the hub completed, replaced or dropped of [the newer form](publishers.md#the-newer-form) of an event.

${table(['`errorCode`', 'you send', 'what becomes of it'], rows)}`
}

function feed(): string {
  const rows = Object.entries(feedRefusals).map(([reason, { sentence, force }]) => {
    return [code(reason), sentence, force ? 'yes' : 'no']
  })
  return `## The livestream feed

Why a hub refuses a new [livestream feed](operators.md#the-livestream-feed) and keeps the last good one: \`reason\` of
\`hubctl feed status\`. The last column says whether \`hubctl feed refresh --force\` takes the feed all the same.

${table(['reason', 'what it means', '`--force`'], rows)}`
}
