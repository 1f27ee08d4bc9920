import { parseInstant } from '../../../event/format.ts'
import { Type } from '../../../event/type.ts'
import { type Carrier, writeElement } from '../../carriers/carrier.ts'
import { output } from '../output.ts'
import { basic, line, secret } from '../setting-schemas.ts'

/** Longest title and longest artist, characters. */
const most = 128

const carrier: Carrier = {
  name: 'Radioplayer',
  limit: `${most} characters each for artist and title`,
  write: (element) => writeElement(element, { show: (text) => text, sizeOf: (text) => text.length, most }),
}

const settings = Type.Object({
  url: Type.String({
    pattern: '^https?://[^\\s/?#@\\\\{}]{1,253}(/[^\\s?#\\\\{}]*)?$',
    maxLength: 2_000,
    description: 'the http or https URL of the ingest, such as https://np-ingest.radioplayer.cloud/',
  }),
  apiKey: secret(line('the user name and the key from Radioplayer, with a colon between them')),
})

/** Now-playing data of Radioplayer, by its ingest for now playing, version 2. */
export const radioplayer = output({
  name: 'radioplayer',
  about:
    'what plays now, for [Radioplayer](https://radioplayer.org) and the cars that use it, by its ingest version 2',
  there: Type.String({ pattern: '^[0-9]{1,20}$', description: 'the RPUID of the station, digits' }),
  settings,
  example: {
    settings: { url: 'https://np-ingest.radioplayer.cloud/', apiKey: 'user:key' },
    there: '2760001',
  },
  place: ({ url }, station) => `${url} ${station}`,
  carrier,
  needsText: true,
  problems: ({ apiKey }) =>
    /^[^:]+:./.test(apiKey)
      ? []
      : [{ field: 'apiKey', expected: 'the user name and the key, with a colon between them' }],

  request({ artist, title, start, length }, { url, apiKey }, rpuid) {
    const one = (text: string | null) => carrier.write({ artist: null, title: text ?? '' }).text
    // The ingest takes no element without a title.
    const [first = '', second] = [one(artist), one(title)].filter((text) => text !== '').reverse()
    const [user = '', ...key] = apiKey.split(':')
    const body = new URLSearchParams({
      rpuid,
      startTime: new Date(parseInstant(start) ?? start).toISOString(),
      ...(length !== null && { duration: String(Math.max(1, Math.round(length))) }),
      title: first,
      ...(second !== undefined && { artist: second }),
    }).toString()
    return {
      method: 'POST',
      url,
      headers: {
        authorization: basic(user, key.join(':')),
        'content-type': 'application/x-www-form-urlencoded',
      },
      body,
      shown: { url, body },
      secrets: [apiKey, key.join(':')],
    }
  },

  answers: [
    ['200 to 299', 'acknowledged'],
    ['400, 401, 403', 'refused: the station, the user or the key is wrong'],
    ['429, 500 and above', 'failed: tried again'],
  ],
  surprises: [
    [
      'Log-in is Basic with a user name and a key. Version 1 had a user and a password, `rpId` instead of `rpuid`, and another host',
      '`apiKey` is `user:key`; the name there is the RPUID, which begins with the country (276, 826)',
    ],
    [
      'An element without a title is a 400',
      'the title is that of the artist; without both, the idle text, or nothing is sent',
    ],
    ['`duration` that is missing counts as 180 s', 'the hub leaves an unknown length out'],
  ],
})
