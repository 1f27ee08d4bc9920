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

/** Returns a function that sends a mail, and rejects when the server does not take it. */
export function createMailTransport(server: MailServer) {
  const transport = openTransport(server)

  return async (mail: { to: string; subject: string; lines: readonly string[] }): Promise<void> => {
    await (await transport).sendMail({
      from: server.from,
      // As an object: commas and line breaks in a text could make several addresses.
      to: { name: '', address: mail.to },
      subject: mail.subject,
      text: [...mail.lines, ''].join('\n'),
    })
  }
}

/** Loads the mail client on demand: most nodes have no mail server. */
async function openTransport(server: MailServer) {
  const { createTransport } = await import('nodemailer')
  const { user, password } = server
  return createTransport({
    host: server.host,
    port: server.port,
    secure: server.secure,
    // A password is never sent over a connection without encryption.
    requireTLS: user !== undefined && !server.secure,
    ...(user !== undefined && password !== undefined && { auth: { user, pass: password } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}
