import t from 'tap'
import { encodeRds, radiotext } from '../../../delivery/carriers/rds.ts'
import { dlPlus } from '../../../delivery/outputs/dl-plus/dl-plus.ts'
import { icecast } from '../../../delivery/outputs/icecast/icecast.ts'
import type { Output, ShownElement } from '../../../delivery/outputs/output.ts'
import { judgeByStatus } from '../../../delivery/outputs/output.ts'
import { outputs } from '../../../delivery/outputs/outputs.ts'
import { radioplayer } from '../../../delivery/outputs/radioplayer/radioplayer.ts'
import { rds } from '../../../delivery/outputs/rds/rds.ts'
import { urlTemplate } from '../../../delivery/outputs/url-template/url-template.ts'

const element: ShownElement = {
  livestreamId: 'urn:org:livestream:0123456789abcdef',
  artist: 'Björk & Şebnem',
  title: 'Größe 7',
  type: 'music',
  start: '2026-01-31T12:00:00+01:00',
  length: 214.4,
  toggle: 1,
}

t.test('each output makes a request of its example, and shows no secret of it', async (t) => {
  for (const output of outputs) {
    const { settings, there } = output.example
    const request = output.request(element, settings, there)
    const { properties } = output.settings
    const secrets = Object.entries(settings).filter(([name]) => Object(properties[name]).writeOnly === true)
    const shown = JSON.stringify('shown' in request ? request.shown : request)
    for (const [name, value] of secrets)
      for (const secret of typeof value === 'string' ? [value] : Object.values(value))
        t.notOk(shown.includes(String(secret)), `${output.name} ${name}`)
    t.strictSame(output.problems?.(settings, [there]) ?? [], [], output.name)
    t.ok(output.answers.length > 0 && output.surprises.length > 0, output.name)
  }
})

t.test('a hostile title stays in its place in each request', async (t) => {
  const hostile = {
    ...element,
    title: 'x\r\nRT=y\u2028&mount=/other#";$%0d{artist}',
    artist: '"}],"admin":true',
  }
  for (const output of outputs) {
    const { settings, there } = output.example
    const request = output.request(hostile, settings, there)
    if ('url' in request) {
      t.match(request.url, /^https?:\/\/[\x21-\x7e]+$/, `${output.name} sends a URL`)
      const plain = output.request(element, settings, there)
      if ('url' in plain) {
        t.equal(new URL(request.url).host, new URL(plain.url).host)
        t.strictSame(
          [...new URL(request.url).searchParams.keys()],
          [...new URL(plain.url).searchParams.keys()],
        )
      }
    } else if ('file' in request)
      t.equal(request.content.split('\n').filter((line) => line.startsWith('####')).length, 2)
    else t.equal(request.bytes.toString('latin1').split('\r\n').length, 3, 'two lines')
  }
})

const template = (settings: object, fields: Partial<ShownElement> = {}) => {
  const request = urlTemplate.request({ ...element, ...fields }, settings, 'my station')
  if (!('url' in request)) throw new Error('no request')
  return request
}

t.test('url-template fills path and query percent-encoded', async (t) => {
  const url =
    'http://10.0.0.1:81/a/{name}/{title}?t={text}&s={start}&l={length}&k=KEY&i={livestreamId}&y={type}'
  const { url: filled, shown } = template({ url })
  t.equal(
    filled,
    'http://10.0.0.1:81/a/my%20station/Gr%C3%B6%C3%9Fe%207?t=Bj%C3%B6rk%20%26%20%C5%9Eebnem%20-%20Gr%C3%B6%C3%9Fe%207&s=2026-01-31T12%3A00%3A00%2B01%3A00&l=214.4&k=KEY&i=urn%3Aorg%3Alivestream%3A0123456789abcdef&y=music',
  )
  t.ok(shown.url.includes('k=***'))
  const bare = template({ url: 'http://h/?KEY&t={title}&{name}' })
  t.equal(bare.shown.url, 'http://h/?***&t=Gr%C3%B6%C3%9Fe%207&my%20station', 'a key without a name')
  t.equal(template({ url: 'http://h/a/{title}/b' }, { title: '..' }).url, 'http://h/a/__/b')
  t.equal(
    template({ url: 'http://h/a/{title}{artist}/b' }, { title: '.', artist: '.' }).url,
    'http://h/a/__/b',
  )
  t.equal(template({ url: 'http://h/{title}' }, { title: '../../x' }).url, 'http://h/..%2F..%2Fx')
  t.equal(
    template({ url: 'http://h/?a={artist}&l={length}' }, { artist: null, length: null }).url,
    'http://h/?a=&l=',
  )
})

