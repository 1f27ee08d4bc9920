import t from 'tap'

import { startTestHub } from '../../start-hub.ts'
import { openApi } from '../api.ts'

t.test('who has the list of livestreams gets it again only when it has changed', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const api = await openApi(t, hub)
  const first = await api.call('GET', '/livestreams')
  const tag = String(first.headers.etag)
  t.match(tag, /^"[\w-]+"$/)
  t.match(first, { status: 200, headers: { 'content-type': /^application\/json/ } })
  t.equal(first.headers['content-length'], String(Buffer.byteLength(first.text)))
  for (const known of [tag, `W/${tag}`, `"x", ${tag}`]) {
    const again = await api.call('GET', '/livestreams', { headers: { 'if-none-match': known } })
    t.match(again, { status: 304, text: '', headers: { etag: tag } }, known)
    const head = await api.call('HEAD', '/livestreams', { headers: { 'if-none-match': known } })
    t.match(head, { status: 304, text: '', headers: { etag: tag } }, known)
    t.notOk('content-length' in head.headers, 'it would be the length of nothing (RFC 9110 §8.6)')
  }
  const head = await api.call('HEAD', '/livestreams')
  t.equal(head.headers['content-length'], first.headers['content-length'])
  const other = await api.call('GET', '/livestreams', { headers: { 'if-none-match': '"x"' } })
  t.same(other.json, first.json)
})
