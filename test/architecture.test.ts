import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules, isBuiltin } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import t from 'tap'
import { root } from './root.ts'
import { words } from './words.ts'

const belowBroker = ['event', 'store', 'telemetry', 'journal', 'acl', 'certs', 'listener', 'validator']
const belowBridge = words(`event store telemetry journal acl certs listener validator delivery on-air`)

/*
 * The folders from which each folder imports, with their subfolders (design.md §1). A new folder needs an entry here
 * and a sentence in docs/architecture.md.
 */
const folders: Record<string, string[]> = {
  client: [],
  'client/build': ['event', 'bridge-https/description'],
  event: ['client'],
  'event/kinds': ['event', 'client'],
  telemetry: [],
  config: ['event', 'delivery/outputs'],
  store: ['telemetry', 'config'],
  'store/level': ['store', 'telemetry', 'config'],
  'store/redis': ['store', 'config'],
  'store/nodes': ['store', 'telemetry'],
  journal: ['event', 'store'],
  'journal/history': ['event', 'store', 'journal'],
  migrate: ['store'],
  certs: ['telemetry', 'store', 'config'],
  acl: ['event', 'store'],
  validator: ['event', 'store', 'telemetry'],
  'validator/feed': ['event', 'store', 'telemetry', 'config'],
  watch: ['event', 'store', 'telemetry', 'journal', 'journal/history', 'validator'],
  listener: ['telemetry', 'certs', 'store', 'config'],
  'on-air': ['event', 'client', 'telemetry', 'store', 'journal', 'acl', 'listener', 'validator'],
  broker: belowBroker,
  'broker/connection': [...belowBroker, 'broker'],
  'broker/login': [...belowBroker, 'broker'],
  'broker/session': [...belowBroker, 'broker'],
  'broker/fanout': [...belowBroker, 'broker'],
  'delivery/carriers': [],
  'delivery/outputs': ['event', 'delivery/carriers'],
  'delivery/showing': ['event', 'store', 'telemetry', 'config', 'journal', 'on-air', 'listener', 'delivery'],
  delivery: ['event', 'store', 'telemetry', 'config', 'journal', 'validator', 'listener'],
  'delivery/runner': ['event', 'store', 'telemetry', 'listener', 'delivery'],
  'delivery/queue': ['event', 'store', 'telemetry', 'journal', 'delivery'],
  'delivery/webhook': ['event', 'store', 'telemetry', 'config', 'listener', 'delivery'],
  'delivery/worth': ['event', 'journal', 'delivery'],
  'delivery/plugins': ['event', 'store', 'telemetry', 'delivery'],
  'bridge-https': belowBridge,
  'bridge-https/routes': [...belowBridge, 'bridge-https'],
  'bridge-https/description': [...belowBridge, 'bridge-https'],
  'bridge-https/users': ['event', 'store', 'telemetry', 'config', 'certs', 'listener'],
  'bridge-https/lifecycle': ['store'],
  web: ['web/console'],
  'web/page': ['event', 'client'],
  'web/live': ['event', 'client', 'web/page'],
  'web/on-air': ['event', 'client', 'web/page', 'web/live'],
  'web/embed': ['client', 'web/on-air'],
  'web/console': ['web/page', 'operations'],
  'web/console/parts': ['client', 'web/page', 'web/console'],
  'web/console/views': ['event', 'client', 'web/page', 'web/console'],
  'web/console/trace': ['client', 'web/page', 'web/console'],
  operations: words(`
    event store telemetry acl listener journal delivery/webhook bridge-https/users bridge-https/lifecycle
  `),
  'operations/lookups': ['operations', 'acl', 'telemetry'],
  'operations/institution': ['operations', 'event', 'telemetry', 'journal/history', 'delivery/webhook'],
  admin: words(`operations event store telemetry config acl journal delivery/webhook bridge-https/lifecycle`),
  'admin/backup': ['admin', 'operations', 'event', 'config', 'store', 'store/nodes', 'migrate'],
  'admin/aedes-redis': words(`admin operations event store telemetry config acl journal validator`),
  'cli/time': ['cli', 'event'],
  'cli/backup': ['admin', 'admin/backup', 'event', 'telemetry', 'cli', 'config'],
  'cli/remote': ['cli', 'cli/typed', 'client', 'config', 'telemetry'],
  'cli/typed': ['operations', 'cli', 'cli/backup'],
  'cli/by-hand': words(`operations event config bridge-https/lifecycle cli cli/typed cli/backup`),
  cli: ['operations', 'telemetry', 'config'],
  workers: ['admin', 'admin/backup', 'config', 'listener', 'store', 'telemetry'],
}

