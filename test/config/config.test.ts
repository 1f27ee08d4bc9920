import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { limitsOf, loadConfig, maskedConfig } from '../../config/config.ts'
import { type Config, isFileOnly, type Setting, settings, variableName } from '../../config/settings.ts'
import { words } from '../words.ts'

const cwd = '/srv/hub'

/** Settings that others need. */
const needed = {
  HUB_REDIS_URL: 'rediss://redis',
  HUB_PUBLIC_URL: 'https://hub.example',
  HUB_NODE_URL: 'https://node.example:8443',
  HUB_TLS_CERT: '/cert.pem',
  HUB_TLS_KEY: '/key.pem',
  HUB_PROXY_PROTOCOL: 'true',
}
const rows = Object.entries<Setting>(settings)

t.test('a default may also be set', async (t) => {
  for (const [name, { default: value }] of rows) {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue
    t.strictSame(configOf({ HUB_CONFIG: file(t, { [name]: value }) }), configOf({}), name)
  }
})

t.test('every setting is read, from the environment and from the file', async (t) => {
  for (const [name, setting] of rows) {
    const before: Record<string, unknown> = configOf(needed)
    const value = anotherValue(setting, before[name])
    const HUB_CONFIG = file(t, { [name]: value })
    const fromFile: Record<string, unknown> = configOf({ ...without(needed, variableName(name)), HUB_CONFIG })
    t.strictSame(fromFile, { ...before, [name]: value }, `${name}: ${JSON.stringify(value)}`)
    if (isFileOnly(setting)) continue
    const variable = { [variableName(name)]: String(value) }
    t.strictSame(configOf({ ...needed, ...variable }), fromFile, variableName(name))
  }
})

t.test('a wrong value of any setting is refused with its name and what was expected', async (t) => {
  for (const [name, { schema }] of rows) {
    const HUB_CONFIG = file(t, { [name]: null })
    const { description } = { description: undefined, ...schema }
    t.type(description, 'string', name)
    t.ok(
      problemsOf({ ...without(needed, variableName(name)), HUB_CONFIG }).some(
        (problem) =>
          problem.startsWith(`${name} in ${HUB_CONFIG}: `) && problem.endsWith(`, expected ${description}`),
      ),
      name,
    )
  }
})

t.test('seconds become milliseconds for the parts of a node, other numbers stay', async (t) => {
  const config = configOf({ HUB_CONNECT_TIMEOUT: '7', HUB_METRICS_TOKEN: '0123456789abcdef' })
  const limits: Record<string, unknown> = limitsOf(config)
  t.match(limits, {
    connectTimeoutMs: 7_000,
    queueLimit: config.queueLimit,
    historyBytes: config.historyBytes,
  })
  t.ok(Object.values(limits).every((value) => typeof value === 'number'))
  for (const [name, { unit }] of rows) if (unit === 'seconds') t.notOk(name in limits, name)
})

t.test('other nodes reach a node at its host and port, or at the name of the machine', async (t) => {
  const { HUB_NODE_URL: _, ...unset } = needed
  const nodeUrl = (env: Record<string, string>) => configOf({ ...unset, ...env }).nodeUrl
  t.equal(nodeUrl({ HUB_HOST: '10.0.0.7', HUB_HTTPS_PORT: '9443' }), 'https://10.0.0.7:9443')
  t.equal(nodeUrl({ HUB_HOST: '::1' }), 'https://[::1]:8443')
  for (const HUB_HOST of ['0.0.0.0', '::']) t.equal(nodeUrl({ HUB_HOST }), `https://${hostname()}:8443`)
  t.equal(nodeUrl({ HUB_HTTPS_PORT: '0' }), undefined, 'nobody knows the port yet')
  t.equal(configOf({}).nodeUrl, undefined, 'a node alone has no others')
})

