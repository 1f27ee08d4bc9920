import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import * as apiSchemas from '../bridge-https/description/schemas.ts'
import type { CommandOf } from '../cli/command.ts'
import { commands } from '../cli/commands.ts'
import { createPrinter } from '../cli/print.ts'
import { localCommands, programOptions } from '../cli/typed/program.ts'
import { welcomeText } from '../cli/welcome.ts'
import { errorCodes } from '../client/errors.ts'
import { loadConfig, variableNames } from '../config/config.ts'
import { sampleFeedPath } from '../config/sample-feed.ts'
import { hasGtinCheckDigit, hasIsniCheckDigit } from '../event/check-digit.ts'
import { errorTable, schemaErrorTable } from '../event/error.ts'
import { eventSchemas } from '../event/kind.ts'
import { warningsOf, warningTable } from '../event/warnings.ts'
import { operations } from '../operations/operations.ts'
import { decide } from '../validator/decide.ts'
import { parseFeed } from '../validator/feed/feed.ts'
import { anchorsOf } from './documentation.ts'
import { root } from './root.ts'

/*
 * The documentation names exactly the settings, error codes, and commands that exist.
 */

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const paths = [
  'README.md',
  'CONTRIBUTING.md',
  'test/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
const pages = new Map(paths.map((path) => [path, read(path)]))
const readme = read('README.md')
const publishers = read('docs/publishers.md')
const operators = read('docs/operators.md')
/** All pages but the specification: it also names what was decided otherwise later. */
const all = [...pages].map(([path, page]) => (path.startsWith('docs/spec/') ? '' : page)).join('\n')

test('npm scripts', async (t) => {
  const scripts = Object.keys(JSON.parse(read('package.json')).scripts)
  const named = found(all, /\bnpm run (?:-s )?([a-z:]+)|\bnpm (start|test)\b/g)
  for (const script of named) t.ok(scripts.includes(script), `npm run ${script} exists`)
  for (const script of scripts.filter((name) => !/^(pre|post)/.test(name))) {
    t.match(
      readme,
      new RegExp(`^\\| \`npm (run )?${script}( -- …)?\` \\|`, 'm'),
      `${script} is in the README`,
    )
  }
})

test('shell examples keep no options in a variable: zsh does not split it into words', async (t) => {
  for (const [path, page] of pages) t.notMatch(page, /^ *[A-Z_]+=["']?-/m, path)
})

test('configuration', async (t) => {
  for (const name of found(all, /\b(HUB_[A-Z_]+)/g)) t.ok(variableNames.includes(name), `${name} exists`)
})

test('error codes', async (t) => {
  const ofBodies = Object.entries(apiSchemas).flatMap(([name, schema]) =>
    name.endsWith('Body') ? [schema] : [],
  )
  const ofArguments = Object.values(operations).map(({ args }) => args)
  for (const keyword of keywordsOf([...eventSchemas, ...ofBodies, ...ofArguments]))
    t.ok(keyword in schemaErrorTable, `${keyword} has a sentence`)
  const tables = [...Object.keys(errorTable), ...Object.keys(warningTable)]
  const known = new Set([
    ...tables,
    ...Object.keys(schemaErrorTable).map((keyword) => `${keyword}.openapi.validation`),
  ])
  const families = [...new Set(tables.map((code) => code.split('.')[0]))].join('|')
  const codes = found(
    all,
    new RegExp(`\`((?:${families})\\.[a-z.]+|[a-zA-Z]+\\.openapi\\.validation)\``, 'g'),
  )
  // Fields of `hubctl status` (`feed.items`) look like error codes, but are none.
  for (const code of codes)
    if (!isStatusField(code)) t.ok(known.has(code) || code in errorCodes, `${code} exists`)
})

test('commands of hubctl', async (t) => {
  const typed = [...commands, ...localCommands]
  const words = typed.map((command) => command.words)
  const groups = new Set(words.filter((word) => word.includes(' ')).map((word) => word.split(' ')[0]))
  for (const [, first = '', second] of all.matchAll(
    /`(?:npm run )?hubctl (?:-- )?([a-z]+)(?: ([a-z-]+))?/g,
  )) {
    const command = groups.has(first) ? `${first} ${second}` : first
    t.ok(words.includes(command), `hubctl ${command} exists`)
  }
  for (const option of found(operators, /(--[a-z][a-z-]+)/g)) {
    const options = [...programOptions, ...typed.flatMap(({ options = [] }) => options)]
    const known = options.map(({ flags }) => flags.split(' ')[0])
    t.ok([...known, '--help'].includes(option), `${option} exists`)
  }
})

test('columns of the queues', async (t) => {
  const list = commands.find(({ words }) => words === 'queues list') as CommandOf<'queues.list'> | undefined
  const [headings = ''] = String(
    list?.print(operations['queues.list'].resultExample, createPrinter({})),
  ).split('\n')
  for (const heading of headings.split(/ {2,}/).filter(Boolean)) {
    t.ok(operators.includes(`\`${heading}\``), heading)
  }
  t.equal(headings.split(/ {2,}/).length, 13)
})

test('links', async (t) => {
  for (const [path, page] of pages) {
    for (const [, target = ''] of page.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [file = '', anchor] = target.split('#')
      const linked = file === '' ? join(root, path) : join(root, dirname(path), file)
      t.ok(existsSync(linked), `${path}: ${target} exists`)
      if (anchor) t.ok(anchorsOf(readFileSync(linked, 'utf8')).has(anchor), `${path}: #${anchor} exists`)
    }
  }
})

test('events of the examples would be published', async (t) => {
  const parsed = parseFeed(readFileSync(sampleFeedPath, 'utf8'))
  if ('problem' in parsed) throw new Error(parsed.problem)
  const newer = publishers.indexOf('\n### The newer form\n')
  for (const { 1: block = '', index } of publishers.matchAll(/^```json\n(.*?)^```/gms)) {
    const event = JSON.parse(block)
    // A time at which the examples, which have fixed times, are valid.
    const now = Date.parse('2026-01-31T12:02:00+01:00')
    const institutionId = event.services[0].institutionId
    const submission = { payload: Buffer.from(block), institutionId, allowedClasses: [] }
    const decision = decide(submission, parsed.feed, now)
    const warnings = 'warnings' in decision ? decision.warnings.map(({ errorCode }) => errorCode) : []
    t.equal(decision.outcome, 'published', event.event)
    t.equal(
      warnings.some((code) => code.startsWith('dialect.')),
      index > newer,
      `${event.event}: ${warnings}`,
    )
    if (decision.outcome !== 'published') continue
    const { kind, time } = decision
    const circumstances = { kind, time, receivedAt: time, pluginTargets: new Set<string>() }
    t.same(warningsOf(decision.event, circumstances), [], 'its contents are right')
  }
})

test('examples have ISNIs and UPCs with the right check digit', async (t) => {
  const samples = readdirSync(join(root, 'test/samples/accepted')).map(
    (name) => `test/samples/accepted/${name}`,
  )
  const texts = [...pages.values(), ...samples.map(read)].join('\n')
  const isnis = found(texts, /"isni": "([^"]+)"/g)
  const upcs = found(texts, /"upc": "([^"]+)"/g)
  t.ok(isnis.size > 0 && upcs.size > 0)
  for (const isni of isnis)
    t.ok(hasIsniCheckDigit(isni), `${isni} is an ISNI (ISO 27729, ISO/IEC 7064 MOD 11-2)`)
  for (const upc of upcs) t.ok(hasGtinCheckDigit(upc), `${upc} is a UPC or EAN (GS1)`)
})