/**
 * These folders import types from anywhere: other folders pass objects to them, or, for the console, their answers.
 */
const seesTypesOfAll = words(`
  admin admin/aedes-redis admin/backup operations operations/lookups operations/institution cli cli/by-hand
  cli/backup cli/remote cli/typed web/console web/console/parts web/console/trace web/console/views
`)

/** These put the parts together or start whole nodes, so they import from anywhere. */
const assemblers = ['hub.ts', 'server.ts', 'testing.ts', 'test', 'demo', 'bench', 'reference', 'deploy']

/** Packages that only the files of one folder may import. */
const packageOwners: [packages: RegExp, owner: string][] = [
  [/^aedes-persistence-redis$/, 'admin/aedes-redis'],
  [/^(aedes|aedes-(?!persistence-redis$).+|mqemitter.*)$/, 'broker'],
  [/^(fastify|@fastify\/.+|ws)$/, 'bridge-https'],
  [/^nodemailer$/, 'bridge-https'],
  [/^ioredis$/, 'store/redis'],
  [/^(preact|@preact\/.+|esbuild|uplot)$/, 'web'],
]

/** Folders that are packages of their own, with their own dependencies. */
const packages = ['client']

/** Folders whose code is not shipped. */
const development = ['test', 'demo', 'bench', 'reference', 'deploy']

interface Import {
  specifier: string
  isTypeOnly: boolean
}

interface SourceFile {
  /** Path relative to the project folder, with `/` as separator. */
  path: string
  /** A folder (`store/redis`), or the name of a file at the top (`hub.ts`). */
  place: string
  imports: Import[]
}

const files = sourceFiles(root)
  .map(readSource)
  .filter(({ path }) => path !== 'test/architecture.test.ts') // its strings contain imports
/** Most rules leave tests out. */
const product = files.filter(({ place }) => place !== 'test')
const contributing = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
const architecture = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
const aboutTests = readFileSync(join(root, 'test/README.md'), 'utf8')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

t.test('the reader of imports finds them all', async (t) => {
  const text = [
    "import a from 'a'",
    "import type { B } from 'b'",
    "import { type C, type D } from '@scope/c/deep'",
    "import { type E, f } from './e.ts'",
    "import {\n  g,\n  h,\n} from './g.ts'",
    "import 'i'",
    "export * from './j.ts'",
    "export { k } from './k.ts'",
    "const l = await import('l')",
    "type M = import('./m.ts').M",
    "  // import n from 'n'",
    " * import o from 'o'",
    "const text = ' from p'",
  ].join('\n')
  t.strictSame(
    importsOf(text).map(({ specifier, isTypeOnly }) => (isTypeOnly ? `type ${specifier}` : specifier)),
    ['a', 'type b', 'type @scope/c/deep', './e.ts', './g.ts', './j.ts', './k.ts', 'i', 'l', './m.ts'],
  )
  t.ok(files.some(({ path }) => path === 'hub.ts') && files.some(({ path }) => path === 'store/store.ts'))
})

t.test('every folder and every file at the top has its place', async (t) => {
  const known = [...Object.keys(folders), ...assemblers]
  t.strictSame(
    [...new Set(files.map(({ place }) => place))].filter((place) => !known.includes(place)),
    [],
  )
})

t.test('every folder has its sentence in docs/architecture.md, and every sentence its folder', async (t) => {
  const [, places = ''] = /^## Folders$(.*)/ms.exec(architecture) ?? []
  const rows = [...places.matchAll(/^\| (.+?) \| .{10,} \|$/gm)].flatMap(([, names = '']) => namesIn(names))
  const wanted = [...Object.keys(folders).map((folder) => `${folder}/`), 'docs/', 'findings/']
  const others = assemblers.map((name) => (name.endsWith('.ts') ? name : `${name}/`))
  t.strictSame(rows.sort(), [...wanted, ...others].sort())
})