t.test('relative paths are below the working directory', async (t) => {
  for (const name of ['dataDir', 'tlsCert', 'tlsKey', 'tlsCa', 'feed', 'feedCa', 'pushCa'] as const) {
    const env = { ...needed, [variableName(name)]: 'var/x' }
    t.equal(configOf(env)[name], '/srv/hub/var/x', name)
  }
  t.equal(configOf({ HUB_PUBLIC_URL: 'https://hub.example/' }).publicUrl, 'https://hub.example')
})

t.test('an empty variable is unset, other variables are not ours', async (t) => {
  t.strictSame(
    configOf({ HUB_MQTT_PORT: '', HUB_CONFIG: '', PATH: '/bin', hub_stage: 'x', HUBCTL: '1' }),
    configOf({}),
  )
})

t.test('several workers need a Redis', async (t) => {
  const redis = { HUB_REDIS_URL: 'redis://localhost', HUB_PUBLIC_URL: 'https://hub.example' }
  for (const value of ['2', 'auto']) {
    t.match(loadConfig({ HUB_WORKERS: value }, cwd), {
      problems: [/^HUB_WORKERS: .*, expected 1 without a Redis \(HUB_REDIS_URL\)/],
    })
  }
  t.equal(configOf({ HUB_WORKERS: '1' }).workers, 1)
  t.equal(configOf({ HUB_WORKERS: '2', ...redis }).workers, 2)
  t.equal(configOf({ HUB_WORKERS: 'auto', ...redis }).workers, availableParallelism())
  for (const [value, shown] of [
    ['0', '0'],
    ['65', '65'],
    ['all', '"all"'],
    ['1.5', '"1.5"'],
  ]) {
    t.strictSame(loadConfig({ HUB_WORKERS: value, ...redis }, cwd), {
      problems: [`HUB_WORKERS: ${shown}, expected a whole number, from 1 to 64, or auto`],
    })
  }
})

t.test('the environment overrides the file, the file overrides the defaults', async (t) => {
  const HUB_CONFIG = file(t, { mqttPort: 1, httpsPort: 2, pushAllowPrivate: true })
  const config = configOf({ HUB_CONFIG, HUB_HTTPS_PORT: '3' })
  t.match(config, { mqttPort: 1, httpsPort: 3, pushAllowPrivate: true, stage: 'test' })
})

t.test('HUB_CONFIG is looked up from the working directory', async (t) => {
  const dir = t.testdir({ 'hub.json': '{"mqttPort": 1}' })
  t.match(loadConfig({ HUB_CONFIG: 'hub.json' }, dir), {
    config: { mqttPort: 1, dataDir: join(dir, 'data') },
  })
})

t.test('a page is public where a node is tried out, and otherwise only when it is said so', async (t) => {
  const own = { HUB_TLS_CERT: 'cert.pem', HUB_TLS_KEY: 'key.pem' }
  for (const [env, expected] of [
    [{}, true],
    [{ HUB_STAGE: 'prod' }, false],
    [{ HUB_HOST: 'localhost' }, true],
    [{ HUB_HOST: '::1' }, true],
    [{ HUB_HOST: '127.0.0.2' }, true],
    [{ HUB_HOST: '0.0.0.0' }, false],
    [{ HUB_HOST: '::' }, false],
    [{ HUB_HOST: '192.0.2.1' }, false],
    [{ HUB_HOST: '127.example.org' }, false],
    [own, false],
    [{ ...own, HUB_PUBLIC_PAGE: 'true' }, true],
    [{ HUB_STAGE: 'prod', HUB_PUBLIC_PAGE: 'true' }, true],
    [{ HUB_PUBLIC_PAGE: 'false' }, false],
  ] as const) {
    t.equal(configOf(env).publicPage, expected, JSON.stringify(env))
  }
})

