import { connect, isIP } from 'node:net'
import { connect as connectSecurely } from 'node:tls'

/** Longest answer head, bytes. */
const mostHead = 16 * 1024
/** A stream without any sound for so long is taken for dead, milliseconds. */
const silentMs = 30_000

/**
 * Reads the titles of an Icecast or SHOUTcast stream, until it ends. Calls `onTitle` with the bytes of each block of
 * metadata. Rejects when there is no stream, or it has no titles. Not with `fetch`: old servers answer `ICY 200 OK`, which is
 * no HTTP.
 */
export function readTitles(url, onTitle) {
  const { protocol, hostname, port, pathname, search, host } = new URL(url)
  const isSecure = protocol === 'https:'
  const to = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (isSecure ? 443 : 80) }
  // An address is no server name (RFC 6066 §3). Without one, Node compares the certificate with the host.
  const servername = isIP(to.host) ? '' : to.host
  const socket = isSecure ? connectSecurely({ ...to, servername }) : connect(to)
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0)
    let read
    socket.setTimeout(silentMs, () => socket.destroy(new Error('no sound for 30 s')))
    socket.on(isSecure ? 'secureConnect' : 'connect', () => {
      socket.write(`GET ${pathname}${search} HTTP/1.0\r\nHost: ${host}\r\nIcy-MetaData: 1\r\nUser-Agent: icecast-to-hub\r\n\r\n`)
    })
    socket.on('data', (chunk) => {
      try {
        if (read) return read(chunk)
        head = Buffer.concat([head, chunk])
        const end = head.indexOf('\r\n\r\n')
        if (end < 0 && head.length > mostHead) throw new Error('the answer has no end')
        if (end < 0) return
        read = blockReader(intervalOf(head.subarray(0, end).toString('latin1')), onTitle)
        read(head.subarray(end + 4))
      } catch (error) {
        socket.destroy(error)
      }
    })
    socket.on('error', reject)
    socket.on('close', resolve)
  })
}

/** How many bytes of sound stand between two blocks. */
function intervalOf(head) {
  const [status = ''] = head.split('\r\n')
  if (!/^(HTTP\/1\.[01]|ICY) 200/.test(status)) throw new Error(`the server answered ${status}`)
  const interval = Number(/^icy-metaint: *(\d+) *$/im.exec(head)?.[1])
  if (!(interval > 0)) throw new Error('the stream has no titles: Ogg, HLS, or icy-metaint is missing')
  return interval
}

/** Takes the sound away. Keeps at most one block. */
function blockReader(interval, onTitle) {
  let sound = interval
  let missing = 0
  let block = []
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      if (sound > 0) {
        const step = Math.min(sound, chunk.length - at)
        sound -= step
        at += step
      } else if (missing === 0) {
        missing = (chunk[at++] ?? 0) * 16
        if (missing === 0) sound = interval
      } else {
        const part = chunk.subarray(at, at + missing)
        block.push(Buffer.from(part))
        at += part.length
        missing -= part.length
        if (missing > 0) continue
        onTitle(Buffer.concat(block))
        block = []
        sound = interval
      }
    }
  }
}

/** The text of `StreamTitle` in a block. Undefined: there is none. A title may have `'` and `;` in it: nothing is escaped. */
export function titleOf(block) {
  const text = decode(block.subarray(0, block.indexOf(0) < 0 ? block.length : block.indexOf(0)))
  const [, title] = /^StreamTitle='(.*?)';(?=Stream\w+='|$)/s.exec(text) ?? []
  // Liquidsoap and Icecast write ` - ` where artist and title are both empty.
  return title && unescaped(title).replace(/[\p{Cc}\u2028\u2029\s]+/gu, ' ').replace(/^ - $/, '').trim()
}

/** The charset is nowhere: UTF-8 where it is that, else the one of Windows, which has all of Latin-1. */
function decode(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}

/** Icecast writes `&#1046;` for what Latin-1 lacks, when the title came with `charset=`. */
function unescaped(text) {
  return text.replace(/&#(\d{1,7});/g, (whole, code) => (Number(code) <= 0x10ffff ? String.fromCodePoint(Number(code)) : whole))
}