t.test('every path that CONTRIBUTING and test/README.md name exists', async (t) => {
  const paths = namesIn(contributing + aboutTests).filter(
    (name) => /^[\w-]+(\/|\.(ts|md)$)/.test(name) && name !== 'dist/',
  )
  t.ok(paths.length > 100)
  t.strictSame(
    paths.filter((path) => !existsSync(join(root, path))),
    [],
  )
})

t.test('every decision that the code names is in docs/decisions', async (t) => {
  const records = join(root, 'docs/decisions')
  const pages = readdirSync(records).map((name) => readFileSync(join(records, name), 'utf8'))
  const titles = pages.flatMap((page) =>
    [...page.matchAll(/^#+ (?:\d+\. )?(.+)$/gm)].map(([, title]) => title),
  )
  const named = files.flatMap(({ path }) => {
    const text = readFileSync(join(root, path), 'utf8').replace(/\n *(?:\*|\/\/)? */g, ' ')
    return [...text.matchAll(/docs\/decisions, "([^"]+)"/g)].map(([, title]) => title)
  })
  t.ok(named.length > 40)
  t.strictSame(
    named.filter((title) => !titles.includes(title)),
    [],
  )
})

t.test('every step of docs/architecture.md exists: its file, and its function in it', async (t) => {
  const [page = ''] = architecture.split('\n## Folders\n')
  const steps = [...page.matchAll(/^\| .+ \| `([^`]+)` \| `([^`]+)` \|$/gm)]
  t.ok(steps.length > 50)
  for (const [, path = '', name = ''] of steps) {
    const isThere = product.some((file) => file.path === path)
    t.ok(isThere && declares(readFileSync(join(root, path), 'utf8'), name), `${path} declares ${name}`)
  }
  const rows = page.split('\n').filter((line) => /^\| (?!what happens)/.test(line))
  t.equal(rows.length, steps.length, 'no row is written in another way')
  for (const declared of [
    'function f() {',
    'export async function f<T>(a: T): Promise<T> {',
    '  function* f() {',
    '  f(a: { b: string }, c = g()): void {',
    '  async f(\n    a: string,\n  ) {',
    '  f<A extends B>(a: A): void {',
    '  #f() {',
    '  const f = () => 1',
    '  f: async (a) => 1,',
    '  readonly #f = (a: string) => 1',
  ])
    t.ok(declares(declared, /#f/.test(declared) ? '#f' : 'f'), declared)
  for (const other of [
    '  f(a)',
    '  f<A>(a)',
    '  f({\n    a,\n  })',
    '  return f(a)',
    '  f,',
    '// function f',
  ]) {
    t.notOk(declares(other, 'f'), other)
  }
})

t.test('only the process and what assembles a node are files at the top', async (t) => {
  t.strictSame(
    files.filter(({ path }) => !path.includes('/')).map(({ path }) => path),
    ['hub.ts', 'server.ts', 'testing.ts'],
  )
})

t.test('a file has its test, or test/README.md says where its behaviour is tested', async (t) => {
  const [, section = ''] = /^## Where behaviour is tested$(.*)/ms.exec(aboutTests) ?? []
  const rows = [...section.matchAll(/^\| (`.+?) \| (`.+?) \|$/gm)].flatMap(([, sources = '', tests = '']) =>
    namesIn(sources).map((source) => ({ source, tests: namesIn(tests) })),
  )
  t.ok(rows.length > 20)
  const exists = new Set(files.map(({ path }) => path))
  for (const { source, tests } of rows) {
    t.ok(exists.has(source) || Object.hasOwn(folders, source.replace(/\/$/, '')), `${source} exists`)
    for (const test of tests) t.ok(exists.has(test), `${test} exists`)
  }
  const untested = files
    .filter(({ place }) => !development.includes(place))
    .filter(({ path }) => !exists.has(`test/${path.replace(/tsx?$/, 'test.ts')}`))
    .filter(({ path }) => !rows.some(({ source }) => source === path || source === `${dirname(path)}/`))
  t.strictSame(
    untested.map(({ path }) => path),
    [],
  )
})

t.test('imports point only downwards', async (t) => {
  const wrong = product.flatMap((file) => {
    const allowed = folders[file.place]
    if (!allowed) return []
    return file.imports
      .filter(({ specifier }) => specifier.startsWith('.'))
      .filter(({ isTypeOnly }) => !(isTypeOnly && seesTypesOfAll.includes(file.place)))
      .map(({ specifier }) => resolveImport(file, specifier))
      .filter((target) => ![file.place, ...allowed].some((place) => isIn(target, place)))
      .map((target) => `${file.path} imports ${target}`)
  })
  t.strictSame(wrong, [])
})

t.test('what is shipped does not import tests or demonstrations', async (t) => {
  const wrong = files
    .filter(({ place }) => !development.includes(place))
    .flatMap((file) => localTargets(file).map((target) => [file.path, target] as const))
    .filter(([, target]) => development.includes(placeOf(target)))
    .map(([path, target]) => `${path} imports ${target}`)
  t.strictSame(wrong, [])
})

t.test('every relative import names a file of ours, with its extension', async (t) => {
  const paths = new Set(files.map(({ path }) => path))
  const wrong = files.flatMap((file) =>
    localTargets(file)
      .filter((target) => !paths.has(target) && !/\.(json|css)$/.test(target))
      .map((target) => `${file.path} imports ${target}`),
  )
  t.strictSame(wrong, [])
})

t.test('no cycles, not even of types', async (t) => {
  t.strictSame(cyclesIn(new Map(product.map((file) => [file.path, localTargets(file)]))), [])
  const example = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', ['b']],
    ['d', []],
  ])
  t.strictSame(cyclesIn(example), ['b → c → b'], 'one would be found')
})

t.test('a package belongs to one folder', async (t) => {
  const wrong = product.flatMap(({ path, imports }) =>
    packagesOf(imports)
      .filter((name) => packageOwners.some(([packages, owner]) => packages.test(name) && !isIn(path, owner)))
      .map((name) => `${path} imports ${name}`),
  )
  t.strictSame(
    wrong.filter((line) => !development.some((folder) => line.startsWith(`${folder}/`))),
    [],
  )
  const speaksMqtt = product.filter(({ place, imports }) => {
    return (
      ['validator', 'event', 'store', 'acl'].includes(place) &&
      packagesOf(imports).some((name) => /^mqtt/.test(name))
    )
  })
  t.strictSame(
    speaksMqtt.map(({ path }) => path),
    [],
    'the validator and what lies below know no protocol',
  )
})

t.test('packages are declared', async (t) => {
  const all = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })
  const ownDependencies = new Map(packages.map((place) => [place, dependenciesOf(place)]))
  const wrong = files.flatMap(({ path, place, imports }) =>
    packagesOf(imports)
      .filter((name) => !(ownDependencies.get(place) ?? all).includes(name))
      .map((name) => `${path} imports ${name}`),
  )
  t.strictSame(wrong, [])
})