t.test('plugins and smtp have their place in the file', async (t) => {
  const plugins = [{ type: 'dts', autoEnable: true, url: 'https://dts.example/in', region: { a: 1 } }]
  const smtp = { host: 'mail.example', from: 'Hub <hub@example.org>' }
  t.match(configOf({ HUB_CONFIG: file(t, { plugins, smtp }) }), {
    plugins,
    smtp: { ...smtp, port: 587, secure: false },
  })
  const secure = { ...smtp, secure: true, user: 'u', password: 'p' }
  t.match(configOf({ HUB_CONFIG: file(t, { smtp: secure }) }), { smtp: { ...secure, port: 465 } })
})

t.test('proxies have their place in the file', async (t) => {
  const proxies = ['192.0.2.7', '192.0.2.0/24', '10.0.0.0/8', '2001:db8::7', '2001:db8::/32', '::1']
  const config = configOf({
    HUB_CONFIG: file(t, { proxyProtocol: true, proxyFrom: proxies, trustedProxies: proxies }),
  })
  t.strictSame([config.proxyFrom, config.trustedProxies], [proxies, proxies])
  for (const wrong of [
    ...[
      '',
      ...words(`
        proxy.example 192.0.2 192.0.2.1/24 192.0.2.0/33 192.0.2.0/ 192.0.2.0/+24 192.0.2.0/024
      `),
    ],
    ...words(`0.0.0.0/0 ::/0 2001:db8::1/32 2001:db8::/129 ::ffff:192.0.2.7 ::ffff:192.0.2.0/120 0x7f.1`),
    ...['fe80::1%eth0', '[::1]', '192.0.2.7:80', ' 192.0.2.7', '192.0.2.0/24/24', '*', 7, null],
  ]) {
    for (const name of ['proxyFrom', 'trustedProxies'])
      t.match(
        problemsOf({ HUB_CONFIG: file(t, { proxyProtocol: true, [name]: ['::1', wrong] }) }),
        [new RegExp(`^${name}\\.1 in .*: .*, expected an address such as 192.0.2.7, or a network such as `)],
        String(wrong),
      )
  }
  for (const wrong of ['192.0.2.7', [], {}, null])
    t.match(problemsOf({ HUB_CONFIG: file(t, { trustedProxies: wrong }) }), [
      /^trustedProxies in .*, expected a list of addresses and networks, at least one$/,
    ])
  t.strictSame(problemsOf({ HUB_CONFIG: file(t, { proxyFrom: ['::1'] }) }), [
    'proxyFrom: ["::1"], expected only with HUB_PROXY_PROTOCOL=true',
  ])
  t.match(problemsOf({ HUB_TRUSTED_PROXIES: '::1' }), [/expected trustedProxies in the file that HUB_CONFIG/])
})

t.test('redis has its place in the file', async (t) => {
  const publicUrl = 'https://hub.example'
  const sentinels = [{ host: 'a.example', port: 26379 }]
  const cluster = [
    { host: 'a.example', port: 6379 },
    { host: 'b.example', port: 6379 },
  ]
  const login = { username: 'hub', password: 'p' }
  for (const redis of [
    { sentinels, name: 'hub', sentinelPassword: 'p', ...login },
    { cluster, tls: true },
  ]) {
    t.strictSame(configOf({ HUB_CONFIG: file(t, { publicUrl, redis }) }).redis, redis)
  }
  const config = configOf({
    HUB_CONFIG: file(t, { publicUrl, redisUrl: 'rediss://r', redis: { ca: 'ca.pem' } }),
  })
  t.strictSame(config.redis, { ca: '/srv/hub/ca.pem' })
})

t.test('with Sentinels a replica must have each event, unless 0 is set', async (t) => {
  const at = [{ host: 'a.example', port: 26379 }]
  const publicUrl = 'https://hub.example'
  const replicasOf = (settings: object) =>
    configOf({ HUB_CONFIG: file(t, { publicUrl, ...settings }) }).redisReplicas
  const sentinels = { redis: { sentinels: at, name: 'hub' } }
  t.equal(replicasOf(sentinels), 1)
  t.equal(replicasOf({ ...sentinels, redisReplicas: 0 }), 0)
  t.equal(replicasOf({ ...sentinels, redisReplicas: 2 }), 2)
  t.equal(replicasOf({ redis: { cluster: at } }), 0)
  t.equal(replicasOf({ redisUrl: 'redis://r' }), 0)
})