t.test('url-template fills the texts of a JSON body, and cannot be led out of them', async (t) => {
  const body = '{"a":["{artist}: {title}"],"key":"SECRET","pin":20071969,"on":true}'
  const made = template(
    { url: 'http://h/', method: 'POST', body },
    { title: '","key":"x', artist: '{title}' },
  )
  t.strictSame(JSON.parse(made.body ?? ''), {
    a: ['{title}: ","key":"x'],
    key: 'SECRET',
    pin: 20071969,
    on: true,
  })
  t.equal(made.headers?.['content-type'], 'application/json')
  t.strictSame(JSON.parse(made.shown.body ?? ''), {
    a: ['{title}: ","key":"x'],
    key: '***',
    pin: '***',
    on: true,
  })
  t.same(made.secrets, ['SECRET', '20071969'], 'nor where the other side repeats them')
  const form = template(
    { url: 'http://h/', method: 'POST', body: 'key=SECRET&t={title}' },
    { title: 'a&b=c' },
  )
  t.equal(form.body, 'key=SECRET&t=a%26b%3Dc')
  t.equal(form.shown.body, 'key=***&t=a%26b%3Dc')
})

t.test('url-template refuses placeholders where they must not stand', async (t) => {
  const wrong: [settings: object, field: string][] = [
    [{ url: '{title}://h/' }, 'url'],
    [{ url: 'http://{title}/' }, 'url'],
    [{ url: 'http://h:{length}/' }, 'url'],
    [{ url: 'http://u:p@h/' }, 'url'],
    [{ url: 'http://h\\@x/' }, 'url'],
    [{ url: 'http://h/#{title}' }, 'url'],
    [{ url: 'http://h/a b' }, 'url'],
    [{ url: 'http://h/ä' }, 'url'],
    [{ url: 'ftp://h/' }, 'url'],
    [{ url: `http://${'a'.repeat(300)}/` }, 'url'],
    [{ url: 'http://h/{titel}' }, 'url'],
    [{ url: 'http://h/', headers: { x: '{title}' } }, 'headers'],
    [{ url: 'http://h/', headers: { Host: 'x' } }, 'headers'],
    [{ url: 'http://h/', headers: { x: 'Ж' } }, 'headers'],
    [{ url: 'http://h/', body: 'a={title}' }, 'body'],
    [{ url: 'http://h/', method: 'POST', body: '{"a":{title}}' }, 'body'],
    [{ url: 'http://h/', method: 'POST', body: 'a={nix}' }, 'body'],
  ]
  for (const [settings, field] of wrong)
    t.ok(
      urlTemplate.problems?.(settings, ['x']).some((problem) => problem.field === field),
      JSON.stringify(settings),
    )
})

t.test('a redirect is a refusal that says so', async (t) => {
  t.strictSame(judgeByStatus({ status: 301, text: '' }), {
    result: 'refused',
    reason: 'answered 301: the hub follows no redirects',
  })
  t.match(judgeByStatus({ status: 408, text: '' }), { result: 'failed' })
})