t.test('Aedes has one door', async (t) => {
  const doors = product.filter(
    ({ place, imports }) => !development.includes(place) && packagesOf(imports).includes('aedes'),
  )
  t.strictSame(
    doors.map(({ path }) => path),
    ['broker/aedes.ts'],
  )
})

t.test('what is changed of objects of Node stands in one file of each package', async (t) => {
  const changes =
    /\.removeAllListeners\(|\.push = |Object\.assign\((?:\w+\.)?(?:socket|stream|server)\b|\._(?:handle|readableState|writableState)\b|\b_unrefTimer\b/
  const places = files
    .filter(({ place }) => !development.includes(place))
    .filter(({ path }) => changes.test(readFileSync(join(root, path), 'utf8')))
  t.strictSame(
    places.map(({ path }) => path),
    ['client/read-ahead.ts', 'listener/node-internals.ts'],
  )
})

t.test('built-in modules are imported with node:', async (t) => {
  const wrong = files.flatMap(({ path, imports }) =>
    imports
      .filter(({ specifier }) => builtinModules.includes(specifier) && !specifier.startsWith('node:'))
      .map(({ specifier }) => `${path}: ${specifier}`),
  )
  t.strictSame(wrong, [])
})

t.test('a file is called by what it is about', async (t) => {
  const vague = /^(utils?|helpers?|common|misc|shared|manager|.+-(utils?|helpers?|manager))\.ts$/
  t.strictSame(
    files.map(({ path }) => path).filter((path) => vague.test(basename(path))),
    [],
  )
})

/** The names of the packages that a package of the repository depends on. */
function dependenciesOf(place: string): string[] {
  return Object.keys(JSON.parse(readFileSync(join(root, place, 'package.json'), 'utf8')).dependencies)
}

/** Whether a file or folder has no source files of the repository. */
function isGenerated(name: string): boolean {
  return name.startsWith('.') || ['node_modules', 'dist', 'data'].includes(name)
}

function sourceFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (isGenerated(entry.name)) return []
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return sourceFiles(path)
    return /\.tsx?$/.test(entry.name) ? [path] : []
  })
}