t.test('redis is held to its rules', async (t) => {
  const [address] = [{ host: 'h', port: 1 }]
  const rows: [settings: object, ...problems: RegExp[]][] = [
    [{ redis: 'redis://h' }, /^redis in .*: "redis:\/\/h", expected an object with sentinels/],
    [{ redis: null }, /^redis in .*: null, expected an object with sentinels/],
    [{ redis: { hosts: [] } }, /^redis\.hosts in .*: unknown, expected one of sentinels, /, /^redis: /],
    [{ redis: { cluster: [] } }, /^redis\.cluster in .*: \[\], expected a list of host and port/],
    [{ redis: { cluster: [{ host: 'h' }] } }, /^redis\.cluster\.0\.port in .*: missing, expected a whole/],
    [{ redis: { cluster: [{ ...address, port: 0 }] } }, /^redis\.cluster\.0\.port in .*: 0, expected a/],
    [{ redis: { ca: '/ca.pem' } }, /^redis: expected one of HUB_REDIS_URL, sentinels and cluster$/],
    [{ redis: { cluster: [address] }, redisUrl: 'redis://h' }, /^redis: expected one of HUB_REDIS_URL/],
    [
      { redis: { cluster: [address], sentinels: [address], name: 'x' } },
      /^redis: expected one of HUB_REDIS_URL/,
    ],
    [{ redis: { sentinels: [address] } }, /^redis: expected sentinels and name, or neither of them$/],
    [
      { redis: { cluster: [address], name: 'x' } },
      /^redis: expected sentinels and name, or neither of them$/,
    ],
    [{ redis: { cluster: [address], sentinelPassword: 'x' } }, /^redis: expected sentinelPassword only with/],
    [{ redis: { cluster: [address], username: 'x' } }, /^redis: expected a password for the username$/],
    [{ redis: { cluster: [address], tls: false, ca: 'x' } }, /^redis: expected tls true, or no tls at all$/],
    [{ redis: { cluster: [address] }, redisReplicas: 1 }, /^HUB_REDIS_REPLICAS: expected 0 with a cluster/],
    [{ redisReplicas: 1 }, /^HUB_REDIS_REPLICAS: 1, expected 0 without a Redis$/],
    [{ redis: { tls: false }, redisUrl: 'rediss://h' }, /^redis: expected tls true, or no tls at all$/],
    [{ redis: { ca: 'x' }, redisUrl: 'redis://h' }, /^HUB_REDIS_URL: expected a URL that starts with rediss/],
    [{ redis: { ca: 'x' }, redisUrl: 3 }, /^redisUrl in .*: 3, expected a URL like redis:/],
  ]
  for (const [settings, ...problems] of rows) {
    const found = problemsOf({ HUB_CONFIG: file(t, { publicUrl: 'https://hub.example', ...settings }) })
    t.match(found, problems, JSON.stringify(settings))
    t.equal(found.length, problems.length, found.join('; '))
  }
  t.match(problemsOf({ HUB_CONFIG: file(t, { redis: { cluster: [address] } }) }), [/^HUB_PUBLIC_URL: unset/])
  for (const HUB_REDIS_URL of ['redis://', 'redis://h/x', 'redis://h/1/2', 'http://h', 'h:6379']) {
    t.match(problemsOf({ HUB_REDIS_URL, HUB_PUBLIC_URL: 'https://hub.example' }), [/^HUB_REDIS_URL: /])
  }
})

t.test('a configuration is frozen through and through', async (t) => {
  const plugins = [{ type: 'dts', url: 'https://dts.example', more: { a: [1] } }]
  const config = configOf({ HUB_CONFIG: file(t, { plugins, smtp: { host: 'h', from: 'f' } }) })
  t.ok(everyObject(config).every(Object.isFrozen))
})