t.test('icecast: 200 alone is no success', async (t) => {
  const judge = (text: string, status = 200) => icecast.judge?.({ status, text })
  t.match(
    judge('<iceresponse><message>Metadata update successful</message><return>1</return></iceresponse>'),
    {
      result: 'acknowledged',
    },
  )
  t.match(judge('Updated metadatas for mount /live'), { result: 'acknowledged' }, 'Liquidsoap')
  t.match(judge('<message>Mountpoint will not accept URL updates</message><return>1</return>'), {
    result: 'refused',
    reason: 'Mountpoint will not accept URL updates',
  })
  t.match(judge('<html>Welcome'), { result: 'refused', reason: 'the answer is not one of Icecast' })
  t.match(judge('', 401), { result: 'refused', reason: 'answered 401: user or password is wrong' })
  t.match(judge('<html><body><b>400 - Source does not exist</b></body></html>', 400), {
    result: 'refused',
    reason: 'answered 400: Source does not exist',
  })
  t.match(judge('', 503), { result: 'failed', reason: 'answered 503' })
})

t.test('radioplayer: form fields, user and key as Basic', async (t) => {
  const request = radioplayer.request(element, { url: 'http://h/', apiKey: 'user:k:ey' }, '2760001')
  if (!('url' in request)) throw new Error('no request')
  t.equal(request.headers?.authorization, `Basic ${Buffer.from('user:k:ey').toString('base64')}`)
  t.strictSame(Object.fromEntries(new URLSearchParams(request.body)), {
    rpuid: '2760001',
    startTime: '2026-01-31T11:00:00.000Z',
    duration: '214',
    title: 'Größe 7',
    artist: 'Björk & Şebnem',
  })
  t.ok(radioplayer.problems?.({ url: 'http://h/', apiKey: 'key' }, ['1']).length)
})

t.test('radioplayer: each form of a start becomes the one that the ingest knows', (t) => {
  for (const start of ['2026-01-31T12:00+01', '2026-01-31T11:00:00,000Z', '2026-01-31T11:00.0Z']) {
    const request = radioplayer.request({ ...element, start }, { url: 'http://h/', apiKey: 'user:key' }, '1')
    t.match(request, { body: /startTime=2026-01-31T11%3A00%3A00.000Z/ }, start)
  }
  t.end()
})

/** Reads a file as TS 102 980 says: positions count characters, the marker of the length is the length less one. */
function readDlPlus(content: string) {
  const lines = content.split('\n')
  const [from, to] = [
    lines.indexOf('##### parameters { #####'),
    lines.lastIndexOf('##### parameters } #####'),
  ]
  const text = lines
    .slice(to + 1)
    .join('\n')
    .replace(/\n$/, '')
  const parameters = lines.slice(from + 1, to)
  const characters = [...text]
  const tags = parameters.flatMap((line) => {
    const [, type, start, length] = /^DL_PLUS_TAG=(\d+) (\d+) (\d+)$/.exec(line) ?? []
    if (type === undefined) return []
    return [
      [Number(type), characters.slice(Number(start), Number(start) + Number(length) + 1).join('')] as const,
    ]
  })
  return { text, tags: new Map(tags), parameters }
}

const dls = (fields: Partial<ShownElement>) => {
  const request = dlPlus.request({ ...element, ...fields }, { file: '/run/{name}.dls' }, 'one')
  if (!('file' in request)) throw new Error('no file')
  return { ...readDlPlus(request.content), file: request.file }
}

t.test('dl-plus: tags point at artist and title, also of characters of several bytes', async (t) => {
  const { text, tags, file, parameters } = dls({})
  t.equal(file, '/run/one.dls')
  t.equal(text, 'Björk & Şebnem - Größe 7')
  t.strictSame(
    [...tags],
    [
      [4, 'Björk & Şebnem'],
      [1, 'Größe 7'],
    ],
  )
  t.ok(parameters.includes('DL_PLUS_ITEM_TOGGLE=1') && parameters.includes('DL_PLUS_ITEM_RUNNING=1'))
  const long = dls({ artist: 'Ä'.repeat(40), title: `${'ö'.repeat(30)} ${'ü'.repeat(30)}` })
  t.ok(Buffer.byteLength(long.text) <= 128)
  t.equal(long.tags.get(4), 'Ä'.repeat(40))
  t.match(long.text, new RegExp(`${long.tags.get(1)}$`))
  t.strictSame([...dls({ artist: null, title: 'ŁЖ' }).tags], [[1, 'ŁZH']])
})

