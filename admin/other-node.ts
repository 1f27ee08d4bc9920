import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { connect } from 'node:net'
import { checkServerIdentity, connect as connectTls, type PeerCertificate, TLSSocket } from 'node:tls'
import type { Certificates } from '../certs/certificates.ts'
import { trustBesides } from '../config/ca-files.ts'

/** A node that does not answer in this time does not count, milliseconds. */
const timeoutMs = 2_000
/** The answer of `/health` is much shorter, bytes. */
const longestAnswer = 4_096

interface AskParts {
  certificates: Pick<Certificates, 'current'>
  /** Path of the CA that clients are told to trust, if there is one. */
  caPath: string | undefined
  /** Nodes expect a PROXY header. */
  proxyProtocol: boolean
}

/**
 * Returns a function that asks another node of this hub, not through the store, whether it reaches the store. `url`: that
 * of its HTTPS port. Resolves with false if there is no such answer. A node of the same hub has the same certificate, or
 * one that is trusted for the same name.
 */
export function createAskNode({ certificates, caPath, proxyProtocol }: AskParts) {
  return async (url: string): Promise<boolean> => {
    try {
      const own = new X509Certificate(certificates.current().cert)
      const ca = caPath === undefined ? '' : await readFile(caPath, 'utf8')
      const answer = await get(url, own, ca)
      return (await storeIn(answer)) && isOfThisHub(answer.socket, own)
    } catch {
      return false
    }
  }

  function get(url: string, own: X509Certificate, ca: string): Promise<IncomingMessage> {
    const { hostname, port } = new URL(url)
    // It takes an IPv6 address without the brackets of a URL.
    const socket = connect(Number(port) || 443, hostname.replace(/^\[|\]$/g, ''))
    if (proxyProtocol) socket.write('PROXY UNKNOWN\r\n')
    const createConnection = () =>
      connectTls({
        socket,
        secureContext: trustBesides(ca),
        // `isOfThisHub` decides: the same certificate is enough, also where its CA is not known here.
        rejectUnauthorized: false,
        checkServerIdentity: (_host, certificate) => identityProblem(own, certificate),
      })
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(timeoutMs)
      const asked = request(new URL('/health', url), { createConnection, signal }, resolve)
      asked.on('error', (error) => {
        socket.destroy()
        reject(error)
      })
      asked.end()
    })
  }
}

async function storeIn(answer: IncomingMessage): Promise<boolean> {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) {
    text += chunk
    if (text.length > longestAnswer) return false
  }
  return JSON.parse(text).store === true
}

function isOfThisHub(socket: unknown, own: X509Certificate): boolean {
  if (!(socket instanceof TLSSocket)) return false
  return socket.authorized || socket.getPeerX509Certificate()?.fingerprint256 === own.fingerprint256
}

/** Undefined if a certificate is for a name of this node's own. */
function identityProblem(own: X509Certificate, certificate: PeerCertificate): Error | undefined {
  const names = [...(own.subjectAltName ?? '').matchAll(/DNS:([^,\s]+)/g)].map(([, name = '']) => name)
  const problems = names.map((name) => checkServerIdentity(name, certificate))
  return problems.includes(undefined) ? undefined : (problems[0] ?? new Error('no name in the certificate'))
}
