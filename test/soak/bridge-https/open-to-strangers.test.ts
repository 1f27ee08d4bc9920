import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'

const [own = ''] = institutions
const token = 'a-secret-of-prometheus'

t.test('strangers are refused at every route of a page that is not public', async (t) => {
  const open = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const said = (msg: string, lines: typeof open.lines) => lines.some((line) => line.msg === msg)
  t.ok(said('strangers may look at the on-air page', open.lines), 'the start says that they may look')
  const { json } = await (await openApi(t, open)).raw('GET', '/openapi.json')
  const operations = Object.entries(Object(json.paths)).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([method, operation]) => ({ path, method, ...Object(operation) })),
  )
  const isEmpty = (one: object) => Object.keys(one).length === 0
  const forStrangers = operations.filter(({ security }) => security.length > 0 && security.some(isEmpty))
  t.ok(forStrangers.length >= 2, forStrangers.map(({ path }) => path).join())

  const closed = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, closed)
  t.notOk(said('strangers may look at the on-air page', closed.lines))
  for (const { path, method } of forStrangers) {
    t.equal((await api.call(method.toUpperCase(), path)).status, 401, `${method} ${path}`)
  }
})

t.test('on stage prod strangers never read the metrics', async (t) => {
  for (const [env, withoutToken, withToken] of [
    [{}, 200, 200],
    [{ HUB_METRICS_TOKEN: token }, 401, 200],
    [{ HUB_STAGE: 'prod' }, 401, 403],
    [{ HUB_STAGE: 'prod', HUB_METRICS_TOKEN: token }, 401, 200],
  ] as const) {
    const hub = await startTestHub(t, env)
    const api = await openApi(t, hub)
    const why = JSON.stringify(env)
    t.equal((await api.call('GET', '/metrics')).status, withoutToken, why)
    t.equal((await api.call('GET', '/metrics', { token })).status, withToken, why)
    const isClosed = withoutToken === 401
    const user = await addUser(hub, api, own, { permissions: ['operate'] })
    for (const wrong of [`${token}x`, token.slice(1), user.token])
      t.equal((await api.call('GET', '/metrics', { token: wrong })).status, isClosed ? 403 : 200, why)
    t.notMatch(JSON.stringify([hub.lines, await hub.ask('config')]), token, 'the token is shown nowhere')
    t.equal((await api.call('GET', '/health')).status, 200, 'load balancers need none')
    await hub.close()
  }
})
