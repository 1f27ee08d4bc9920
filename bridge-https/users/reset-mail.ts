import type { Log } from '../../telemetry/log.ts'
import { createMailTransport, type MailServer } from './mail-transport.ts'
import type { ResetToken } from './users.ts'

export type ResetMail = ReturnType<typeof createResetMail>

/** The URL where a person chooses a password. Browsers send nothing behind `#`, so no log gets the token. */
export function resetUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/auth/reset#token=${token}`
}

/** Mails one-time links to choose a password. Returns undefined if there is no mail server (design.md §9). */
export function createResetMail(parts: {
  server: MailServer | undefined
  log: Log
  publicUrl: () => string
}) {
  const { server, log, publicUrl } = parts
  if (!server) return undefined
  const send = createMailTransport(server)

  return {
    /** Never rejects: errors go to the log. */
    async send({ user: { email, userId }, token, expiresAt }: ResetToken): Promise<void> {
      try {
        await send({
          to: email,
          subject: 'Choose a new password',
          lines: [
            'Somebody, probably you, asked for a new password for your account of the now-playing hub.',
            '',
            `Choose it here: ${resetUrl(publicUrl(), token)}`,
            '',
            `The link works once, until ${expiresAt}.`,
            'If it was not you, do nothing: your password stays as it is.',
          ],
        })
        log.info({ userId }, 'reset link mailed')
      } catch (err) {
        log.error({ err, userId }, 'reset link not mailed')
      }
    },
  }
}
