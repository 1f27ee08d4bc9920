import { type Carrier, writeElement } from './carrier.ts'

/** Longest title, bytes. Icecast 2.4 drops the connection at a request line of 4096 bytes, and one byte may need three. */
const mostBytes = 255

/**
 * The title of an ICY stream (Icecast, SHOUTcast): `StreamTitle='…';`, in UTF-8. It has no way to escape. Readers cut at
 * `';`, at the first `'`, or at the first `;`: neither may stand in a title.
 */
export const icy: Carrier = {
  name: 'ICY title',
  limit: `${mostBytes} bytes of UTF-8`,
  write(element) {
    const written = writeElement(element, {
      show: (text) => text.replaceAll("'", '’').replaceAll(';', ','),
      sizeOf: (text) => Buffer.byteLength(text),
      most: mostBytes,
    })
    return isNoText.test(written.text) ? { ...written, text: `${written.text}\u00a0` } : written
  },
}

/**
 * What Icecast 2.4 writes into `status-json.xsl` without quotation marks: `1979` and `True` become another type there, and
 * `-` or `1.` make the page of all mounts no JSON. A no-break space behind it makes it a text.
 */
const isNoText = /^(?!$)(-?[\d.]{0,40}(e[-+]?\d{0,9})?|true|false)$/i