t.test('a wrong variable is refused with its name, its value and what was expected', async (t) => {
  const variables: [name: string, value: string, problem: string][] = [
    ['HUB_STAGE', 'live', 'HUB_STAGE: "live", expected one of test, prod'],
    ['HUB_MQTT_PORT', 'x', 'HUB_MQTT_PORT: "x", expected a whole number, from 0 to 65535'],
    ['HUB_MQTT_PORT', '65536', 'HUB_MQTT_PORT: 65536, expected a whole number, from 0 to 65535'],
    ['HUB_MQTT_PORT', '-1', 'HUB_MQTT_PORT: -1, expected a whole number, from 0 to 65535'],
    ['HUB_MQTT_PORT', '1.5', 'HUB_MQTT_PORT: "1.5", expected a whole number, from 0 to 65535'],
    ['HUB_MQTT_PORT', '0x10', 'HUB_MQTT_PORT: "0x10", expected a whole number, from 0 to 65535'],
    ['HUB_FEED_INTERVAL', '0', 'HUB_FEED_INTERVAL: 0, expected a whole number, from 1 to 86400'],
    [
      'HUB_SESSION_EXPIRY',
      '3153600001',
      'HUB_SESSION_EXPIRY: 3153600001, expected a whole number, from 1 to 3153600000',
    ],
    ['HUB_MAX_CONNECTIONS', '0', 'HUB_MAX_CONNECTIONS: 0, expected a whole number, 1 or greater'],
    ['HUB_PUSH_ALLOW_PRIVATE', 'yes', 'HUB_PUSH_ALLOW_PRIVATE: "yes", expected true or false'],
    [
      'HUB_FEED',
      'http://feed.example',
      'HUB_FEED: "http://feed.example", expected a path, or an https URL without user and password',
    ],
    [
      'HUB_FEED',
      'https://me:geheim@feed.example/all',
      'HUB_FEED: "https://***@feed.example/all", expected a path, or an https URL without user and password',
    ],
    [
      'HUB_FEED',
      'file:///feed',
      'HUB_FEED: "file:///feed", expected a path, or an https URL without user and password',
    ],
    [
      'HUB_PUBLIC_URL',
      'hub.example',
      'HUB_PUBLIC_URL: "hub.example", expected an https URL without user, query and fragment',
    ],
    [
      'HUB_PUBLIC_URL',
      'https://hub.example ',
      'HUB_PUBLIC_URL: "https://hub.example ", expected an https URL without user, query and fragment',
    ],
    [
      'HUB_PUBLIC_URL',
      'https://me:geheim@hub.example',
      'HUB_PUBLIC_URL: "https://***@hub.example", expected an https URL without user, query and fragment',
    ],
    [
      'HUB_PROJECT',
      'a/b',
      'HUB_PROJECT: "a/b", expected letters, digits, dots, dashes and underscores, at most 64',
    ],
  ]
  for (const [name, value, problem] of variables) t.strictSame(problemsOf({ [name]: value }), [problem])
})

t.test('unknown keys are refused, in the file and in the environment', async (t) => {
  const HUB_CONFIG = file(t, {
    mqtPort: 1,
    HUB_STAGE: 'test',
    smtp: { host: 'h', from: 'f', pass: 'geheim' },
  })
  const problems = problemsOf({ HUB_CONFIG, HUB_FOO: 'geheim', HUB_PLUGINS: '[]' })
  t.strictSame(
    problems.map((problem) => problem.split(',')[0]),
    [
      `mqtPort in ${HUB_CONFIG}: unknown`,
      `HUB_STAGE in ${HUB_CONFIG}: unknown`,
      `smtp.pass in ${HUB_CONFIG}: unknown`,
      'HUB_FOO: unknown',
      'HUB_PLUGINS: unknown',
    ].map((problem) => `${problem}`),
  )
  t.match(problems[0], /: unknown, did you mean mqttPort\?$/)
  t.match(problems[1], /: unknown, did you mean stage\?$/)
  t.match(problems[2], /: unknown, expected one of host, port, secure, user, password, from, ca$/)
  t.match(problems[4], /: unknown, expected plugins in the file that HUB_CONFIG names$/)
  t.notMatch(problems.join(), /geheim/)
})

