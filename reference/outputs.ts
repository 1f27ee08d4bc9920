import { carriers } from '../delivery/carriers/carriers.ts'
import { characterClasses } from '../delivery/carriers/transliterate.ts'
import type { Output } from '../delivery/outputs/output.ts'
import { outputs } from '../delivery/outputs/outputs.ts'
import { placeholders } from '../delivery/outputs/url-template/template.ts'
import { code, table } from './page.ts'

const begin = '<!-- From `delivery/outputs/`, by `npm run docs` -->\n'
const end = '<!-- End -->\n'

/** The page of outputs, with the part that is made of the folders of `delivery/outputs/`. */
export function outputsPage(page: string): string {
  const [before = '', rest = ''] = page.split(begin)
  const after = rest.slice(rest.indexOf(end) + end.length)
  const parts = [...outputs.map(sectionOf), placeholderTable(), texts()]
  return `${before}${begin}\n${parts.join('\n\n')}\n\n${end}${after}`
}

function sectionOf({ name, about, there, settings, example, carrier, answers, surprises }: Output): string {
  const required: readonly string[] = settings.required ?? []
  const fields = Object.entries(settings.properties).map(([field, schema]) => [
    code(field),
    `${sentence(schema)}${required.includes(field) ? '' : '; may be left out'}`,
  ])
  const livestreams = { 'urn:org:permanent-livestream:4638c4eac849c618': example.there }
  return [
    `### ${name}`,
    `${about.charAt(0).toUpperCase()}${about.slice(1)}. \`{text}\` has at most ${carrier.limit}.`,
    `\`\`\`json\n${JSON.stringify({ name: 'mine', driver: name, ...example.settings, livestreams }, null, 2)}\n\`\`\``,
    table(['field', ''], [...fields, ['the name in `livestreams`', sentence(there)]]),
    table(['answer', ''], answers),
    table(['what surprises', 'so'], surprises),
  ].join('\n\n')
}

function sentence(schema: object): string {
  return 'description' in schema ? String(schema.description) : ''
}

function placeholderTable(): string {
  const rows = Object.entries(placeholders).map(([name, about]) => [code(`{${name}}`), about])
  return `### Placeholders of url-template\n\nThey stand in path, query and body only: percent-encoded, or in the texts of a JSON body.\n\n${table(['placeholder', ''], rows)}`
}

function texts(): string {
  return [
    '## Texts',
    'Control characters, line separators and marks that turn the direction of writing are removed first. A text is `artist - title`. What is too long ends with a whole word.',
    table(
      ['carrier', 'at most'],
      carriers.map(({ name, limit }) => [name, limit]),
    ),
    'RDS and DAB have their own characters. What they lack:',
    table(
      ['', 'such as', 'becomes', ''],
      characterClasses.map(({ of, from, to, how }) => [of, code(from), code(to), how]),
    ),
  ].join('\n\n')
}
