import { type Feed, type Livestream, parseFeed } from '../../validator/feed/feed.ts'

/** The item of livestream `n` of institution `of` in a feed document. */
export function item(n: number, of = 1, fields: Partial<Livestream> = {}) {
  const { institution, publisher, ...livestream } = { ...livestreamOf(n, of), ...fields }
  return { ...livestream, publisher: { ...publisher, institution } }
}

/** The same livestream in the form that the hub uses. */
export function livestreamOf(n: number, of = 1): Livestream {
  return {
    id: `urn:org:permanent-livestream:${n}`,
    type: 'PermanentLivestream',
    externalId: `crid://example/${n}`,
    title: `Station ${n}`,
    publisher: { id: `urn:org:publisher:${of}`, externalId: `p${of}`, title: `Publisher ${of}` },
    institution: { id: `urn:org:institution:${of}`, title: `Institution ${of}`, acronym: `I${of}` },
  }
}

/** A feed document of `count` livestreams of one institution. */
export function feedText(count: number): string {
  return textOf(Array.from({ length: count }, (_, index) => item(index + 1)))
}

export function textOf(items: unknown): string {
  return JSON.stringify({ items })
}

export function feedOf(...items: unknown[]): Feed {
  return listedIn(...items).feed
}

/** A feed of these items, with all its livestreams. */
export function listedIn(...items: unknown[]) {
  const parsed = parseFeed(textOf(items))
  if ('problem' in parsed) throw new Error(parsed.problem)
  return parsed
}
