import { withCaHint } from '../config/ca-files.ts'
import { cut } from '../event/cut.ts'

/** Why a server gave no answer: a short text without internal data of the hub. */
export function whyNoAnswer(error: Error): string {
  const [, tlsReason] = openSslError.exec(error.message) ?? []
  if (tlsReason !== undefined) return `TLS: ${tlsReason}`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  // The codes of undici say no more than its messages.
  const prefix = code === '' || code.startsWith('UND_ERR_') ? '' : `${code}: `
  return cut(withCaHint(`${prefix}${error.message}`, 'push'), 200)
}

/** The reason in an OpenSSL error: `…:error:CODE:LIBRARY:FUNCTION:REASON:FILE:LINE`. */
const openSslError = /:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/
