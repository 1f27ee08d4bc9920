import { type CurrentCa, trustBesides, withCaHint } from '../../config/ca-files.ts'
import type { SmtpConfig } from '../../config/smtp.ts'

/** The mail server of the configuration. The hub trusts `ca` besides the usual CAs. */
export type MailServer = Omit<SmtpConfig, 'ca'> & { ca?: CurrentCa | undefined }

const timeoutMs = 20_000

interface Mail {
  to: string
  subject: string
  lines: readonly string[]
  /** Where the person at the address ends such mails (RFC 2369 §3.2). */
  unsubscribe?: string
}

/** Returns a function that sends a mail, and rejects when the server does not take it. */
export function createMailTransport(server: MailServer) {
  return async (mail: Mail): Promise<void> => {
    // Each mail has a connection of its own, and so the CA of the moment.
    const transport = await openTransport(server)
    const sent = transport.sendMail({
      from: server.from,
      // As an object: commas and line breaks in a text could make several addresses.
      to: { name: '', address: mail.to },
      subject: mail.subject,
      text: [...mail.lines, ''].join('\n'),
      ...(mail.unsubscribe !== undefined && { list: { unsubscribe: mail.unsubscribe } }),
      // Programs that answer mails by themselves, such as notes of absence, do not answer this one (RFC 3834 §5).
      headers: { 'auto-submitted': 'auto-generated' },
    })
    await sent.catch((error: unknown) => {
      if (error instanceof Error) error.message = withCaHint(error.message, 'smtp')
      throw error
    })
  }
}

/** Codes of errors that come before the mail is on its way, and kinds of timeouts. */
const before: ReadonlySet<unknown> = new Set([
  ...['EDNS', 'ETLS', 'EAUTH', 'ENOAUTH', 'EENVELOPE'],
  ...['CONNECT_TIMEOUT', 'GREETING_TIMEOUT'],
])

/** Whether a mail that was rejected so has certainly not been taken. False: the connection broke, it may have been. */
export function isNotTaken(error: unknown): boolean {
  const { code, timeoutType, responseCode, syscall } = Object(error)
  return (
    before.has(code) || before.has(timeoutType) || typeof responseCode === 'number' || syscall === 'connect'
  )
}

/** Loads the mail client on demand: most nodes have no mail server. */
async function openTransport(server: MailServer) {
  const { default: nodemailer } = await import('nodemailer')
  const { user, password, ca } = server
  return nodemailer.createTransport({
    host: server.host,
    port: server.port,
    secure: server.secure,
    // A password is never sent over a connection without encryption.
    requireTLS: user !== undefined && !server.secure,
    ...(user !== undefined && password !== undefined && { auth: { user, pass: password } }),
    ...(ca && { tls: { secureContext: trustBesides(ca()) } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}
