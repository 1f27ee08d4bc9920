import { createTransport } from 'nodemailer'
import type { Log } from '../telemetry/log.ts'
import type { ResetToken } from './users.ts'

export type ResetMail = ReturnType<typeof createResetMail>

/** The mail server, as the configuration has it. */
export interface MailServer {
  host: string
  port: number
  secure: boolean
  from: string
  user?: string | undefined
  password?: string | undefined
}

const timeoutMs = 20_000

/** Where a person chooses a password. The token stands behind `#`: it reaches no server and no log on the way. */
export function resetUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/auth/reset#token=${token}`
}

/** Sends one-time links; undefined without a mail server (design.md §9). */
export function createResetMail(parts: {
  server: MailServer | undefined
  log: Log
  publicUrl: () => string
}) {
  const { server, log, publicUrl } = parts
  if (!server) return undefined
  const { user, password } = server
  const transport = createTransport({
    host: server.host,
    port: server.port,
    secure: server.secure,
    // A password never goes over an open line.
    requireTLS: user !== undefined && !server.secure,
    ...(user !== undefined && password !== undefined && { auth: { user, pass: password } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })

  return {
    /** Never rejects: whoever asked for the mail learns nothing of it, the log does. */
    async send({ user: { email, userId }, token, expiresAt }: ResetToken): Promise<void> {
      try {
        await transport.sendMail({
          from: server.from,
          to: { name: '', address: email },
          subject: 'Choose a new password',
          text: [
            'Somebody, probably you, asked for a new password for your account of the now-playing hub.',
            '',
            `Choose it here: ${resetUrl(publicUrl(), token)}`,
            '',
            `The link works once, until ${expiresAt}.`,
            'If it was not you, do nothing: your password stays as it is.',
            '',
          ].join('\n'),
        })
        log.info({ userId }, 'reset link mailed')
      } catch (err) {
        log.error({ err, userId }, 'reset link not mailed')
      }
    },
  }
}
