import t from 'tap'
import { startTestHub } from '../start-hub.ts'
import { openApi } from './api.ts'

t.test('every answer says whether caches may keep it', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const api = await openApi(t, hub)
  const { paths } = (await api.raw('GET', '/openapi.json')).json as { paths: Record<string, object> }
  const asked = Object.keys(paths)
    .filter((path) => !path.endsWith('/stream')) // their answers never end
    .map((path) => path.replaceAll(/\{\w+\}/g, 'x'))
  t.ok(asked.length > 40, 'all routes')
  const kept: string[] = []
  for (const path of [...asked, '/docs', '/nothing', '/%', '/web/x-ABCDEFGH.js'])
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const { status, headers } = await api.raw(method, path)
      const said = String(headers['cache-control'])
      t.match(
        said,
        /^(no-store|no-cache|public, max-age=(1$|\d+, stale-while-revalidate=0))/,
        `${method} ${path}`,
      )
      if (said.startsWith('public')) kept.push(`${status} ${path}`)
    }
  // A cache keeps a 404 of a node of another release, or of a livestream that comes with the next feed, for minutes.
  t.strictSame(kept.sort(), ['200 /.well-known/jwks.json', '200 /embed/v1.js', '200 /now'])
})