test('the README shows the commands that npm start prints', async (t) => {
  const parsed = parseFeed(readFileSync(sampleFeedPath, 'utf8'))
  if ('problem' in parsed) throw new Error(parsed.problem)
  const printed = welcomeText({
    mqttPort: 8883,
    httpsPort: 8443,
    adminSocket: '/data/admin.sock',
    defaultSocket: '/data/admin.sock',
    caPath: join(process.cwd(), 'certs/ca.pem'),
    livestream: parsed.feed.sample,
    isInstalled: false,
  })
  const commandLine = /^(SUB|PUB|mosquitto|api|ADDED|LOGIN|TOKEN)/
  const printedCommands = printed.split('\n').filter((line) => commandLine.test(line))
  t.equal(printedCommands.length, 16)
  for (const command of printedCommands) t.ok(readme.includes(`\n${command}\n`), command.slice(0, 60))
})

test('files of the configuration example are accepted', async (t) => {
  const examples = [
    ...operators.matchAll(/^```json\n(\{ "(?:stage|smtp|redis|proxyProtocol|feedCanaries)".*?)^```/gms),
  ]
  t.equal(examples.length, 6)
  for (const [, example = ''] of examples) {
    const file = join(t.testdir({ 'hub.json': example }), 'hub.json')
    const loaded = loadConfig({ HUB_CONFIG: file, HUB_PUBLIC_URL: 'https://hub.example' }, root)
    t.same('problems' in loaded ? loaded.problems : [], [], example)
  }
})

/** For each match of the pattern, the first capture group that is not empty. */
function found(text: string, pattern: RegExp): Set<string> {
  return new Set([...text.matchAll(pattern)].flatMap(([, ...groups]) => groups.find(Boolean) ?? []))
}

function isStatusField(name: string): boolean {
  return /^feed\.(items|loadedAt|source|loadedFrom|ok|reason|problem|checkedAt|ignoredCanaries)$/.test(name)
}

/** The JSON Schema keywords that can make an event invalid. */
function keywordsOf(schemas: readonly object[]): Set<string> {
  return new Set(
    schemas.flatMap((schema) =>
      Object.entries(schema).flatMap(([keyword, value]) => {
        if (keyword === 'properties' || keyword === 'patternProperties')
          return [...keywordsOf(Object.values(value))]
        if (keyword === 'items') return [...keywordsOf([value])]
        return harmless.has(keyword) || (keyword === 'additionalProperties' && value === true)
          ? []
          : [keyword]
      }),
    ),
  )
}

/**
 * Keywords that only describe, and cannot make an event invalid. `$ref` is one of them: the list of schemas also has
 * the schema that it names.
 */
const harmless = new Set(['$id', '$ref', 'title', 'description', 'examples', 'default'])