t.test('of an unknown variable the one that was probably meant is named, and no other', async (t) => {
  const pairs = [
    ['HUB_MQT_PORT', 'HUB_MQTT_PORT'],
    ['HUB_HTTP_PORT', 'HUB_HTTPS_PORT'],
    ['HUB_DATADIR', 'HUB_DATA_DIR'],
    ['HUB_LOGLEVEL', 'HUB_LOG_LEVEL'],
    ['HUB_QUEUE_LIMITS', 'HUB_QUEUE_LIMIT'],
    ['HUB_PORT', 'HUB_MQTT_PORT'],
    ['HUB_HTTPS', 'HUB_HTTPS_PORT'],
    ['HUB_CERT', 'HUB_TLS_CERT'],
  ] as const
  for (const [wrong, meant] of pairs) {
    t.strictSame(problemsOf({ [wrong]: 'geheim' }), [`${wrong}: unknown, did you mean ${meant}?`])
  }
  for (const far of ['HUB_FOO', 'HUB_', `HUB_${'X'.repeat(10_000)}`]) {
    t.strictSame(problemsOf({ [far]: 'geheim' }), [
      `${far}: unknown, expected a setting that docs/reference/settings.md lists`,
    ])
  }
})

t.test('a buffer that one event fills is refused', async (t) => {
  t.strictSame(problemsOf({ HUB_OUTGOING_BUFFER: '65535' }), [
    'HUB_OUTGOING_BUFFER: 65535, expected a whole number, 65536 or greater',
  ])
})