t.test('dl-plus: the idle text has no tags, and no item runs', async (t) => {
  const { text, tags, parameters } = dls({ type: 'idle', title: 'Küstenfunk', artist: null })
  t.equal(text, 'Küstenfunk')
  t.equal(tags.size, 0)
  t.ok(parameters.includes('DL_PLUS_ITEM_RUNNING=0'))
})

t.test(
  'dl-plus: an empty text is a space: ODR-PadEnc sends no label for none, and receivers keep the one before',
  async (t) => {
    const { text, tags } = dls({ type: 'idle', title: '', artist: null })
    t.equal(text, ' ')
    t.equal(tags.size, 0)
  },
)

t.test('dl-plus: a title cannot open the parameters again', async (t) => {
  const { text } = dls({ artist: null, title: '##### parameters { #####' })
  t.equal(text, '#### parameters ( #####')
})

/** Decodes the lines as an encoder and a receiver do (IEC 62106, RT+). */
function readRds(output: Output, shown: ShownElement) {
  const request = output.request(shown, { host: 'h', port: 1 }, 'FM')
  if (!('bytes' in request)) throw new Error('no lines')
  const lines = request.bytes.toString('latin1').split('\r\n')
  const [rt = '', rtp = '', rest] = lines
  const bytes = Buffer.from(rt.slice('RT='.length), 'latin1')
  const tags = rtp
    .slice('RTP='.length)
    .split(';')
    .map((tag) => tag.split(',').map(Number))
    .filter(([type]) => type !== 0)
    .map(([type, start = 0, length = 0]) => [type, bytes.subarray(start, start + length + 1)] as const)
  return { bytes, tags, rtp, rest }
}

t.test('rds: tags of RT+ point at artist and title in the bytes that are sent', async (t) => {
  const { bytes, tags, rest } = readRds(rds, element)
  t.strictSame(bytes, encodeRds('Björk & Şebnem - Größe 7'))
  t.strictSame(tags, [
    [4, encodeRds('Björk & Şebnem')],
    [1, encodeRds('Größe 7')],
  ])
  t.equal(rest, '')
})

t.test('rds: the second tag is never longer than its five bits', async (t) => {
  const shown = { ...element, artist: 'Kurz', title: 'Ein sehr langer Titel, der viele Zeichen hat' }
  const { tags, bytes } = readRds(rds, shown)
  t.strictSame(
    tags.map(([type]) => type),
    [1, 4],
  )
  t.ok(bytes.length <= 64)
  t.ok((tags[1]?.[1].length ?? 99) <= 32)
  t.equal(radiotext.write(shown).title?.length, tags[0]?.[1].length)
})

t.test('rds: encoders that know RT1 get it, and six numbers as tags', async (t) => {
  const linesOf = (shown: Partial<ShownElement>) => {
    const request = rds.request({ ...element, ...shown }, { host: 'h', port: 1, commands: 'RT1' }, 'FM')
    return 'bytes' in request ? request.bytes.toString('latin1').split('\r\n') : []
  }
  t.strictSame(linesOf({ artist: 'Mira', title: 'Ebbe und Flut' }), [
    'RT1=Mira - Ebbe und Flut',
    'RTP=04,00,03,01,07,12',
    '',
  ])
  t.equal(linesOf({ artist: null, title: 'Ebbe' })[1], 'RTP=01,00,03,00,00,00')
  t.equal(linesOf({ type: 'idle', artist: null, title: 'K' })[1], 'RTP=00,00,00,00,00,00')
})

t.test('rds: the idle text takes the tags away', async (t) => {
  t.equal(readRds(rds, { ...element, type: 'idle', artist: null, title: 'Küstenfunk' }).rtp, 'RTP=0,0,0')
  t.ok(rds.problems?.({ host: 'h', port: 1 }, ['a', 'b']).length)
})
