import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig, maskedConfig } from '../../config/config.ts'
import { outputs } from '../../delivery/outputs/outputs.ts'

const id = 'urn:org:permanent-livestream:4638c4eac849c618'
const good = {
  name: 'web',
  driver: 'icecast',
  url: 'http://10.0.0.7:8000',
  username: 'admin',
  password: 'SECRET',
  livestreams: { [id]: '/live.mp3' },
}

const template = { name: 'u', driver: 'url-template', url: 'http://h/?t={title}', livestreams: { [id]: 'a' } }
const rds = { name: 'r', driver: 'rds', host: '::1', port: 7005, livestreams: { [id]: 'FM' } }

function load(t: Test, outputs: unknown) {
  const path = join(t.testdir(), 'hub.json')
  writeFileSync(path, JSON.stringify({ outputs }))
  const loaded = loadConfig({ HUB_CONFIG: path }, '/')
  return 'problems' in loaded ? loaded.problems.map((line) => line.replace(` in ${path}`, '')) : loaded.config
}

t.test('the example of each output is accepted, and its secrets are masked', async (t) => {
  const examples = outputs.map(({ name, example }, index) => ({
    name: `o${index}`,
    driver: name,
    ...example.settings,
    livestreams: { [id]: example.there },
  }))
  const config = load(t, examples)
  if (Array.isArray(config)) throw new Error(config.join('\n'))
  t.strictSame(config.outputs, examples)
  t.notMatch(JSON.stringify(maskedConfig(config)), /"secret"|Bearer|user:key/)
})

t.test('each mistake names its field and what was expected, without a secret', async (t) => {
  const other = 'urn:org:permanent-livestream:4638c4eac849c619'
  const mistakes: [fields: unknown, problem: RegExp][] = [
    ['text', /^outputs\.0: .*expected an object with name, driver/],
    [{ ...good, driver: 'icecst' }, /^outputs\.0\.driver: "icecst", expected one of icecast, url-template/],
    [{ ...good, driver: undefined }, /^outputs\.0\.driver: missing, expected one of/],
    [{ ...good, name: 'a b' }, /^outputs\.0\.name: "a b", expected letters/],
    [{ ...good, extra: 1 }, /^outputs\.0\.extra: unknown, expected one of name, driver/],
    [{ ...good, livestreams: {} }, /^outputs\.0\.livestreams: {}, expected an object that names/],
    [{ ...good, livestreams: { x: '/a' } }, /^outputs\.0\.livestreams: .*expected ids of livestreams/],
    [{ ...good, livestreams: { [id]: 'a' } }, /expected a mount, such as \/live\.mp3/],
    [{ ...good, livestreams: { [id]: '/a', [other]: '/a' } }, /livestreams: two with the same name there/],
    [{ ...good, idle: ' \u200b\n' }, /^outputs\.0\.idle: .*expected a text of which icecast shows something/],
    [{ ...good, delay: 300_001 }, /^outputs\.0\.delay: 300001, expected milliseconds from 0 to 300000/],
    [
      { ...good, maxAge: 'never' },
      /^outputs\.0\.maxAge: "never", expected seconds from 1 to 604800, or "element"/,
    ],
    [{ ...good, password: 5 }, /^outputs\.0\.password: "\*\*\*", expected the password/],
    [
      { ...good, url: 'http://u:SECRET@h/' },
      /^outputs\.0\.url: "http:\/\/\*\*\*@h\/", expected an http or https URL/,
    ],
    [
      { ...good, driver: 'nix', headers: { 'x-key': 'SECRET' } },
      /^outputs\.0\.driver: "nix", expected one of/,
    ],
    [
      { ...good, url: 'http://10.0.0.7:80000' },
      /^outputs\.0\.url: "http:\/\/10\.0\.0\.7:80000", expected an http/,
    ],
    [{ ...good, livestreams: { x: '/a' } }, /^outputs\.0\.livestreams: "x", expected ids .*such as urn:/],
    [
      { name: 'd', driver: 'dl-plus', file: '/run/a.dls', livestreams: { [id]: 'a', [other]: 'b' } },
      /^outputs\.0\.file: .*expected \{name\} in it/,
    ],
    [
      { name: 'r', driver: 'rds', host: 'h', port: 1, livestreams: { [id]: 'a', [other]: 'b' } },
      /^outputs\.0\.livestreams: .*expected one livestream/,
    ],
    [{ ...rds, host: '10.0.0.9:7005' }, /^outputs\.0\.host: "10\.0\.0\.9:7005", expected .*without port/],
    [
      { name: 'd', driver: 'dl-plus', file: '/run/{title}.dls', livestreams: { [id]: 'a' } },
      /^outputs\.0\.file: .*no placeholder but \{name\}, not \{title\}/,
    ],
    [{ ...template, url: 'http://h/?t={titel}' }, /^outputs\.0\.url: .*\{title\}, .*; not \{titel\}/],
    [{ ...template, url: 'http://h/?t={play-id}' }, /^outputs\.0\.url: .*not \{play-id\}/],
    [{ ...template, url: 'http://h/?t={{title}}' }, /^outputs\.0\.url: .*not \{\}/],
    [{ ...template, url: 'http://h/a ä?t={title}' }, /^outputs\.0\.url: .*percent-encoded/],
    [{ ...template, url: 'http://h:80000/?t={title}' }, /^outputs\.0\.url: .*an http or https URL/],
    [{ ...template, headers: { 'a b': 'SECRET' } }, /^outputs\.0\.headers: .*not "a b"/],
    [{ ...template, headers: { 'x-k': 'SECRET\n' } }, /^outputs\.0\.headers\.x-k: "\*\*\*", .*of one line/],
    [
      { name: 'u', driver: 'url-template', url: 'http://{title}/', livestreams: { [id]: 'a' } },
      /^outputs\.0\.url: .*placeholders in path and query only/,
    ],
  ]
  for (const [output, expected] of mistakes) {
    const problems = load(t, [output])
    t.ok(Array.isArray(problems) && problems.some((line) => expected.test(line)), `${expected}`)
    t.notMatch(JSON.stringify(problems), /SECRET/)
  }
  t.equal(
    Object(load(t, [good, template, rds])).outputs?.length,
    3,
    'those that the mistakes are made of are right',
  )
  t.strictSame(
    Object(
      load(t, [
        { ...good, driver: 'nix' },
        { ...good, name: 'b', livestreams: { x: '/a' } },
      ]),
    ).length,
    2,
    'one line for each mistake',
  )
  const file = { name: 'd', driver: 'dl-plus', file: '/run/{name}.dls', livestreams: { [id]: 'a' } }
  t.strictSame(
    load(t, [
      good,
      { ...good, name: 'b' },
      rds,
      { ...rds, name: 'c' },
      file,
      { ...file, name: 'e', file: '/run/a.dls' },
    ]),
    [
      'outputs.1: writes to "http://10.0.0.7:8000/live.mp3", as outputs.0 does, expected a place of its own',
      'outputs.3: writes to "::1:7005", as outputs.2 does, expected a place of its own',
      'outputs.5: writes to "/run/a.dls", as outputs.4 does, expected a place of its own',
    ],
  )
  t.match(load(t, [good, good]), [/^outputs\.1\.name: "web", expected each name once/])
  t.match(load(t, 'x'), [/^outputs: "x", expected a list/])
})