/** Whether a source text declares a function of this name. Calls do not count. */
function declares(text: string, name: string): boolean {
  const start = `^ *(?:export |override |readonly |async )*`
  const isNamed = new RegExp(`${start}function\\*? ${name}\\b`, 'm').test(text)
  const isArrow = new RegExp(`${start}(?:const )?${name}(?: =|:) (?:async )?(?:<|\\(|\\w+ =>)`, 'm').test(
    text,
  )
  return (
    isNamed ||
    isArrow ||
    [...text.matchAll(new RegExp(`${start}\\*?${name}(?:<[^(]*>)?\\(`, 'gm'))].some(hasBody)
  )
}

/** Whether a body or a return type follows the parentheses, as in a declaration. */
function hasBody({ 0: before, index, input }: RegExpExecArray): boolean {
  let depth = 1
  let end = index + before.length
  for (; depth > 0 && end < input.length; end++) {
    if (input[end] === '(') depth++
    else if (input[end] === ')') depth--
  }
  return /^(:| \{)/.test(input.slice(end))
}

/** The texts between back quotes. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, name = '']) => name)
}

function readSource(absolute: string): SourceFile {
  const path = relative(root, absolute).replaceAll('\\', '/')
  const text = readFileSync(absolute, 'utf8')
  return { path, place: placeOf(path), imports: importsOf(text) }
}

/** The deepest of `folders` that contains the file, otherwise the path's first part. */
function placeOf(path: string): string {
  const listed = Object.keys(folders).filter((folder) => isIn(path, folder))
  return listed.sort((a, b) => b.length - a.length)[0] ?? path.split('/')[0] ?? ''
}

function isIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`)
}

function importsOf(text: string): Import[] {
  const withClause = /^(?:import|export)\s+([\w\s{},*$]+?)\s*from\s*['"]([^'"]+)['"]/gm
  const bare = /^import\s*['"]([^'"]+)['"]/gm
  const dynamic = /\bimport\(\s*['"]([^'"]+)['"]/g
  const named = [...text.matchAll(withClause)].map(([, clause = '', specifier = '']) => {
    return { specifier, isTypeOnly: isTypeClause(clause) }
  })
  const others = [...text.matchAll(bare), ...text.matchAll(dynamic)]
  return [...named, ...others.map(([, specifier = '']) => ({ specifier, isTypeOnly: false }))]
}

/** Whether an import clause has only types: `type …` or `{ type …, type … }`. */
function isTypeClause(clause: string): boolean {
  if (clause.startsWith('type ')) return true
  const names = /^\{(.*)\}$/s
    .exec(clause)?.[1]
    ?.split(',')
    .map((name) => name.trim())
  return names?.filter(Boolean).every((name) => name.startsWith('type ')) ?? false
}

function resolveImport(file: SourceFile, specifier: string): string {
  return join(dirname(file.path), specifier).replaceAll('\\', '/')
}

function localTargets(file: SourceFile): string[] {
  const local = file.imports.filter(({ specifier }) => specifier.startsWith('.'))
  return local.map(({ specifier }) => resolveImport(file, specifier))
}

function packagesOf(imports: readonly Import[]): string[] {
  return imports
    .map(({ specifier }) => specifier)
    .filter((specifier) => !specifier.startsWith('.') && !isBuiltin(specifier))
    .map((specifier) => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'))
}

/** Returns the import cycles, each as `b → c → b`. */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const finished = new Set<string>()
  const cycles: string[] = []
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) {
      cycles.push([...way.slice(way.indexOf(path)), path].join(' → '))
      return
    }
    if (finished.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...way, path])
    finished.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return cycles
}
