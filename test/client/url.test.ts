import t from 'tap'
import { readUrl } from '../../client/url.ts'

t.test('a URL is read, and what is none is undefined', async (t) => {
  t.equal(readUrl('HTTPS://hub.example:443/a b')?.href, 'https://hub.example/a%20b')
  for (const text of ['', 'hub.example', '//hub.example', 'https://', 'https://a:b', '/path'])
    t.equal(readUrl(text), undefined, text)
})
