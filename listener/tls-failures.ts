import type { Log } from '../telemetry/log.ts'

/** Maximum number of warnings in a minute: the handshakes of port scanners fail all the time. */
const maxWarnings = 20
const minuteMs = 60_000

/** What the error codes of OpenSSL mean, in the words of an operator. */
const reasons: [code: RegExp, reason: string][] = [
  [/UNKNOWN_CA|ALERT_BAD_CERTIFICATE|ALERT_CERTIFICATE_/, 'the client does not trust the certificate'],
  [/UNSUPPORTED_PROTOCOL|ALERT_PROTOCOL_VERSION|VERSION_TOO_LOW/, 'no common TLS version'],
  [/WRONG_VERSION_NUMBER|HTTP_REQUEST|PACKET_LENGTH_TOO_LONG|BAD_RECORD_TYPE/, 'plain text instead of TLS'],
  [/NO_SHARED_CIPHER|NO_SUITABLE/, 'no common cipher'],
  [/TLS_HANDSHAKE_TIMEOUT/, 'the handshake took too long'],
]

/** Why a handshake failed, in plain words. */
export function tlsFailureReason({ code = '', message }: NodeJS.ErrnoException): string {
  const [, reason] = reasons.find(([pattern]) => pattern.test(code)) ?? []
  return reason ?? message
}

/**
 * Logs a warning for a failed TLS connection: at most one a minute for each address and reason. `leftOut` counts the
 * warnings that were left out since the last one. `clock`: `performance.now()`.
 */
export function createTlsWarnings(log: Pick<Log, 'warn'>, clock: () => number = () => performance.now()) {
  const warned = new Set<string>()
  let minuteEnds = 0
  let leftOut = 0

  return (remoteAddress: string, reason: string): void => {
    const now = clock()
    if (now >= minuteEnds) {
      warned.clear()
      minuteEnds = now + minuteMs
    }
    const about = `${remoteAddress} ${reason}`
    if (warned.has(about) || warned.size >= maxWarnings) {
      leftOut++
      return
    }
    warned.add(about)
    log.warn({ remoteAddress, reason, leftOut }, 'TLS connection failed')
    leftOut = 0
  }
}