t.test('two equal ports are said so, in one line', async (t) => {
  const said = ['HUB_HTTPS_PORT: 8883, expected another port than HUB_MQTT_PORT']
  t.strictSame(problemsOf({ HUB_HTTPS_PORT: '8883' }), said, 'also where one is the default')
  t.strictSame(problemsOf({ HUB_CONFIG: file(t, { mqttPort: 8883, httpsPort: 8883 }) }), said)
  t.strictSame(problemsOf({ HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' }), [], '0: two free ones')
})

t.test('all problems are reported at once, one line each', async (t) => {
  const HUB_CONFIG = file(t, { stage: 3, plugins: [{ type: 'dts' }, 'x', { type: '', url: 'http://x' }] })
  const problems = problemsOf({ HUB_CONFIG, HUB_MQTT_PORT: 'a\nb', HUB_LOG_LEVEL: 'loud', HUB_TLS_KEY: 'x' })
  t.strictSame(problems, [
    `stage in ${HUB_CONFIG}: 3, expected one of test, prod`,
    `plugins.1 in ${HUB_CONFIG}: "x", expected an object with type and url`,
    `plugins.2.type in ${HUB_CONFIG}: "", expected letters, digits, dots, dashes and underscores, at most 64`,
    `plugins.2.url in ${HUB_CONFIG}: "http://x", expected an https URL`,
    'HUB_MQTT_PORT: "a\\nb", expected a whole number, from 0 to 65535',
    'HUB_LOG_LEVEL: "loud", expected one of fatal, error, warn, info, debug, trace, silent',
    'HUB_TLS_CERT: unset, expected the path of the certificate that belongs to HUB_TLS_KEY',
    'plugins.0.url: missing, expected an https URL, or driver, the path of one',
  ])
})

t.test(
  'a plugin target without a driver has no user and password in its URL: it would get nothing',
  async (t) => {
    const url = 'https://me:geheim@dts.example/'
    t.strictSame(problemsOf({ HUB_CONFIG: file(t, { plugins: [{ type: 'dts', url }] }) }), [
      'plugins.0.url: "https://***@dts.example/", expected no user name and password in it',
    ])
    t.strictSame(
      problemsOf({ HUB_CONFIG: file(t, { plugins: [{ type: 'dts', url, driver: 'dts.mjs' }] }) }),
      [],
    )
  },
)

t.test('a file that cannot be read is one problem', async (t) => {
  t.match(problemsOf({ HUB_CONFIG: 'missing.json' }), [
    /^HUB_CONFIG: "\/srv\/hub\/missing\.json", expected a readable JSON file/,
  ])
  t.match(problemsOf({ HUB_CONFIG: text(t, '[]') }), [/^HUB_CONFIG: .*hub\.json, expected an object$/])
  t.match(problemsOf({ HUB_CONFIG: text(t, '{"mqttPort":1,"mqttPort":2}') }), [/at \.mqttPort: .*twice/])
  t.notMatch(problemsOf({ HUB_CONFIG: text(t, '{"smtp":{"password":"geheim"x}}') }), [/geheim/])
})

t.test('a wrong value in the file is refused even where the environment overrides it', async (t) => {
  const HUB_CONFIG = file(t, { mqttPort: 'x' })
  t.match(problemsOf({ HUB_CONFIG, HUB_MQTT_PORT: '1' }), [/^mqttPort in/])
})

t.test('rules between settings', async (t) => {
  const HUB_PUBLIC_URL = 'https://hub.example'
  t.match(problemsOf({ HUB_STAGE: 'prod', HUB_PUSH_ALLOW_PRIVATE: 'true' }), [
    /HUB_PUSH_ALLOW_PRIVATE: true, expected false on stage prod/,
  ])
  t.match(problemsOf({ HUB_REDIS_URL: 'redis://redis' }), [/^HUB_PUBLIC_URL: unset/])
  t.strictSame(problemsOf({ HUB_REDIS_URL: 'redis://redis', HUB_PUBLIC_URL }), [])
  t.match(problemsOf({ HUB_TLS_CERT: 'x' }), [/^HUB_TLS_KEY: unset/])
  t.match(problemsOf({ HUB_TLS_KEY: 'x' }), [/^HUB_TLS_CERT: unset/])
  t.strictSame(problemsOf({ HUB_TLS_CA: 'x' }), [])
  t.match(problemsOf({ HUB_CONFIG: file(t, { smtp: { host: 'h', from: 'f', user: 'u' } }) }), [
    /^smtp: expected user and password/,
  ])
  const HUB_CONFIG = file(t, { stage: 'prod' })
  t.equal(
    problemsOf({ HUB_CONFIG, HUB_PUSH_ALLOW_PRIVATE: 'true' }).length,
    1,
    'also across file and environment',
  )
})

t.test('secrets are masked in problems', async (t) => {
  for (const [name, { schema }] of rows)
    if ('writeOnly' in schema)
      t.notMatch(problemsOf({ [variableName(name)]: 'geheim' }).join(), /geheim/, name)
  const urls = [
    'http://u:geheim@redis',
    'redis:/u:geheim@redis',
    'redis://u:ge/heim@redis',
    'u:geheim@redis',
    '//:geheim@r',
  ]
  for (const HUB_REDIS_URL of urls) {
    const [problem, ...more] = problemsOf({ HUB_REDIS_URL, HUB_PUBLIC_URL: 'https://hub.example' })
    t.match(problem, /^HUB_REDIS_URL: ".*\*\*\*@r/)
    t.notMatch(problem, /gehe?im|ge\/heim/)
    t.strictSame(more, [])
  }
  const smtp = { host: 'h', from: 'f', user: 'u', password: { geheim: 1 } }
  const plugins = [{ type: 'a', url: 'http://u:geheim@h/?token=geheim' }]
  t.notMatch(problemsOf({ HUB_CONFIG: file(t, { smtp, plugins }) }).join(), /geheim/)
})

t.test('the passwords of redis are masked', async (t) => {
  const redis = {
    sentinels: [{ host: 'h', port: 1 }],
    name: 'x',
    username: 'hub',
    password: 'geheim',
    sentinelPassword: 'geheim',
  }
  const config = configOf({ HUB_CONFIG: file(t, { publicUrl: 'https://hub.example', redis }) })
  t.strictSame(maskedConfig(config).redis, { ...redis, password: '***', sentinelPassword: '***' })
  t.notMatch(problemsOf({ HUB_CONFIG: file(t, { redis: { password: ['geheim'] } }) }).join(), /geheim/)
})

t.test('of a URL no value is shown that may be a secret', async (t) => {
  const table: [url: string, shown: string][] = [
    ['https://feed.example/all', 'https://feed.example/all'],
    ['https://feed.example/all?code=geheim&page=1', 'https://feed.example/all?code=***&page=***'],
    ['https://feed.example/all?geheim', 'https://feed.example/all?***'],
    ['https://feed.example/all?a=1;jwt=geheim', 'https://feed.example/all?a=***;jwt=***'],
    ['https://feed.example/all?a=1#token=geheim', 'https://feed.example/all?a=***#***'],
  ]
  for (const [url, shown] of table) t.equal(maskedConfig(configOf({ HUB_FEED: url })).feed, shown, url)
})

t.test('secrets are masked in what hubctl config shows, everything else is not', async (t) => {
  const HUB_CONFIG = file(t, {
    plugins: [
      {
        type: 'dts',
        url: 'https://u:geheim@dts.example/in?a=1&apikey=geheim&auth=geheim&pw=geheim&b=2',
        driver: '/dts.mjs',
        token: 'geheim',
        key: 'geheim',
      },
    ],
    smtp: { host: 'h', from: 'Hub <hub@example.org>', user: 'u', password: 'geheim' },
    redisUrl: 'redis://:geheim@redis:6379',
    publicUrl: 'https://hub.example',
    tlsCert: '/c.pem',
    tlsKey: '/k.pem',
    metricsToken: 'geheim-geheim-geheim',
  })
  const config = configOf({ HUB_CONFIG })
  const shown = maskedConfig(config)
  t.notMatch(JSON.stringify(shown), /geheim/)
  t.strictSame(shown, {
    ...config,
    plugins: [
      {
        type: 'dts',
        url: 'https://***@dts.example/in?a=***&apikey=***&auth=***&pw=***&b=***',
        driver: '/dts.mjs',
        token: '***',
        key: '***',
      },
    ],
    smtp: { ...config.smtp, password: '***' },
    redisUrl: 'redis://***@redis:6379',
    metricsToken: '***',
  })
})

/** A value that differs from the present one, where there is such a value. */
function anotherValue({ schema, example }: Setting, present: unknown): unknown {
  if (example !== undefined) return example
  const {
    type,
    enum: choices,
    minimum,
    maximum,
  } = schema as {
    type: string
    enum?: unknown[]
    minimum: number
    maximum: number
  }
  if (type === 'boolean') return present !== true
  if (choices) return choices.find((choice) => choice !== present)
  return minimum === present ? Math.min(minimum + 1, maximum) : minimum
}

function without(env: Record<string, string>, name: string): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([key]) => key !== name))
}

function configOf(env: NodeJS.ProcessEnv): Config {
  const result = loadConfig(env, cwd)
  if ('problems' in result) throw new Error(result.problems.join('\n'))
  return result.config
}

function problemsOf(env: NodeJS.ProcessEnv): string[] {
  const result = loadConfig(env, cwd)
  return 'problems' in result ? result.problems : []
}

function text(t: Tap, content: string): string {
  return join(t.testdir({ 'hub.json': content }), 'hub.json')
}

function file(t: Tap, settings: object): string {
  return text(t, JSON.stringify(settings))
}

type Tap = Pick<typeof import('tap').default, 'testdir'>

function everyObject(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  return [value, ...Object.values(value).flatMap(everyObject)]
}
